#include "report/tp_comparison.hpp"

#include "base/utf8.hpp"
#include "layers/tp/dataflow.hpp"
#include "report/table.hpp"
#include "study/collective_names.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace moehub {
namespace {

constexpr double kMega = 1e6;

std::string parts_words(const std::vector<SubLayer>& parts) {
    if (parts.size() == 1)
        return fmt::format("sub-layer {} ({})", name_of(parts.front()), words_of(parts.front()));
    std::vector<std::string_view> names;
    for (const SubLayer part : parts) names.push_back(name_of(part));
    return fmt::format("sub-layers {}", fmt::join(names, ", "));
}

/// Columns that need more than one system, and their cells.
struct Ratios {
    explicit Ratios(const Comparison& comparison)
        : several(comparison.rows.size() > 1),
          ideal(several && comparison.rows.front().share_of_ideal.has_value()) {}

    void add_columns(std::vector<Table::Column>& columns, const std::string& baseline) const {
        if (several) columns.push_back({fmt::format("vs {}", baseline)});
        if (ideal) columns.push_back({"of ideal"});
    }
    void add_cells(std::vector<std::string>& cells, const ComparisonRow& row) const {
        if (several) cells.push_back(fmt::format("{:.2f}×", row.speedup));
        if (ideal) cells.push_back(percent(*row.share_of_ideal));
    }

    bool several;
    bool ideal;
};

/// What the books of a run say of the rows.
std::string checked_words(const TpCase& layer) {
    const auto only = [&](SubLayer part) {
        return layer.parts.size() == 1 && layer.parts.front() == part;
    };
    const std::string rows = grouped(layer.tokens);
    if (only(SubLayer::attention_in))
        return fmt::format("each GPU read each of {} rows once", rows);
    if (only(SubLayer::attention_out))
        return fmt::format(
            "each of {} rows came to its GPU as the sum of all GPUs' partial sums, each once",
            rows);
    return fmt::format(
        "each GPU read each of {} rows once, as the sum of all GPUs' partial sums, each once",
        rows);
}

}  // namespace

std::string head_text(const TpCase& layer) {
    const int gpus = layer.machine.gpus();
    std::string out =
        printable(fmt::format("{} on {}: {} GPU{}, {} tokens, {}, {} grain", layer.model_name,
                              layer.machine_name, gpus, gpus == 1 ? "" : "s", grouped(layer.tokens),
                              parts_words(layer.parts), name_of(layer.options.grain)));
    if (!layer.settings.empty())
        out +=
            fmt::format("\n{}", printable(fmt::format("with {}", fmt::join(layer.settings, ", "))));
    return out + "\n";
}

std::string tp_table_text(const Comparison& comparison, const TextStyle& style) {
    const Ratios ratios(comparison);
    std::vector<Table::Column> columns{{"system", Table::Align::left}, {"time µs"}};
    ratios.add_columns(columns, comparison.baseline);
    for (const auto* title : {"exposed µs", "up MB", "down MB", "SM busy"})
        columns.push_back({title, Table::Align::right, 1});
    Table table(columns);
    for (const ComparisonRow& row : comparison.rows) {
        const LayerResult& result = row.result;
        std::vector<std::string> cells{result.system, tenths(to_us(result.time))};
        ratios.add_cells(cells, row);
        cells.insert(cells.end(), {tenths(to_us(result.breakdown.communication)),
                                   tenths(static_cast<double>(result.bytes_up) / kMega),
                                   tenths(static_cast<double>(result.bytes_down) / kMega),
                                   percent(result.sm_busy)});
        table.add(std::move(cells));
    }
    return table.text(style);
}

std::string tp_table_text(const TpCase& layer, const std::vector<Comparison>& parts,
                          const TextStyle& style) {
    if (parts.size() == 1) return tp_table_text(parts.front(), style);
    const Comparison sum = sum_of(parts);
    const Ratios ratios(sum);
    std::vector<Table::Column> columns{{"system", Table::Align::left}};
    for (const SubLayer part : layer.parts)
        columns.push_back({fmt::format("{} µs", name_of(part))});
    columns.push_back({"sum µs"});
    ratios.add_columns(columns, sum.baseline);
    columns.push_back({"exposed µs"});
    Table table(columns);
    for (std::size_t i = 0; i < sum.rows.size(); ++i) {
        const ComparisonRow& row = sum.rows[i];
        std::vector<std::string> cells{row.result.system};
        for (const Comparison& part : parts)
            cells.push_back(tenths(to_us(part.rows[i].result.time)));
        cells.push_back(tenths(to_us(row.result.time)));
        ratios.add_cells(cells, row);
        cells.push_back(tenths(to_us(row.result.breakdown.communication)));
        table.add(std::move(cells));
    }
    return table.text(style);
}

std::string tp_checks_text(const TpCase& layer, const Comparison& comparison) {
    std::string out =
        fmt::format("Checked{}: {}.\n", comparison.rows.size() > 1 ? " in every system" : "",
                    checked_words(layer));
    if (!comparison.rows.front().result.verified) return out;
    double error = 0;
    for (const ComparisonRow& row : comparison.rows)
        error = std::max(error, row.result.largest_error);
    return out + fmt::format(
                     "Verified: outputs equal the reference's, largest relative error "
                     "{:.2g}.\n",
                     error);
}

std::string dataflow_text(const TpInput& input, const SystemSpec& system) {
    if (system.program != "cais") return "";
    const std::vector<layers::Operator> operators = layers::operators_of(input);
    return "Dataflow optimizer:\n" +
           layers::to_text(operators,
                           layers::optimise(operators, input.machine.gpu, system.fuse_blocks));
}

}  // namespace moehub
