#include "base/files.hpp"
#include "base/toml.hpp"
#include "model/records.hpp"
#include "nelder_mead.hpp"
#include "problems.hpp"
#include "rows.hpp"

#include <moehub/error.hpp>
#include <moehub/presets.hpp>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include <fmt/format.h>

namespace moehub::fit {
namespace {

constexpr int kCalls = 900;         ///< of the loss in one round
constexpr double kFirstStep = 0.3;  ///< of the simplex, in logarithms
constexpr double kStep = 0.15;

bool has_format(const Problem& problem, const KernelCall& call) {
    const auto* moe = std::get_if<MoeCall>(&call);
    return moe == nullptr || std::find(problem.formats.begin(), problem.formats.end(),
                                       moe->format) != problem.formats.end();
}

std::vector<MeasuredCall> calls_of(const Problem& problem, const std::string& folder,
                                   const Cards& cards) {
    std::vector<MeasuredCall> calls;
    for (const std::string& file : problem.files)
        for (MeasuredCall& one : read_calls(fmt::format("{}/{}", folder, file)))
            if (one.library == problem.library && cards.contains(one.card) &&
                has_format(problem, one.call))
                calls.push_back(std::move(one));
    return calls;
}

Cards cards_of(const std::string& generation) {
    Cards cards;
    for (const std::string& name : preset_names("gpus"))
        if (Gpu gpu = load_gpu(name); gpu.generation == generation) cards[name] = std::move(gpu);
    return cards;
}

/// "decode.start": a key without a table is of the kernel's.
std::string whole_key(const Problem& problem, const std::string& key) {
    return key.find('.') == std::string::npos ? fmt::format("{}.{}", problem.kernel, key) : key;
}

Field field_of(KernelLibrary& library, const std::string& key) {
    for (Field& field : fields_of(library))
        if (field.key == key) return field;
    throw InputError(fmt::format("no constant {}", key));
}

/// All constants that a knob turns.
std::vector<std::string> keys_of(const Problem& problem, const Knob& knob) {
    std::vector<std::string> keys{whole_key(problem, knob.key)};
    for (const std::string& key : knob.tied) keys.push_back(whole_key(problem, key));
    return keys;
}

void set(Field& field, double value) {
    if (auto* real = std::get_if<double*>(&field.pointer))
        **real = value;
    else if (auto* whole = std::get_if<std::int64_t*>(&field.pointer))
        **whole = std::llround(value);
}

void set_constants(Cards& cards, const Problem& problem, const Point& values) {
    for (auto& [name, gpu] : cards) {
        KernelLibrary& library = gpu.libraries.at(problem.library);
        for (std::size_t i = 0; i < values.size(); ++i) {
            for (const std::string& key : keys_of(problem, problem.knobs[i])) {
                Field field = field_of(library, key);
                set(field, values[i]);
            }
        }
    }
}

bool is_time(const Problem& problem, const Knob& knob) {
    KernelLibrary library;
    return field_of(library, whole_key(problem, knob.key)).kind == FieldKind::time;
}

double three_digits(double value) {
    return std::stod(fmt::format("{:.3g}", value));
}

/// What a value beyond its limit costs, so that the simplex turns back.
double beyond_limits(const Problem& problem, const Point& values) {
    double cost = 0;
    for (std::size_t i = 0; i < values.size(); ++i)
        if (const double most = problem.knobs[i].most; most > 0)
            cost += std::max(0.0, values[i] / most - 1);
    return cost;
}

}  // namespace

Solution solve(const Problem& problem, const std::string& measurements, const std::string& only) {
    Cards cards = cards_of(problem.generation);
    std::vector<MeasuredCall> calls = calls_of(problem, measurements, cards);
    std::vector<MeasuredCall> others;
    if (!only.empty()) {
        const auto other = std::stable_partition(
            calls.begin(), calls.end(), [&](const MeasuredCall& one) { return one.card == only; });
        others.assign(other, calls.end());
        calls.erase(other, calls.end());
    }
    if (calls.empty()) throw InputError(fmt::format("{}: no measurements", problem.kernel));
    const auto at = [&](const Point& values) {
        set_constants(cards, problem, values);
        return loss(cards, calls) + beyond_limits(problem, values);
    };
    Point values;
    for (const Knob& knob : problem.knobs) values.push_back(knob.start);
    for (int round = 0; round < problem.rounds; ++round)
        values = minimise(at, values, {kCalls, round == 0 ? kFirstStep : kStep});
    for (std::size_t i = 0; i < values.size(); ++i) {
        const double most = problem.knobs[i].most;
        values[i] = three_digits(most > 0 ? std::min(most, values[i]) : values[i]);
        if (is_time(problem, problem.knobs[i])) values[i] = std::round(values[i]);  // whole ps
    }
    const double found = at(values);
    return {values, found, errors(cards, only.empty() ? calls : others)};
}

/// The line with another value; its comment stays where it is.
std::string with_value(const std::string& line, std::string_view key, const std::string& value) {
    const std::size_t comment = line.find('#');
    const std::string fresh = fmt::format("{} = {}", key, value);
    if (comment == std::string::npos) return fresh;
    return fmt::format("{:<{}} {}", fresh, comment - 1, line.substr(comment));
}

void write_constants(const Problem& problem, const Solution& solution, const std::string& presets) {
    std::map<std::string, std::string> values;
    KernelLibrary library;
    for (std::size_t i = 0; i < problem.knobs.size(); ++i)
        for (const std::string& key : keys_of(problem, problem.knobs[i])) {
            const FieldKind kind = field_of(library, key).kind;
            const std::string value = print_value(kind, solution.values[i]);
            values[key] = kind == FieldKind::time ? toml_string(value) : value;
        }
    const std::string path = fmt::format("{}/{}.toml", presets, problem.generation);
    const std::string front = fmt::format("[kernels.{}.", problem.library);
    std::istringstream text(read_bytes(path, kLongestToml));
    std::string written;
    std::string table;  // of this library; empty: another's
    for (std::string line; std::getline(text, line); written += line + "\n") {
        if (line.starts_with("["))
            table = line.starts_with(front)
                        ? line.substr(front.size(), line.find(']') - front.size())
                        : "";
        const std::string key = line.substr(0, line.find(' '));
        const auto value = values.find(fmt::format("{}.{}", table, key));
        if (table.empty() || value == values.end()) continue;
        line = with_value(line, key, value->second);
        values.erase(value);
    }
    if (!values.empty())
        throw InputError(
            fmt::format("{}: no line for {} of {}", path, values.begin()->first, problem.library));
    std::ofstream file(path + ".new", std::ios::binary);
    file << written << std::flush;
    if (!file) throw InputError(fmt::format("{}.new: cannot be written", path));
    std::filesystem::rename(path + ".new", path);
}

}  // namespace moehub::fit
