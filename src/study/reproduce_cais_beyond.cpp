// What the paper does not run: few tokens, and larger machines as they are.
#include "study/figure_table.hpp"
#include "study/reproduce_cais.hpp"

#include <fmt/format.h>

namespace moehub {
namespace {

/// A figure with nothing published.
FigureResult figure_of(FigureTable table) {
    FigureResult result;
    result.tables.push_back(std::move(table));
    return result;
}

void note_refusal(const std::vector<std::string>& labels, const ReproducedCell& cell,
                  FigureTable& table) {
    if (!cell.refusal.empty())
        table.notes.push_back(fmt::format("{}: {}", labels.back(), cell.refusal));
}

}  // namespace

FigureResult cais_decode_figure(const CaisScope& scope, const Lookup& cell) {
    FigureTable table{
        "decode",
        fmt::format("{}, few tokens: cais's time, and others' over it", scope.usual.name),
        {"sub-layer", "tokens"},
        {{"cais µs", NumberKind::time},
         {"over uncoordinated", NumberKind::ratio},
         {"over cais-base", NumberKind::ratio},
         {"over tp-nvls", NumberKind::ratio}},
        {},
        {}};
    for (const std::string& part : scope.few_parts)
        for (const std::int64_t tokens : scope.decode) {
            CaisModel few = scope.usual;
            few.tokens = tokens;
            const ReproducedCell& own = cell(cais_cell(few, part, kCais));
            FigureTable::Row row{{part, fmt::format("{}", tokens)}, {to_us(own.time)}, false};
            note_refusal(row.labels, own, table);
            for (const std::string_view system : {kCaisUncoordinated, kCaisBase, kTpNvls})
                row.values.push_back(faster(cell(cais_cell(few, part, system)).time, own.time));
            table.rows.push_back(std::move(row));
        }
    return figure_of(std::move(table));
}

FigureResult cais_gpus_figure(const CaisScope& scope, const Lookup& cell) {
    FigureTable table{"gpus",
                      fmt::format("{} at full scale on machines as they are: others' time over "
                                  "cais's",
                                  scope.usual.name),
                      {"machine", "sub-layer", "GPUs"},
                      {{"cais µs", NumberKind::time},
                       {"over uncoordinated", NumberKind::ratio},
                       {"over cais-base", NumberKind::ratio},
                       {"over tp-nvls", NumberKind::ratio}},
                      {},
                      {}};
    for (const CaisMachine& machine : scope.machines)
        for (const std::string& part : scope.few_parts) {
            const auto under = [&](std::string_view system) -> const ReproducedCell& {
                CellKey key = cais_cell(scope.usual, part, system);
                key.gpus = machine.gpus;
                key.machine = machine.machine;
                key.changes = cais_size(kCaisFullScale);
                return cell(key);
            };
            const ReproducedCell& own = under(kCais);
            FigureTable::Row row{
                {machine.machine, part, fmt::format("{}", machine.gpus)}, {to_us(own.time)}, false};
            note_refusal(row.labels, own, table);
            for (const std::string_view system : {kCaisUncoordinated, kCaisBase, kTpNvls})
                row.values.push_back(faster(under(system).time, own.time));
            table.rows.push_back(std::move(row));
        }
    return figure_of(std::move(table));
}

}  // namespace moehub
