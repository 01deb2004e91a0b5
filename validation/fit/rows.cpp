#include "rows.hpp"

#include "base/csv.hpp"
#include "base/portable_math.hpp"
#include "sim/kernels/kernels.hpp"
#include "tuner_files.hpp"

#include <moehub/predict.hpp>

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace moehub::fit {
namespace {

constexpr double kCut = 0.5;

/// FNV-1a over the columns that are not the measurement, mixed: the same rows whatever their order.
bool hashed_out(const Measurement& measurement) {
    std::uint64_t hash = 1469598103934665603U;
    for (const auto& [column, text] : measurement.shape)
        for (const char c : text + ",") {
            hash ^= static_cast<unsigned char>(c);
            hash *= 1099511628211U;
        }
    hash ^= hash >> 33U;
    hash *= 0xff51afd7ed558ccdU;
    hash ^= hash >> 33U;
    return hash % 4 == 0;
}

KernelCase case_of(const CsvRow& row, const FileKind& kind) {
    if (kind.name == "moe") return parse_moe(row);
    if (kind.name == "mla") return parse_mla(row);
    return kind.name == "attention" ? parse_attention(row) : parse_gemm(row);
}

/// Caches of different formats apart: their kernels differ.
std::string group_of(const KernelCase& one) {
    std::string group = one.measurement.name;
    std::string products;
    for (const auto& [column, text] : one.measurement.shape) {
        if (column == "dtype") products = text;
        if (column == "kv_dtype") group += fmt::format(" {}, cache {}", products, text);
    }
    return group;
}

double seconds_of(const Cards& cards, const MeasuredCall& one) {
    if (const auto* moe = std::get_if<MoeCall>(&one.call)) {
        const Gpu& gpu = cards.at(one.card);
        const MoeKernel& kernel = moe_of(gpu.libraries.at(one.library), moe->format);
        return fused_moe(gpu, kernel, *moe, one.rows).seconds;
    }
    return predict_kernel(cards.at(one.card), one.library, one.call).seconds;
}

double quantile(std::vector<double>& values, double q) {
    std::sort(values.begin(), values.end());
    const double at = q * static_cast<double>(values.size() - 1);
    const auto below = static_cast<std::size_t>(at);
    const auto above = std::min(below + 1, values.size() - 1);
    return values[below] + (at - static_cast<double>(below)) * (values[above] - values[below]);
}

std::string quantiles(std::vector<double>& values) {
    if (values.empty()) return fmt::format("{:>23}", "");
    return fmt::format("{:5} {:6.1f} / {:5.1f} %", values.size(), 100 * quantile(values, 0.5),
                       100 * quantile(values, 0.9));
}

}  // namespace

std::vector<MeasuredCall> read_calls(const std::string& path) {
    const CsvTable table = CsvTable::read(path);
    std::vector<MeasuredCall> calls;
    TunerFiles files;
    const FileKind kind = file_kind_of(table);
    for (std::size_t i = 0; i < table.size(); ++i) {
        KernelCase one = case_of(table[i], kind);
        one.measurement.shape = shape_of(table[i], kind);
        const auto* moe = std::get_if<MoeCall>(&one.call);
        if (moe != nullptr && one.library.starts_with("trtllm")) files.add(*moe);
        if (one.measurement.value < kShortest) continue;
        calls.push_back({one.measurement.card, one.library, group_of(one), one.call,
                         moe != nullptr ? rows_of(*moe) : ExpertRows{}, one.measurement.value,
                         hashed_out(one.measurement)});
    }
    for (MeasuredCall& one : calls)
        if (const auto* moe = std::get_if<MoeCall>(&one.call))
            one.untuned = one.library.starts_with("trtllm") && files.collide(*moe);
    return calls;
}

double loss(const Cards& cards, const std::vector<MeasuredCall>& calls) {
    struct Sum {
        double loss = 0;
        double rows = 0;
    };
    std::map<std::string_view, Sum> groups;
    for (const MeasuredCall& one : calls) {
        if (one.held_out || one.untuned) continue;
        Sum& sum = groups[one.group];
        sum.loss += std::min(kCut, std::abs(portable_log(seconds_of(cards, one) * 1e6 / one.us)));
        sum.rows += 1;
    }
    double mean = 0;
    for (const auto& [name, sum] : groups)
        mean += sum.loss / sum.rows / static_cast<double>(groups.size());
    return mean;
}

std::string errors(const Cards& cards, const std::vector<MeasuredCall>& calls) {
    struct Errors {
        std::vector<double> fitted;
        std::vector<double> held_out;
        std::vector<double> untuned;
    };
    std::map<std::string, Errors> groups;
    for (const MeasuredCall& one : calls) {
        Errors& of = groups[one.group];
        auto& errors = one.untuned ? of.untuned : one.held_out ? of.held_out : of.fitted;
        errors.push_back(std::abs(seconds_of(cards, one) * 1e6 / one.us - 1));
    }
    std::string text;
    for (auto& [name, of] : groups) {
        text += fmt::format("    {:44} fitted {}   held out {}", name, quantiles(of.fitted),
                            quantiles(of.held_out));
        if (!of.untuned.empty()) text += fmt::format("   untuned {}", quantiles(of.untuned));
        text += "\n";
    }
    return text;
}

}  // namespace moehub::fit
