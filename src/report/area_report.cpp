#include "report/area_report.hpp"

#include "report/table.hpp"

#include <fmt/format.h>

namespace moehub {
namespace {

constexpr const char* kNotes =
    "mm²: in the process of the proposal's paper; of one GPU, or of one switch with all its "
    "ports.\n"
    "there already: what switches have today to reduce for NVLS; in no total.\n"
    "A share of logic comes with every bank, fitted to DySHARP's GPU (docs/area.md).\n";

const char* name_of(AreaSide side) {
    return side == AreaSide::gpu ? "GPU" : "switch";
}
const char* name_of(CellKind kind) {
    return kind == CellKind::sram ? "SRAM" : "CAM";
}
double kib(std::int64_t bits) {
    return static_cast<double>(bits) / 8192;
}
std::string mm2(double area) {
    return fmt::format("{:.4f}", area);
}

std::string tables_text(const std::vector<AreaTable>& tables, const TextStyle& style) {
    Table text({{"proposal", Table::Align::left},
                {"in", Table::Align::left},
                {"table", Table::Align::left},
                {"cells", Table::Align::left, 1},
                {"copies", Table::Align::right, 2},
                {"entries", Table::Align::right, 2},
                {"bits each", Table::Align::right, 2},
                {"KiB"},
                {"mm²"},
                {"", Table::Align::left, 3}});
    for (const AreaTable& one : tables)
        text.add({one.proposal, name_of(one.side), one.name, name_of(one.kind), grouped(one.copies),
                  grouped(one.entries), grouped(one.entry_bits), tenths(kib(one.bits())),
                  mm2(one.mm2), one.added ? "" : "there already"});
    return text.text(style);
}

std::string published_text(const AreaTotal& total) {
    if (total.published_mm2 == 0) return "";
    return fmt::format("{}{}", total.published_below ? "under " : "", total.published_mm2);
}

std::string difference_text(const AreaTotal& total) {
    if (total.published_mm2 == 0) return "";
    if (total.published_below) return total.mm2 < total.published_mm2 ? "within" : "above";
    return percent(total.mm2 / total.published_mm2 - 1, true);
}

std::string totals_text(const std::vector<AreaTotal>& totals, const TextStyle& style) {
    Table text({{"proposal", Table::Align::left},
                {"in", Table::Align::left},
                {"process"},
                {"KiB"},
                {"mm²"},
                {"published"},
                {"difference"},
                {"of a GH100"},
                {"there already"}});
    for (const AreaTotal& one : totals)
        text.add(
            {one.proposal, name_of(one.side), fmt::format("{} nm", one.node_nm),
             tenths(kib(one.bits)), mm2(one.mm2), published_text(one), difference_text(one),
             one.side == AreaSide::gpu ? fmt::format("{:.3f} %", 100 * one.mm2 / kGh100Die) : "",
             one.there_mm2 > 0 ? mm2(one.there_mm2) : ""});
    return text.text(style);
}

Json table_json(const AreaTable& one) {
    return {{"proposal", one.proposal},     {"in", name_of(one.side)},   {"table", one.name},
            {"cells", name_of(one.kind)},   {"copies", one.copies},      {"entries", one.entries},
            {"entry_bits", one.entry_bits}, {"banks", one.banks},        {"bits", one.bits()},
            {"added", one.added},           {"process_nm", one.node_nm}, {"area_mm2", one.mm2}};
}

Json total_json(const AreaTotal& one) {
    Json json{{"proposal", one.proposal},  {"in", name_of(one.side)},
              {"process_nm", one.node_nm}, {"bits", one.bits},
              {"area_mm2", one.mm2},       {"there_already_mm2", one.there_mm2}};
    const bool published = one.published_mm2 > 0;
    json["published_mm2"] = published ? Json(one.published_mm2) : Json(nullptr);
    json["published_below"] = published ? Json(one.published_below) : Json(nullptr);
    json["share_of_gh100"] = one.side == AreaSide::gpu ? Json(one.mm2 / kGh100Die) : Json(nullptr);
    return json;
}

}  // namespace

std::string area_text(const std::vector<AreaTable>& tables, const TextStyle& style) {
    return tables_text(tables, style) + "\n" + totals_text(area_totals(tables), style) + "\n" +
           kNotes;
}

Json area_json(const Machine& machine, const std::vector<AreaTable>& tables) {
    Json json;
    json["machine"] = machine.name;
    json["tables"] = Json::array();
    for (const AreaTable& one : tables) json["tables"].push_back(table_json(one));
    json["totals"] = Json::array();
    for (const AreaTotal& one : area_totals(tables)) json["totals"].push_back(total_json(one));
    return json;
}

}  // namespace moehub
