#include "base/json.hpp"
#include "base/nearest.hpp"
#include "base/quantity.hpp"
#include "base/utf8.hpp"
#include "cli/commands.hpp"
#include "cli/html_output.hpp"
#include "cli/output.hpp"
#include "report/document.hpp"
#include "report/progress.hpp"
#include "report/reproduction.hpp"
#include "request/values.hpp"

#include <moehub/error.hpp>
#include <moehub/reproduce.hpp>

#include <filesystem>
#include <memory>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace moehub {
namespace {

struct Paper {
    const char* name;
    const char* title;
    const char* page;  ///< in the repository
    std::vector<NamedFigure> (*figures)();
    Reproduction (*run)(const ReproduceOptions&);
};
constexpr Paper kPapers[] = {
    {"moe-hub", "MoE-Hub, destination-agnostic communication (arXiv 2605.05888, ISCA 2026)",
     "docs/reproduction/moe-hub.md", moe_hub_figures, reproduce_moe_hub},
    {"dysharp", "DySHARP, in-switch multicast and reduction for MoE (arXiv 2605.05607, ISCA 2026)",
     "docs/reproduction/dysharp.md", dysharp_figures, reproduce_dysharp},
    {"cais", "CAIS, compute-aware in-switch computing for TP (arXiv 2605.05628, HPCA 2026)",
     "docs/reproduction/cais.md", cais_figures, reproduce_cais},
    {"moetuner", "MoETuner, balanced expert placement (arXiv 2502.06643)",
     "docs/reproduction/moetuner.md", moetuner_figures, reproduce_moetuner},
    {"pangu", "Pangu Ultra MoE, model and layout by simulation, on Ascend NPUs (arXiv 2505.04519)",
     "docs/reproduction/pangu.md", pangu_figures, reproduce_pangu},
};

struct Request {
    std::string paper;
    std::optional<std::string> figure;
    std::optional<std::string> threads;
    bool quick = false;
    bool json = false;
    std::string output;
    std::optional<std::string> page;
    HtmlOutput html;
};

std::string list_text() {
    std::string out = "Papers to reproduce, and their figures\n";
    for (const Paper& paper : kPapers) {
        out += fmt::format("\n  {:<12}  {}\n", paper.name, paper.title);
        for (const NamedFigure& figure : paper.figures())
            out += fmt::format("    {:<10}  {}\n", figure.name, figure.title);
    }
    return out + "\nmoehub reproduce PAPER runs all of one, --figure NAME a part.\n";
}

Json list_json() {
    Json json;
    for (const Paper& paper : kPapers) {
        Json figures = Json::array();
        for (const NamedFigure& figure : paper.figures())
            figures.push_back({{"name", figure.name}, {"title", figure.title}});
        json["papers"].push_back(
            {{"name", paper.name}, {"title", paper.title}, {"figures", figures}});
    }
    return json;
}

std::vector<std::string> paper_names() {
    std::vector<std::string> names;
    for (const Paper& paper : kPapers) names.emplace_back(paper.name);
    return names;
}

const Paper& paper_of(const std::string& name) {
    for (const Paper& paper : kPapers)
        if (name == paper.name) return paper;
    const std::vector<std::string> known = paper_names();
    throw InputError(fmt::format("reproduce: found {}, allowed: {}{}", moehub::quoted(name),
                                 fmt::join(known, ", "), did_you_mean(name, known)));
}

/// Where the page goes; empty: nowhere. Without --page only a whole run, where there is a folder
/// for it, replaces the page that is kept there.
std::string page_of(const Request& request, const Paper& paper) {
    if (request.page) return *request.page;
    if (request.quick || request.figure) return "";
    std::error_code ignored;
    const auto folder = std::filesystem::path(paper.page).parent_path();
    return std::filesystem::is_directory(folder, ignored) ? paper.page : "";
}

Reproduction run(const Request& request, const Paper& paper) {
    constexpr std::int64_t kMostThreads = 4096;
    Progress progress("simulating");
    ReproduceOptions options;
    options.figure = request.figure;
    options.quick = request.quick;
    if (request.threads)
        options.threads =
            static_cast<int>(count_of("--threads", *request.threads, {1, kMostThreads}));
    options.progress = [&progress](std::size_t done, std::size_t total) {
        progress.update(done, total);
    };
    return paper.run(options);
}

void execute(const Request& request) {
    if (request.paper.empty()) {
        if (request.quick || request.figure || request.page || request.html.asked())
            throw InputError(fmt::format("reproduce: found no paper, allowed: {}",
                                         fmt::join(paper_names(), ", ")));
        put(request.json ? document_text("reproduce", list_json())
                         : fitted(list_text(), style_for(request.output).width),
            request.output);
        return;
    }
    const Paper& paper = paper_of(request.paper);
    const std::string page = page_of(request, paper);
    require_writable(
        {output_file("-o", request.output),
         request.page ? OutputFile{"--page", *request.page} : output_file("--page", page),
         html_file(request.html)});
    const Reproduction all = run(request, paper);
    const TextStyle style = style_for(request.output);
    if (!page.empty()) put(reproduction_page(all), page);
    const auto document = [&] { return document_text("reproduce", reproduction_json(all)); };
    if (request.html.asked()) put_page(request.html, reproduction_html(all), document());
    put(request.json ? document() : fitted(reproduction_text(all, style), style.width),
        request.output);
    if (!page.empty()) fmt::print(stderr, "moehub: wrote {}\n", printable(page));
}

}  // namespace

Command reproduce_command() {
    const auto request = std::make_shared<Request>();
    std::vector<Option> options{
        {"paper", &request->paper, "which; without it they are listed", "PAPER", {}, paper_names()},
        {"--figure", &request->figure, "only this one", "NAME"},
        {"--quick", &request->quick,
         "a few cells of each figure; means are not comparable with the paper's"},
        {"--json", &request->json, "print JSON with every cell"},
        {"-o,--output", &request->output, "write to this file instead", "FILE"},
        {"--page", &request->page,
         "write the Markdown page to this file; without it a whole run writes "
         "docs/reproduction/PAPER.md where that folder is",
         "FILE"},
        {"--threads", &request->threads,
         "cells simulated at a time, same result; without it as many as cores", "N"},
    };
    add_html_option(options, request->html);
    return {
        "reproduce",
        "Run a paper's evaluation: every published number beside the simulator's",
        std::move(options),
        "Example:\n  moehub reproduce moe-hub --figure ablation",
        [request] { execute(*request); },
    };
}

}  // namespace moehub
