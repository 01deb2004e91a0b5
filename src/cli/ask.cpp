// A question from the command line to its answer on the screen and in files.
#include "answers/question.hpp"
#include "base/utf8.hpp"
#include "cli/command.hpp"
#include "cli/interrupt.hpp"
#include "report/answer_forms.hpp"
#include "report/progress.hpp"

#include <moehub/error.hpp>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <dlfcn.h>
#include <fmt/format.h>

namespace moehub {
namespace {

namespace fs = std::filesystem;

/// Where an answer goes.
struct Outputs {
    bool json = false;
    std::string text;  ///< empty: standard output
    std::optional<std::string> csv;
    std::optional<std::string> page;
    std::optional<std::string> trace;

    bool only_csv() const { return csv == "-"; }
};

Options options_of(Outputs& outputs, const Question& question) {
    Options options{{"--json", to(outputs.json), "print JSON (docs/json.md)"}};
    if (question.forms.csv)
        options.push_back({"--csv", to_file(outputs.csv),
                           "write the results as a table, too, one row each; - is standard output "
                           "and nothing else"});
    if (question.forms.page)
        options.push_back({"--html", to_file(outputs.page),
                           "write a page with charts and tables, too, for any browser"});
    if (question.forms.trace)
        options.push_back({"--trace", to_file(outputs.trace),
                           "also write a timeline that the Perfetto UI opens: kernels, SMs, links, "
                           "units, and some rows on their way"});
    if (question.forms.output)
        options.push_back({"-o,--output", to_file(outputs.text), "write to this file instead"});
    return options;
}

void check(const Outputs& outputs, const Asked& asked) {
    if (outputs.only_csv() && outputs.json)
        throw InputError("--csv: found - with --json, allowed: one of them on standard output");
    if (outputs.page && chart_library().empty())
        throw InputError(
            "--html: this build has no charts, allowed: a build that was configured with npm, or "
            "with -DMOEHUB_ECHARTS=/path/echarts.min.js");
    std::vector<OutputFile> files = asked.outputs();
    if (!outputs.text.empty()) files.push_back({"-o", outputs.text});
    if (outputs.csv && !outputs.only_csv()) files.push_back({"--csv", *outputs.csv});
    if (outputs.page) files.push_back({"--html", *outputs.page});
    if (outputs.trace) files.push_back({"--trace", *outputs.trace});
    require_writable(files, asked.inputs());
}

/// One bar for each thing that goes on.
class Bars {
  public:
    void show(std::string_view what, const Work& work) {
        if (what != label_) {
            bar_ = nullptr;  // gone before the next one comes
            bar_ = std::make_unique<Progress>(std::string(what));
            label_ = what;
        }
        bar_->update(work);
    }

  private:
    std::unique_ptr<Progress> bar_;
    std::string label_;
};

void say_written(const std::string& path) {
    fmt::print(stderr, "moehub: wrote {}\n", printable(path));
}

void give(const Answer& answer, const Outputs& outputs, const std::string& line) {
    if (answer.file == "") return;  // another process has the answer, and its files are the same
    if (outputs.csv) put(csv_text(answer), outputs.only_csv() ? "" : *outputs.csv);
    if (outputs.page) {
        put(page_html(answer, line), *outputs.page);
        say_written(*outputs.page);
    }
    if (outputs.trace) {
        put(answer.trace, *outputs.trace);
        fmt::print(stderr, "moehub: {}\n", answer.trace_words);
    }
    const std::string& file = answer.output.empty() ? outputs.text : answer.output;
    if (outputs.only_csv() && file.empty()) return;
    put(outputs.json ? json_text(answer) : text_of(answer, style_for(file)), file);
}

/// Open MPI's mpirun sets the first, and srun with PMIx the second.
bool started_by_mpi() {
    return std::getenv("OMPI_COMM_WORLD_SIZE") != nullptr || std::getenv("PMIX_RANK") != nullptr;
}

/// Paths of the MPI module: beside the program, as built; where it is installed.
std::vector<std::string> module_paths() {
    std::error_code ignored;
    const fs::path folder = fs::read_symlink("/proc/self/exe", ignored).parent_path();
    constexpr const char* kName = "libmoehub_mpi.so";
    return {(folder / kName).string(), (folder / ".." / MOEHUB_MODULES / kName).string()};
}

/// No launcher of MPI started this process with others.
bool is_alone() {
    const char* const size = std::getenv("OMPI_COMM_WORLD_SIZE");
    return !started_by_mpi() || (size != nullptr && std::string(size) == "1");
}

/// What the processes of a sweep that mpirun started speak by; null: this one is alone. Throws
/// InputError when there are several, and the module that speaks MPI is not there.
std::unique_ptr<Transport> load_transport() {
    if (is_alone()) return nullptr;
    std::string why;
    for (const std::string& path : module_paths()) {
        if (!fs::exists(path)) continue;
        // Open MPI loads parts of its own, which look for its symbols among the program's.
        void* const module = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
        void* const make = module == nullptr ? nullptr : dlsym(module, "moehub_transport");
        if (make == nullptr) {
            why = dlerror();
            continue;
        }
        auto transport = std::unique_ptr<Transport>(reinterpret_cast<Transport* (*)()>(make)());
        if (transport->size() > 1) return transport;
        transport->finish(true);
        return nullptr;
    }
    bad_input(
        "sweep: started by MPI, but libmoehub_mpi.so cannot be loaded ({}), allowed: a build where "
        "libopenmpi-dev is installed, or --shard without MPI",
        why.empty() ? "it was not built" : why);
}

Answer answer_to(const Asked& asked, Asker& asker) {
    Bars bars;
    asker.progress = [&bars](std::string_view what, const Work& work) { bars.show(what, work); };
    asker.wrote = [](const std::string& path) { FileInWork(path).is_written(); };
    asker.tell = [](const std::string& words) { fmt::print(stderr, "moehub: {}\n", words); };
    asker.leave = [](const std::string& words) { leave(words); };
    asker.transport = load_transport;
    asker.save = [](const std::string& path, std::string_view text) { put(text, path); };
    return asked.answer(asker);
}

}  // namespace

Command command_of(const Question& question) {
    const auto asked = std::make_shared<Asked>(question.ask());
    const auto outputs = std::make_shared<Outputs>();
    Command command{question.name,    question.doc,   question.overview,
                    question.example, asked->options, {}};
    append(command.options, options_of(*outputs, question));
    command.run = [question, asked, outputs, options = command.options](const Said& said,
                                                                        const std::string& line) {
        // From the start: who stops a search that has not begun gets what it begins with.
        std::optional<Interrupt> interrupt;
        if (question.ends_softly && is_alone()) interrupt.emplace();  // mpirun has its own way
        fill(options, said);
        check(*outputs, *asked);
        Asker asker;
        asker.said = said;
        asker.options = options;
        asker.form_words = question.form_words;
        asker.wants_page = outputs->page.has_value();
        asker.wants_trace = outputs->trace.has_value();
        if (interrupt) asker.stop = interrupt->token();
        Answer answer = answer_to(*asked, asker);
        answer.question = question.name;
        give(answer, *outputs, line);
        if (interrupt && interrupt->happened()) throw Interrupted();
        if (!answer.failed.empty()) throw std::runtime_error(answer.failed);
        if (!answer.missing.empty()) throw InputError(answer.missing);
    };
    return command;
}

}  // namespace moehub
