// What there is: lists of presets, one of them in full, and the systems' programs.
#include "answers/question.hpp"

#include <moehub/compare.hpp>
#include <moehub/error.hpp>
#include <moehub/tp.hpp>

#include <algorithm>

#include <fmt/format.h>

namespace moehub {
namespace {

const std::vector<std::string> kKinds{"machines", "models",  "gpus",     "generations",
                                      "systems",  "engines", "trainers", "shapes"};

bool has(const std::vector<SystemInfo>& systems, const std::string& name) {
    return std::any_of(systems.begin(), systems.end(),
                       [&](const SystemInfo& one) { return one.name == name; });
}

// moehub list

struct ListRequest {
    std::vector<std::string> kinds = kKinds;
};

Options list_options(ListRequest& request) {
    Named<std::vector<std::string>> kinds;
    for (const std::string& kind : kKinds) kinds.emplace_back(kind, std::vector<std::string>{kind});
    Target target = to(request.kinds, kinds);
    target.type = "KIND";
    return {{"kind", std::move(target), "one of the kinds; without it all"}};
}

Table presets_table(const std::string& key, const std::string& caption, const std::string& kind,
                    const std::vector<std::string>& names) {
    return table_of<std::string>(
        key, caption,
        {{{"name", "name"}, [](const std::string& name) { return name; }},
         {{"what it is", "title", kProse},
          [kind](const std::string& name) { return preset_title(kind, name); }}},
        names);
}

/// Systems by what they run; some run both.
void add_systems(Section& section) {
    const std::vector<SystemInfo> moe = all_systems();
    const std::vector<SystemInfo> tp = all_tp_systems();
    std::vector<std::string> of_layers, of_sub_layers;
    for (const std::string& name : preset_names("systems")) {
        if (has(tp, name)) of_sub_layers.push_back(name);
        if (has(moe, name) || !has(tp, name)) of_layers.push_back(name);
    }
    section.blocks.push_back(presets_table("systems", "systems", "systems", of_layers));
    section.blocks.push_back(
        presets_table("tp_systems", "systems of tensor-parallel sub-layers (--layer-type tp)",
                      "systems", of_sub_layers));
}

Answer list_answer(const ListRequest& request, const Asker&) {
    Answer answer{.title = "What there is"};
    Section section{""};
    for (const std::string& kind : request.kinds) {
        if (kind == "systems")
            add_systems(section);
        else
            section.blocks.push_back(presets_table(kind, kind, kind, preset_names(kind)));
    }
    answer.sections = {std::move(section)};
    return answer;
}

// moehub show

struct ShowRequest {
    std::string name;
    Settings settings;
    bool sources = false;
};

Options show_options(ShowRequest& request) {
    Target name = to_text(request.name, "NAME");
    for (const std::string& kind : kKinds)
        for (std::string& preset : preset_names(kind)) name.choices.push_back(std::move(preset));
    return {
        {"name", std::move(name), "preset (moehub list) or TOML file", kRequired},
        {"--set", to(request.settings, {"machine"}),
         "change a value first, repeatable: --set link.latency=\"300 ns\""},
        {"--sources", to(request.sources),
         "print the files behind it as written, with the source of every number",
         excludes({"--json", "--set"})},
    };
}

template <class Noun>
void show(Answer& answer, const Noun& noun) {
    answer.file = to_toml(noun);
    answer.facts = Json::parse(to_json(noun));
}

Answer show_answer(const ShowRequest& request, const Asker&) {
    const std::string& name = request.name;
    const Overrides& settings = request.settings.machine;
    const std::string kind = kind_of(name);
    Answer answer{.title = name};
    if (request.sources || kind == "generations" || kind == "shapes")  // these are their files
        answer.file = sources_of(name);
    else if (kind == "machines")
        show(answer, load_machine(name, settings));
    else if (kind == "models")
        show(answer, load_model(name, settings));
    else if (kind == "systems")
        show(answer, load_system(name, settings));
    else if (kind == "engines")
        show(answer, load_engine(name, settings));
    else if (kind == "trainers")
        show(answer, load_trainer(name, settings));
    else
        show(answer, load_gpu(name, settings));
    return answer;
}

// moehub lines

/// Lines that the MoE-Hub paper (arXiv 2605.05888) counted in published systems.
struct Counted {
    const char* system;
    int scheduling_host;
    int scheduling_device;
    int communication_host;
    int communication_device;
};
const std::vector<Counted> kCounted{
    {"CCFuser", 603, 211, 24, 34},          {"Comet", 6347, 5589, 1197, 1305},
    {"DeepEP", 1604, 3326, 498, 1899},      {"FlashDMoE", 720, 1706, 513, 1137},
    {"Primus-Turbo", 1341, 853, 386, 2260},
};
constexpr const char* kPaperOnMoeHub = "no scheduling code, fewer than 10 store instructions";

struct LinesRequest {
    std::string system;
};

Options lines_options(LinesRequest& request) {
    Target system = to_text(request.system, "SYSTEM");
    system.choices = preset_names("systems");
    return {{"system", std::move(system), "print the program of this one"}};
}

Table programs_table(const std::string& key, const std::string& caption,
                     const std::vector<SystemInfo>& systems) {
    /// The first system with the same program, where it is another.
    const auto title = [&systems](const SystemInfo& one) {
        const auto first = std::find_if(systems.begin(), systems.end(), [&](const auto& other) {
            return other.program == one.program;
        });
        return first->name == one.name ? one.title
                                       : fmt::format("{} (program of {})", one.title, first->name);
    };
    return table_of<SystemInfo>(key, caption,
                                {{{"system", "system"}, &SystemInfo::name},
                                 {{"lines", "lines", kWhole}, &SystemInfo::lines},
                                 {{"", "", kProse}, title},
                                 {hidden("title"), &SystemInfo::title}},
                                systems);
}

Table counted_table() {
    const auto count = [](int Counted::*member) {
        return [member](const Counted& one) { return one.*member; };
    };
    return table_of<Counted>(
        "counted_by_paper",
        "What the MoE-Hub paper (arXiv 2605.05888) counted in real code bases. Another measure: "
        "compare systems within one table, not lines across the two.",
        {{{"published system", "system"}, &Counted::system},
         {{"scheduling: host", "scheduling.host", kWhole}, count(&Counted::scheduling_host)},
         {{"device", "scheduling.device", kWhole}, count(&Counted::scheduling_device)},
         {{"communication: host", "communication.host", kWhole},
          count(&Counted::communication_host)},
         {{"device", "communication.device", kWhole}, count(&Counted::communication_device)}},
        kCounted);
}

/// A system's program; of a name that both kinds of layers have, the MoE layers'.
Answer program_answer(const std::string& name) {
    std::vector<SystemInfo> systems = all_systems();
    for (SystemInfo& one : all_tp_systems()) systems.push_back(std::move(one));
    const auto one = std::find_if(systems.begin(), systems.end(),
                                  [&](const auto& system) { return system.name == name; });
    if (one == systems.end()) check_systems({name});
    Answer answer{.title = name};
    answer.facts = {{"system", one->name},
                    {"title", one->title},
                    {"lines", one->lines},
                    {"program", one->program}};
    answer.file = one->program;
    return answer;
}

Answer lines_answer(const LinesRequest& request, const Asker&) {
    if (!request.system.empty()) return program_answer(request.system);
    Answer answer{.title = "Lines of each system's program"};
    answer.lead = {
        "Lines of each system's program here: what its GPUs run, on top of what all share. Blank "
        "lines, comments and includes aside; moehub lines SYSTEM prints it."};
    answer.facts["paper_on_moe_hub"] = kPaperOnMoeHub;
    answer.sections = {
        {"Here",
         {},
         {programs_table("systems", "", all_systems()),
          programs_table("tp_systems", "Tensor-parallel sub-layers:", all_tp_systems())}},
        {"By the paper", {}, {counted_table()}, {fmt::format("MoE-Hub: {}", kPaperOnMoeHub)}}};
    return answer;
}

}  // namespace

Question list_question() {
    return {.ask = asking(list_options, list_answer)};
}

Question show_question() {
    return {.first = "name",
            .forms = {.csv = false, .page = false},
            .ask = asking(show_options, show_answer)};
}

Question lines_question() {
    return {.first = "system", .ask = asking(lines_options, lines_answer)};
}

}  // namespace moehub
