// One kernel of a serving engine on one card.
#include "answers/question.hpp"
#include "report/number.hpp"
#include "study/kernel_keys.hpp"

#include <moehub/predict.hpp>

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace moehub {
namespace {

struct Request {
    KernelCall call;
    std::vector<std::string> shape;  ///< "m=4096"; its keys are the kernel's
    Wanted<Gpu> gpu{"h200-sxm"};
    std::string library = "trtllm";
    std::optional<NumberFormat> format;
    std::optional<NumberFormat> cache;
    double skew = 0;
    bool plain = false;
    bool explain = false;
    Settings settings;
};

Named<KernelCall> kernels() {
    Named<KernelCall> names;
    for (const std::string_view name : kernel_names())
        names.emplace_back(std::string(name), *call_named(name));
    return names;
}

/// A kernel's call has no ==, and none stands there before one is named.
Target to_kernel(KernelCall& call) {
    Target target;
    target.kind = ValueKind::choice;
    for (const auto& [name, value] : kernels()) target.choices.push_back(name);
    target.read = [&call, known = target.choices](std::string_view option,
                                                  const std::string& text) {
        const auto found = call_named(text);
        if (!found) refuse_name(option, text, known);
        call = *found;
    };
    return target;
}

/// The keys of all kernels' shapes, each once.
std::vector<std::string> shape_keys() {
    std::vector<std::string> names;
    for (auto& [name, call] : kernels())
        for (const CallKey& key : keys_of(call))
            if (std::find(names.begin(), names.end(), key.name) == names.end())
                names.emplace_back(key.name);
    return names;
}

double skew_of(const std::string& text) {
    if (const auto skew = skew_named(text)) return *skew;
    bad_input("found {}, allowed: balanced, or power-law- and an exponent up to 10", quoted(text));
}

Options options_of(Request& request) {
    const auto formats = named({NumberFormat::bf16, NumberFormat::fp8, NumberFormat::fp8_block,
                                NumberFormat::nvfp4, NumberFormat::w4a16});
    Option shape{"shape", to_texts(request.shape),
                 "its extents: m=4096 n=7168 k=2048; what is missing is named", kMany};
    shape.target.type = "KEY=VALUE";
    shape.target.keys = shape_keys;
    return {
        {"kernel", to_kernel(request.call), "which kernel", kRequired},
        std::move(shape),
        {"--gpu", to(request.gpu), "preset or TOML file of the card"},
        {"--kernels", to_text(request.library, "LIBRARY"), "kernel library: trtllm, sglang, …"},
        {"--dtype", to(request.format, formats),
         "of the products; without it bf16; w4a16 of moe alone, prefill: bf16, fp8"},
        {"--cache", to(request.cache, formats), "of the cache: bf16 (without it) or fp8"},
        {"--distribution", to_parsed(request.skew, skew_of, "NAME"),
         "rows of a MoE's experts: balanced, or power-law-1.2; without it balanced"},
        {"--no-gate", to(request.plain), "experts of a MoE have an up projection alone"},
        {"--explain", to(request.explain), "say what the time is made of"},
        {"--set", to(request.settings, {"gpu"}), "change a value of the card first, repeatable"},
    };
}

/// "m=4096" for each key of the call; in any order, each once.
void read_shape(const std::vector<std::string>& shape, KernelCall& call) {
    const std::string kernel(kernel_name(call));
    std::vector<CallKey> left = keys_of(call);
    std::vector<std::string> names;
    for (const CallKey& key : left) names.emplace_back(key.name);
    for (const std::string& text : shape) {
        const std::size_t equals = text.find('=');
        const std::string name = text.substr(0, equals);
        const auto key = std::find_if(left.begin(), left.end(),
                                      [&](const CallKey& one) { return one.name == name; });
        if (key == left.end() && std::find(names.begin(), names.end(), name) != names.end())
            bad_input("{}: {} is given twice", kernel, name);
        if (equals == std::string::npos || key == left.end()) refuse_name(kernel, text, names);
        *key->value = count_of(name, text.substr(equals + 1), {key->least, kMostOfACall});
        left.erase(key);
    }
    std::vector<std::string_view> missing;
    for (const CallKey& key : left) {
        if (!key.otherwise) missing.push_back(key.name);
        *key.value = key.otherwise.value_or(0);
    }
    if (!missing.empty()) bad_input("{}: missing {}=…", kernel, fmt::join(missing, "=…, "));
}

/// Options that the kernel has no use for.
void refuse_strangers(const Request& request, const KernelCall& call, const Asker& asker) {
    const bool moe = std::holds_alternative<MoeCall>(call);
    const bool gemm = std::holds_alternative<GemmCall>(call);
    const auto refuse = [&](bool given, std::string_view option, bool has) {
        if (given && !has) bad_input("{} has no {}", kernel_name(call), option);
    };
    refuse(request.format.has_value(), "--dtype",
           moe || gemm || std::holds_alternative<PrefillCall>(call));
    refuse(request.cache.has_value(), "--cache", !moe && !gemm);
    refuse(asker.was_said("distribution"), "--distribution", moe);
    refuse(request.plain, "--no-gate", moe);
}

struct Prediction {
    KernelCall call;
    Gpu gpu;
    KernelCost cost;
};

Prediction predict(const Request& request, const Asker& asker) {
    KernelCall call = request.call;
    read_shape(request.shape, call);
    refuse_strangers(request, call, asker);
    set_formats(call, request.format.value_or(NumberFormat::bf16),
                request.cache.value_or(NumberFormat::bf16));
    if (auto* moe = std::get_if<MoeCall>(&call)) {
        moe->skew = request.skew;
        moe->gated = !request.plain;
    }
    const Gpu gpu = request.gpu.given != nullptr
                        ? request.gpu.given->value
                        : load_gpu(request.gpu.name, request.settings.machine);
    asker.loaded([&] { return to_toml(gpu); });
    try {
        return {call, gpu, predict_kernel(gpu, request.library, call)};
    } catch (const InputError& error) {
        bad_input("{}: {}", request.gpu.name_or(""), error.what());
    }
}

struct Part {
    std::string_view name;
    std::string_view key;
    std::string_view what;
    double seconds;
};

/// Products and memory run side by side; the others stand before and after.
std::vector<Part> parts_of(const KernelCost& cost) {
    return {
        {"SMs", "tensor", "products, and what SMs load and wait for beside them", cost.tensor},
        {"HBM", "memory", "at the same time", cost.memory},
        {"passes", "other", "before and after: RoPE, permutation, quantisation, sums", cost.other},
        {"start", "start", "launches, first loads", cost.start}};
}

std::string bound_of(const KernelCost& cost) {
    const std::vector<Part> parts = parts_of(cost);
    return std::string(
        std::max_element(parts.begin(), parts.end(), [](const Part& a, const Part& b) {
            return a.seconds < b.seconds;
        })->name);
}

std::vector<Note> explanation_of(const Prediction& made, const std::string& library) {
    const auto& [call, gpu, cost] = made;
    std::vector<Note> notes{fmt::format("{} GFLOP, {} MB to and from HBM",
                                        significant(cost.flops / 1e9),
                                        significant(cost.bytes / 1e6))};
    if (std::holds_alternative<DecodeCall>(call) && cost.bytes < 0.99 * memory_of(call))
        notes.emplace_back(
            "A cache of less than 0.4 of the L2 is taken to lie there, as it did when measured.");
    const std::string used = "kernels." + library;
    if (std::find(gpu.inherited.begin(), gpu.inherited.end(), used) != gpu.inherited.end())
        notes.emplace_back(fmt::format("Constants of {} are the generation's (docs/cards.md): {}",
                                       library, preset_title("generations", gpu.generation)));
    return notes;
}

Json facts_of(const Request& request, const Prediction& made, const Asker& asker) {
    const auto& [call, gpu, cost] = made;
    Json json{{"kernel", kernel_name(call)},
              {"gpu", request.gpu.name_or("")},
              {"library", request.library}};
    KernelCall copy = call;
    for (const CallKey& key : keys_of(copy)) json["shape"][key.name] = *key.value;
    json["dtype"] = name_of(request.format.value_or(NumberFormat::bf16));
    json["cache"] = name_of(request.cache.value_or(NumberFormat::bf16));
    json["distribution"] = "balanced";
    for (const SaidOption& one : asker.said)
        if (one.key == "distribution") json["distribution"] = one.texts.back();
    json["gated"] = !request.plain;
    json["set"] = request.gpu.given ? request.gpu.given->settings : request.settings.typed;
    json["inherited"] = gpu.inherited;
    return json;
}

Answer answer_of(const Request& request, const Asker& asker) {
    const Prediction made = predict(request, asker);
    const auto& [call, gpu, cost] = made;
    const std::string name = request.gpu.name_or("");
    const double peak = cost.flops / cost.seconds / cost.peak;
    const double hbm = cost.bytes / cost.seconds / gpu.hbm_bandwidth;
    Answer answer{.title = fmt::format("{} on {}", kernel_name(call), name)};
    answer.lead = {
        fmt::format("{} µs on {} ({}), bound by {}: {} of the tensor cores' peak, {} of HBM",
                    significant(cost.seconds * 1e6), name, request.library, bound_of(cost),
                    percent(peak), percent(hbm))};
    answer.facts = facts_of(request, made, asker);
    Facts facts{{
        {hidden("time_us"), cost.seconds * 1e6},
        {hidden("bound"), bound_of(cost)},
        {hidden("share_of_peak"), peak},
        {hidden("share_of_hbm"), hbm},
        {hidden("flops"), cost.flops},
        {hidden("memory_bytes"), cost.bytes},
    }};
    for (const Part& part : parts_of(cost))
        facts.list.push_back(
            {{std::string(part.name), fmt::format("parts_us.{}", part.key), kHidden},
             part.seconds * 1e6});
    answer.sections = {{"The call", {}, {std::move(facts)}}};
    if (request.explain)
        answer.sections.push_back(
            {"What the time is made of",
             {},
             {table_of<Part>("", "",
                             {{{"part"}, &Part::name},
                              {{"µs", "", scaled(kSignificant, 1e6)}, &Part::seconds},
                              {{"", "", kProse}, &Part::what}},
                             parts_of(cost))},
             explanation_of(made, request.library)});
    return answer;
}

}  // namespace

Question predict_question() {
    return {.first = "kernel",
            .sweeps = {{.name = "predict",
                        .measures = {{"time_us"}, {"share_of_peak"}, {"share_of_hbm"}}}},
            .ask = asking(options_of, answer_of)};
}

}  // namespace moehub
