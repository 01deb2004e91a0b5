// Silicon that the proposals' tables take, beside the papers' figures.
#include "answers/question.hpp"

#include <moehub/area.hpp>

#include <fmt/format.h>

namespace moehub {
namespace {

struct Request {
    Wanted<Machine> machine{"dgx-h800"};
    Settings settings;
};

Options options_of(Request& request) {
    return {
        {"--machine", to(request.machine), "preset or TOML file (moehub list machines)"},
        {"--set", to(request.settings, {"machine"}),
         "change a machine's value, repeatable: --set moe_hub.rat_entries=32768"},
    };
}

const char* name_of(AreaSide side) {
    return side == AreaSide::gpu ? "GPU" : "switch";
}

Json published(const AreaTotal& total) {
    return value_if(total.published_mm2 > 0, total.published_mm2);
}

Json published_words(const AreaTotal& total) {
    if (total.published_mm2 == 0) return nullptr;
    return fmt::format("{}{}", total.published_below ? "under " : "", total.published_mm2);
}

Json difference(const AreaTotal& total) {
    if (total.published_mm2 == 0) return nullptr;
    if (total.published_below) return total.mm2 < total.published_mm2 ? "within" : "above";
    return total.mm2 / total.published_mm2 - 1;
}

Table tables_table(const std::vector<AreaTable>& tables) {
    using One = AreaTable;
    return table_of<One>(
        "tables", "",
        {{{"proposal", "proposal"}, &One::proposal},
         {{"in", "in"}, [](const One& one) { return name_of(one.side); }},
         {{"table", "table"}, &One::name},
         {{"cells", "cells", kText, 1},
          [](const One& one) { return one.kind == CellKind::sram ? "SRAM" : "CAM"; }},
         {{"copies", "copies", kWhole, 2}, &One::copies},
         {{"entries", "entries", kWhole, 2}, &One::entries},
         {{"bits each", "entry_bits", kWhole, 2}, &One::entry_bits},
         {hidden("banks"), &One::banks},
         {{"KiB", "bits", scaled(kTenths, 1.0 / 8192)}, &One::bits},
         {hidden("added"), &One::added},
         {hidden("process_nm"), &One::node_nm},
         {{"mm²", "area_mm2", fixed(4)}, &One::mm2},
         {{"", "", kText, 3}, [](const One& one) { return one.added ? "" : "there already"; }}},
        tables);
}

Table totals_table(const std::vector<AreaTotal>& totals) {
    using One = AreaTotal;
    return table_of<One>(
        "totals", "",
        {{{"proposal", "proposal"}, &One::proposal},
         {{"in", "in"}, [](const One& one) { return name_of(one.side); }},
         {{"process nm", "process_nm", kWhole}, &One::node_nm},
         {{"KiB", "bits", scaled(kTenths, 1.0 / 8192)}, &One::bits},
         {{"mm²", "area_mm2", fixed(4)}, &One::mm2},
         {{"published", "", kSignificant}, published_words},
         {hidden("published_mm2"), published},
         {hidden("published_below"),
          [](const One& one) { return value_if(one.published_mm2 > 0, one.published_below); }},
         {{"difference", "", kChange}, difference},
         {{"of a GH100", "share_of_gh100", {Show::Form::percent, 3}},
          [](const One& one) { return value_if(one.side == AreaSide::gpu, one.mm2 / kGh100Die); }},
         {{"there already", "there_already_mm2", fixed(4)}, &One::there_mm2}},
        totals);
}

Answer answer_of(const Request& request, const Asker&) {
    const Machine machine = machine_of(request.machine, request.settings);
    const auto tables = area_of(machine);
    Answer answer{"area", "Tables of " + request.machine.name_or("")};
    answer.lead = {fmt::format("tables of {}: {} GPUs, {} switches a node{}",
                               request.machine.name_or(""), machine.gpus(), machine.switches,
                               with_settings(request.settings.typed))};
    answer.facts["machine"] = machine.name;
    answer.sections = {
        {"Table by table", {}, {tables_table(tables)}},
        {"In all",
         {},
         {totals_table(area_totals(tables))},
         {"mm²: in the process of the proposal's paper; of one GPU, or of one switch with all its "
          "ports.",
          "there already: what switches have today to reduce for NVLS; in no total.",
          "A share of logic comes with every bank, fitted to DySHARP's GPU (docs/area.md)."}}};
    answer.configuration = {{"Machine: " + machine.name, to_toml(machine)}};
    return answer;
}

}  // namespace

Question area_question() {
    return {.ask = asking(options_of, answer_of)};
}

}  // namespace moehub
