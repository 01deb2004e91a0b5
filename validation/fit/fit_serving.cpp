// Fits what an engine adds to its kernels (presets/engines) to half of the published serving
// measurements, and prints errors of both halves. validation/fit_serving calls it.
//
// Minimised is the mean of |log(predicted / measured)|, cut at 0.5, over the rows of each engine,
// model, card and mode, each such group counting the same. Rows go to a half by a hash of their
// shape, so that repeated rows stay together.
#include "base/csv.hpp"
#include "base/portable_math.hpp"
#include "nelder_mead.hpp"
#include "study/validate_kinds.hpp"

#include <moehub/error.hpp>
#include <moehub/presets.hpp>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/format.h>

namespace moehub::fit {
namespace {

/// Rows alone do not tell launches in a layer from the host's time between steps: constants are
/// drawn to where they start. A factor of 2 in all of them weighs as much as an error of 1 %.
constexpr double kPull = 0.02;

/// How much more a group of decode workers weighs: its rows are steps and nothing else, those of
/// mixed ones hang on when prompts came.
constexpr double kDecode = 3;
constexpr double kEnough = 5;  ///< rows of a group that weighs in full

struct Constant {
    std::string key;
    double start;
    double (*get)(const EngineOverheads&);
    void (*set)(EngineOverheads&, double);
    std::string_view unit = "";
};

std::vector<Constant> constants() {
    const auto us = [](double value) { return static_cast<Ps>(std::llround(value * 1000)) * kNs; };
    static const auto to_ps = us;
    return {
        {"host", 500, [](const EngineOverheads& e) { return to_us(e.host); },
         [](EngineOverheads& e, double v) { e.host = to_ps(v); }, " us"},
        {"host_request", 3, [](const EngineOverheads& e) { return to_us(e.host_request); },
         [](EngineOverheads& e, double v) { e.host_request = to_ps(v); }, " us"},
        {"host_mixed", 300, [](const EngineOverheads& e) { return to_us(e.host_mixed); },
         [](EngineOverheads& e, double v) { e.host_mixed = to_ps(v); }, " us"},
        {"small_kernel", 2, [](const EngineOverheads& e) { return to_us(e.small_kernel); },
         [](EngineOverheads& e, double v) { e.small_kernel = to_ps(v); }, " us"},
        {"mla_kernels", 3, [](const EngineOverheads& e) { return e.mla_kernels; },
         [](EngineOverheads& e, double v) { e.mla_kernels = v; }},
        {"moe_kernels", 3, [](const EngineOverheads& e) { return e.moe_kernels; },
         [](EngineOverheads& e, double v) { e.moe_kernels = v; }},
        {"w4_start", 30, [](const EngineOverheads& e) { return to_us(e.w4_start); },
         [](EngineOverheads& e, double v) { e.w4_start = to_ps(v); }, " us"},
        {"start_hidden", 0.4, [](const EngineOverheads& e) { return e.start_hidden; },
         [](EngineOverheads& e, double v) { e.start_hidden = std::min(1.0, v); }},
    };
}

struct Row {
    ServingRow row;
    bool fitted = false;
};

bool in_first_half(const ServingRow& row) {
    std::uint64_t hash = 14695981039346656037U;
    for (const auto& [column, value] : row.measurement.shape)
        for (const char c : value + ",")
            hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211U;
    return (hash >> 32U) % 2 == 0;
}

std::vector<Row> read_rows(const std::string& path) {
    const CsvTable table = CsvTable::read(path);
    std::vector<Row> rows;
    const FileKind kind = file_kind_of(table);
    for (std::size_t i = 0; i < table.size(); ++i) {
        ServingRow one = parse_serving(table[i]);
        one.measurement.shape = shape_of(table[i], kind);
        const bool fitted = in_first_half(one);
        rows.push_back({std::move(one), fitted});
    }
    return rows;
}

/// Absolute errors of a half by group; rows that cannot be are left out.
using Errors = std::map<std::string, std::vector<double>>;

double predicted(ServingBench& bench, const ServingRow& row) {
    return predicted_tpot(bench.clock(bench.serving_case(row)), row).seconds * 1e6;
}

/// An engine on a generation of cards.
struct Fitted {
    std::string engine;
    bool blackwell = false;

    bool has(const ServingRow& row) const {
        return row.engine == engine && blackwell == (row.gpu.find("b200") != std::string::npos);
    }
    EngineOverheads& in(ServingBench& bench) const {
        EngineSpec& spec = bench.engine(engine);
        return blackwell ? spec.blackwell : spec.hopper;
    }
    std::string generation() const { return blackwell ? "blackwell" : "hopper"; }
};

double loss(ServingBench& bench, const std::vector<Row>& rows, const Fitted& what) {
    std::map<std::string, std::pair<double, int>> groups;
    for (const Row& one : rows) {
        if (!one.fitted || !what.has(one.row)) continue;
        const double time = predicted(bench, one.row);
        if (time == 0) continue;
        auto& [sum, count] = groups[one.row.measurement.name];
        sum += std::min(0.5, std::abs(portable_log(time / one.row.measurement.value)));
        ++count;
    }
    double all = 0;
    double weights = 0;
    for (const auto& [name, group] : groups) {
        const double known = std::min(1.0, group.second / kEnough);
        const double weight = known * (name.ends_with("decode") ? kDecode : 1);
        all += weight * group.first / group.second;
        weights += weight;
    }
    return all / weights;
}

void set_all(EngineOverheads& overheads, const Point& values) {
    const auto all = constants();
    for (std::size_t i = 0; i < all.size(); ++i) all[i].set(overheads, values[i]);
}

/// Mean square of the logarithms between two points.
double distance(const Point& a, const Point& b) {
    double sum = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
        const double log = portable_log(a[i] / b[i]);
        sum += log * log;
    }
    return sum / static_cast<double>(a.size());
}

void fit_overheads(ServingBench& bench, const std::vector<Row>& rows, const Fitted& what) {
    Point start;
    for (const Constant& one : constants()) start.push_back(one.start);
    const auto function = [&](const Point& values) {
        set_all(what.in(bench), values);
        return loss(bench, rows, what) + kPull * distance(values, start);
    };
    Point best = minimise(function, start, {.calls = 250, .step = 0.5, .tolerance = 1e-6});
    best = minimise(function, best, {.calls = 150, .step = 0.2, .tolerance = 1e-6});
    // Three digits are written, so three digits are judged.
    for (double& value : best) value = std::stod(fmt::format("{:.3g}", value));
    set_all(what.in(bench), best);
}

std::string value_of(const Constant& one, const EngineOverheads& overheads) {
    const std::string number = fmt::format("{:.3g}", one.get(overheads));
    return one.unit.empty() ? number : fmt::format("\"{}{}\"", number, one.unit);
}

/// The engine's file up to its first table, and the tables anew.
void write(const std::string& path, ServingBench& bench, const std::string& engine) {
    std::ifstream in(path);
    std::string text;
    for (std::string line; std::getline(in, line) && !line.starts_with("[");) text += line + '\n';
    for (const bool blackwell : {false, true}) {
        const Fitted what{engine, blackwell};
        text += fmt::format("{}[{}]\n", blackwell ? "\n" : "", what.generation());
        text += fmt::format("fp8_cache = {}\n", what.in(bench).fp8_cache);
        for (const Constant& one : constants())
            text += fmt::format("{} = {}\n", one.key, value_of(one, what.in(bench)));
    }
    in.close();
    std::ofstream(path) << text;
}

double quantile(std::vector<double> values, double q) {
    std::sort(values.begin(), values.end());
    const double at = q * static_cast<double>(values.size() - 1);
    const auto below = static_cast<std::size_t>(at);
    const auto above = std::min(below + 1, values.size() - 1);
    return values[below] + (at - static_cast<double>(below)) * (values[above] - values[below]);
}

std::string cell(const std::vector<double>& errors) {
    if (errors.empty()) return fmt::format("{:>16}", "");
    return fmt::format("{:>4} {:>5.1f} /{:>4.0f}", errors.size(), 100 * quantile(errors, 0.5),
                       100 * quantile(errors, 0.9));
}

void print_errors(ServingBench& bench, const std::vector<Row>& rows) {
    std::map<std::string, std::array<std::vector<double>, 3>> groups;
    for (const Row& one : rows) {
        const ServingTpot tpot = predicted_tpot(bench.clock(bench.serving_case(one.row)), one.row);
        if (tpot.seconds == 0) continue;
        const double error = std::abs(tpot.seconds * 1e6 / one.row.measurement.value - 1);
        const std::string mode = one.row.load.prefills ? "mixed" : "decode";
        std::vector<std::string> names = {one.row.model + " " + one.row.gpu, "all " + mode};
        if (tpot.speculative) names.push_back("read as speculative");
        for (const std::string& name : names) {
            groups[name][one.fitted ? 0 : 1].push_back(error);
            groups[name][2].push_back(error);
        }
    }
    fmt::print("{:<28}{:>18}{:>18}{:>18}\n", "rows, median / 90th in %", "fitted half",
               "other half", "all");
    for (const auto& [name, halves] : groups)
        fmt::print("{:<28}  {}  {}  {}\n", name, cell(halves[0]), cell(halves[1]), cell(halves[2]));
}

int run(const std::string& folder, bool keep) {
    const std::vector<Row> rows = read_rows(folder + "/validation/published_serving_requests.csv");
    ServingBench bench;
    for (const std::string engine : {"trtllm", "sglang", "vllm"}) {
        for (const bool blackwell : {false, true}) {
            const Fitted what{engine, blackwell};
            if (!keep) fit_overheads(bench, rows, what);
            fmt::print("{} {}: mean |log error| {:.4f} on the fitted half\n", engine,
                       what.generation(), loss(bench, rows, what));
            for (const Constant& one : constants())
                fmt::print("  {} = {}\n", one.key, value_of(one, what.in(bench)));
        }
        if (!keep) write(folder + "/presets/engines/" + engine + ".toml", bench, engine);
    }
    print_errors(bench, rows);
    return 0;
}

}  // namespace
}  // namespace moehub::fit

/// fit_serving FOLDER [--keep]: of the repository; --keep prints errors without fitting.
int main(int argc, char** argv) {
    try {
        return moehub::fit::run(argc > 1 ? argv[1] : ".", argc > 2);
    } catch (const moehub::InputError& error) {
        fmt::print(stderr, "fit_serving: {}\n", error.what());
        return 2;
    }
}
