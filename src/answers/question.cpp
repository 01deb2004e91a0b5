#include "answers/question.hpp"

#include "base/files.hpp"
#include "base/utf8.hpp"

#include <moehub/error.hpp>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

namespace moehub {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(const std::string& path, int error) {
    bad_input("{}: cannot be written: {}", printable(path), std::strerror(error));
}

bool is_among(const std::vector<std::string>& files, const std::string& path) {
    return std::any_of(files.begin(), files.end(),
                       [&](const std::string& one) { return same_file(one, path); });
}

std::vector<std::string> folders_of(const std::vector<std::string>& paths) {
    std::vector<std::string> folders;
    std::error_code ignored;
    for (const std::string& path : paths)
        if (fs::is_directory(path, ignored)) folders.push_back(path);
    return folders;
}

void require_access(const std::string& path) {
    std::error_code ignored;
    if (fs::is_directory(path, ignored)) fail(path, EISDIR);
    if (fs::exists(path, ignored)) {
        if (access(path.c_str(), W_OK) != 0) fail(path, errno);
        return;
    }
    const std::string folder = fs::path(path).parent_path().string();
    if (access(folder.empty() ? "." : folder.c_str(), W_OK) != 0) fail(path, errno);
}

/// What help, completion, the manual page and docstrings say of a question.
struct QuestionRow {
    Question (*question)();
    const char* name;      ///< command's name
    const char* overview;  ///< what stands behind the name in the program's overview
    const char* doc;       ///< one line
    const char* example;
    const char* python = nullptr;  ///< the function, where it has another name; "": there is none
};

/// All questions, in the order that help lists them.
const QuestionRow kQuestions[] = {
    {compare_question, "compare",
     "a MoE or tensor-parallel layer under several systems, side by side",
     "Simulate a MoE or tensor-parallel layer under several systems: time, speed-up, traffic",
     "moehub compare --machine dgx-h800 --model mixtral-8x7b --gpus 8 --tokens 8192 \\\n      "
     "--systems ideal,megatron-te,moe-hub --routing normal:0.032\n"
     "  moehub compare --layer-type tp --sublayer all --systems ideal,tp-nvls,cais"},
    {run_question, "run", "one of them, with what its hardware units counted",
     "Simulate a MoE or tensor-parallel layer under one system, with what its units counted",
     "moehub run --system moe-hub --set moe_hub.rat_entries=16 --grain packet\n"
     "  moehub run --layer-type tp --system cais --sublayer L2"},
    {gain_question, "gain", "where a system's lead comes from: host, fusion, overlap, hardware",
     "Where a system's lead comes from: host, activation, overlap, or the hardware",
     "moehub gain --machine dgx-h800 --models mixtral-8x7b,deepseek-v3 --tokens 32768"},
    {model_question, "model", "a whole model under several systems, end to end",
     "Time a whole model under several systems: by layer type, tokens/s, MFU",
     "moehub model --machine dgx-h800 --model mixtral-8x7b --tokens 8192 \\\n      --systems "
     "megatron-te,moe-hub --training\n"
     "  moehub model --model llama-7b --graphs\n"
     "  moehub model --attention-tp 4 --attention-system cais\n"
     "  moehub model --decode --machine h100-cluster --gpus 72 --model deepseek-v3 \\\n      "
     "--context 2000 --batch-per-gpu 128",
     "time_model"},
    {sweep_question, "sweep", "many settings, seeds and systems, over all cores, into a database",
     "Simulate many settings × seeds × systems over all cores, into a database; goes on where it "
     "was stopped",
     "moehub sweep --sweep link.latency=100ns,250ns,1us --seeds 3 --csv latency.csv\n"
     "  moehub sweep --sweep tokens=1024..65536*4 --sweep routing=uniform,normal:0.032\n"
     "  moehub sweep --kind collective --set op=all_reduce --sweep bytes=1M..1G*4\n"
     "  moehub sweep examples/studies/rat_entries.toml --dry-run\n"
     "  mpirun -n 4 moehub sweep STUDY.toml"},
    {merge_question, "merge", "databases of parts of a sweep, joined",
     "Join databases of parts of a sweep (moehub sweep --shard) into one",
     "moehub merge latency.sqlite latency-1-of-4.sqlite latency-2-of-4.sqlite \\\n      "
     "latency-3-of-4.sqlite latency-4-of-4.sqlite"},
    {plan_question, "plan", "the fastest parallel layouts of a training run, and why",
     "Plan a training run: the fastest parallel layouts of a model on a cluster, and why",
     "moehub plan --model qwen3-235b-a22b --machine h100-cluster --gpus 256 \\\n      "
     "--global-batch 2048\n"
     "  moehub plan --fix tp=2,pp=8 --precision fp8\n"
     "  moehub plan --system deepep,moe-hub,dysharp\n"
     "  moehub plan --explain tp=2,pp=8,ep=8\n"
     "  moehub plan --rank validation/published_training.csv\n"
     "  moehub plan --search-model --params 718e9±5% --active 39e9±5%"},
    {area_question, "area", "silicon that the proposals' tables take",
     "Silicon that the proposals' tables take, beside the papers' figures",
     "moehub area --set moe_hub.rat_entries=32768 --set dysharp.tlb_entries=1024"},
    {lines_question, "lines", "the systems, and how long their programs are",
     "List the systems and the lines their programs need; print one program",
     "moehub lines moe-hub"},
    {list_question, "list", "what there is: machines, GPUs, models, systems",
     "List the machines, models, GPUs, systems, serving engines, trainers and axes of shape "
     "searches there are",
     "moehub list machines", ""},
    {show_question, "show", "everything known about one of them",
     "Print everything known about a machine, model, GPU, system, engine or trainer, as TOML; with "
     "--json times in picoseconds, sizes in bytes, rates per second",
     "moehub show dgx-h100 --set gpu=h200-sxm -o mine.toml"},
    {collective_question, "collective", "time, bandwidth and traffic of one collective",
     "Simulate one collective on a machine's fabric: time, bandwidth, traffic",
     "moehub collective --op all_reduce --algorithm nvls --bytes 8G\n"
     "  moehub collective --op all_reduce --algorithm auto --bytes 4M"},
    {predict_question, "predict", "time of one kernel of a serving engine on one card",
     "Predict the time of one kernel of a serving engine on one card",
     "moehub predict gemm --gpu b200 --dtype fp8 m=4096 n=7168 k=2048 --explain"},
    {validate_question, "validate", "the model against measured times",
     "Predict every row of a CSV file of measurements and show the errors",
     "moehub validate validation/published_collectives.csv"},
    {reproduce_question, "reproduce", "a paper's published numbers beside the simulator's",
     "Run a paper's evaluation: every published number beside the simulator's",
     "moehub reproduce moe-hub --figure ablation"},
    {profile_question, "profile", "what recorded routing is like",
     "What recorded routing is like: load, pairs, drift, and what placing can win",
     "moehub profile law.npy intent.npy --gpus 8 --layer 3 --html routing.html"},
    {place_question, "place", "experts on GPUs from recorded routing, in the files servers load",
     "Place experts on GPUs from recorded routing, in the files servers load",
     "moehub place law.npy:0-0.5 --evaluate law.npy:0.5-1 --gpus 8 --model deepseek-v2-lite \\\n   "
     "   --system deepep -o layout.json\n"
     "  moehub place dumps/*.pt --gpus 16 --machine h100-cluster --replicas 16 -o layout.json\n"
     "  moehub place --profile law.npy intent.npy@2 --gpus 16 --replicas 16 --load-blocks 4 \\\n   "
     "   --model deepseek-v2-lite --machine h100-cluster --format trtllm -o layout.yaml\n"
     "  moehub place --profile new.npy --current layout.json --max-moves 40 -o next.json\n"
     "  moehub place --profile law.npy --objective gpus+4*transitions --pareto --time-limit 20"},
};

}  // namespace

std::function<void(std::size_t, std::size_t)> Asker::pieces(std::string what) const {
    return [this, what = std::move(what)](std::size_t done, std::size_t total) {
        if (stop.stop_requested()) throw Ended();
        if (progress) progress(what, pieces_done(done, total));
    };
}

void Asker::require_one_point(std::string_view option, std::size_t values) const {
    if (ready && values > 1) bad_input("{}: found {} values, allowed: one a point", option, values);
}

void Asker::require_form(unsigned form) const {
    const auto words = [this](unsigned forms) {
        std::vector<std::string> list;
        for (std::size_t i = 0; i < form_words.size(); ++i)
            if ((forms >> i & 1u) != 0) list.push_back(form_words[i]);
        return fmt::format("{}", fmt::join(list, " or "));
    };
    for (const Option& option : options)
        if ((option.rules.forms & form) == 0 && is_on(options, said, key_of(option)))
            bad_input("{}: found with {}, allowed: with {}", name_of(option), words(form),
                      words(option.rules.forms));
}

void require_writable(const std::vector<OutputFile>& files,
                      const std::vector<std::string>& inputs) {
    std::vector<std::string> replaced;
    for (const auto& [option, path, goes_on] : files) {
        if (path.empty() || path == "-")
            bad_input("{}: found \"{}\", allowed: a file", option, path);
        if (!(goes_on && fs::exists(path))) require_access(path);
        if (is_device(path)) continue;
        if (is_among(replaced, path))
            bad_input("{}: found the file of another output, allowed: its own", option);
        if (is_among(inputs, path))
            bad_input("{}: found {}, which is read, allowed: another file", option,
                      printable(path));
        if (is_among(folders_of(inputs), fs::absolute(path).parent_path().string()))
            bad_input("{}: found {}, in a folder that is read, allowed: a file elsewhere", option,
                      printable(path));
        replaced.push_back(path);
    }
}

std::vector<Question> questions() {
    std::vector<Question> all;
    for (const auto& [question, name, overview, doc, example, python] : kQuestions) {
        Question& one = all.emplace_back(question());
        one.name = name;
        one.python = python != nullptr ? python : name;
        one.overview = overview;
        one.doc = doc;
        one.example = example;
    }
    return all;
}

}  // namespace moehub
