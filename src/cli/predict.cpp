#include "base/json.hpp"
#include "cli/commands.hpp"
#include "cli/output.hpp"
#include "report/document.hpp"
#include "report/table.hpp"
#include "request/values.hpp"
#include "study/kernel_keys.hpp"

#include <moehub/predict.hpp>
#include <moehub/presets.hpp>

#include <algorithm>
#include <memory>

#include <fmt/format.h>

namespace moehub {
namespace {

struct Request {
    std::string kernel;
    std::vector<std::string> shape;
    std::string gpu = "h200-sxm";
    Overrides settings;
    std::string library = "trtllm";
    std::optional<std::string> format;
    std::optional<std::string> cache;
    std::optional<std::string> distribution;
    bool plain = false;
    bool explain = false;
    bool json = false;
};

struct Answer {
    KernelCall call;
    Gpu gpu;
    KernelCost cost;
};

/// "m=4096" for each key of the call; in any order, each once.
void read_shape(const Request& request, KernelCall& call) {
    std::vector<CallKey> left = keys_of(call);
    std::vector<std::string_view> names;
    for (const CallKey& key : left) names.push_back(key.name);
    for (const std::string& text : request.shape) {
        const std::size_t equals = text.find('=');
        const std::string name = text.substr(0, equals);
        const auto key = std::find_if(left.begin(), left.end(),
                                      [&](const CallKey& one) { return one.name == name; });
        if (key == left.end() && std::find(names.begin(), names.end(), name) != names.end())
            throw InputError(fmt::format("{}: {} is given twice", request.kernel, name));
        if (equals == std::string::npos || key == left.end())
            named<int>(request.kernel, text, std::nullopt, names);
        *key->value = count_of(name, text.substr(equals + 1), {key->least, kMostOfACall});
        left.erase(key);
    }
    std::vector<std::string_view> missing;
    for (const CallKey& key : left) {
        if (!key.otherwise) missing.push_back(key.name);
        *key.value = key.otherwise.value_or(0);
    }
    if (!missing.empty())
        throw InputError(
            fmt::format("{}: missing {}=…", request.kernel, fmt::join(missing, "=…, ")));
}

NumberFormat format_of(std::string_view option, const std::optional<std::string>& name) {
    if (!name) return NumberFormat::bf16;
    return named(option, *name, format_named(*name), format_names());
}

/// Options that the kernel has no use for.
void refuse_strangers(const Request& request, const KernelCall& call) {
    const bool moe = std::holds_alternative<MoeCall>(call);
    const bool gemm = std::holds_alternative<GemmCall>(call);
    const auto refuse = [&](bool given, std::string_view option, bool has) {
        if (given && !has) throw InputError(fmt::format("{} has no {}", request.kernel, option));
    };
    refuse(request.format.has_value(), "--dtype",
           moe || gemm || std::holds_alternative<PrefillCall>(call));
    refuse(request.cache.has_value(), "--cache", !moe && !gemm);
    refuse(request.distribution.has_value(), "--distribution", moe);
    refuse(request.plain, "--no-gate", moe);
}

KernelCall call_of(const Request& request) {
    KernelCall call = named("kernel", request.kernel, call_named(request.kernel), kernel_names());
    read_shape(request, call);
    refuse_strangers(request, call);
    set_formats(call, format_of("--dtype", request.format), format_of("--cache", request.cache));
    if (auto* moe = std::get_if<MoeCall>(&call)) {
        const std::string distribution = request.distribution.value_or("balanced");
        const auto skew = skew_named(distribution);
        if (!skew)
            throw InputError(
                fmt::format("--distribution: found {}, allowed: balanced, or "
                            "power-law- and an exponent up to 10",
                            moehub::quoted(distribution)));
        moe->skew = *skew;
        moe->gated = !request.plain;
    }
    return call;
}

Answer answer_of(const Request& request) {
    const KernelCall call = call_of(request);
    const Gpu gpu = load_gpu(request.gpu, request.settings);
    try {
        return {call, gpu, predict_kernel(gpu, request.library, call)};
    } catch (const InputError& error) {
        throw InputError(fmt::format("{}: {}", request.gpu, error.what()));
    }
}

struct Part {
    std::string_view name;
    std::string_view what;
    double seconds;
};

/// Products and memory run side by side; the others stand before and after.
std::vector<Part> parts_of(const KernelCost& cost) {
    return {{"SMs", "products, and what SMs load and wait for beside them", cost.tensor},
            {"HBM", "at the same time", cost.memory},
            {"passes", "before and after: RoPE, permutation, quantisation, sums", cost.other},
            {"start", "launches, first loads", cost.start}};
}

std::string_view bound_of(const KernelCost& cost) {
    std::string_view bound;
    double most = -1;
    for (const Part& part : parts_of(cost)) {
        if (part.seconds <= most) continue;
        most = part.seconds;
        bound = part.name;
    }
    return bound;
}

double share_of_peak(const Answer& a) {
    return a.cost.flops / a.cost.seconds / a.cost.peak;
}

double share_of_hbm(const Answer& a) {
    return a.cost.bytes / a.cost.seconds / a.gpu.hbm_bandwidth;
}

std::string explained(const Request& request, const Answer& a) {
    Table table({{"part", Table::Align::left}, {"µs"}, {"", Table::Align::text}});
    for (const Part& part : parts_of(a.cost))
        table.add(
            {std::string(part.name), significant(part.seconds * 1e6), std::string(part.what)});
    std::string text = "\n" + table.text(style_for(""));
    text += fmt::format("\n{} GFLOP, {} MB to and from HBM\n", significant(a.cost.flops / 1e9),
                        significant(a.cost.bytes / 1e6));
    if (std::holds_alternative<DecodeCall>(a.call) && a.cost.bytes < 0.99 * memory_of(a.call))
        text +=
            "A cache of less than 0.4 of the L2 is taken to lie there, as it did when measured.\n";
    const std::string used = "kernels." + request.library;
    const auto& inherited = a.gpu.inherited;
    if (std::find(inherited.begin(), inherited.end(), used) != inherited.end())
        text += fmt::format("Constants of {} are the generation's (docs/cards.md): {}\n",
                            request.library, preset_title("generations", a.gpu.generation));
    return text;
}

std::string text_of(const Request& request, const Answer& a) {
    std::string text =
        fmt::format("{} µs on {} ({}), bound by {}: {} of the tensor cores' peak, {} of HBM\n",
                    significant(a.cost.seconds * 1e6), request.gpu, request.library,
                    bound_of(a.cost), percent(share_of_peak(a)), percent(share_of_hbm(a)));
    return request.explain ? text + explained(request, a) : text;
}

Json json_of(const Request& request, const Answer& a) {
    Json json{{"kernel", request.kernel}, {"gpu", request.gpu}, {"library", request.library}};
    KernelCall call = a.call;
    for (const CallKey& key : keys_of(call)) json["shape"][std::string(key.name)] = *key.value;
    json["dtype"] = request.format.value_or("bf16");
    json["cache"] = request.cache.value_or("bf16");
    json["distribution"] = request.distribution.value_or("balanced");
    json["gated"] = !request.plain;
    json["set"] = request.settings;
    json["time_us"] = a.cost.seconds * 1e6;
    json["bound"] = bound_of(a.cost);
    json["share_of_peak"] = share_of_peak(a);
    json["share_of_hbm"] = share_of_hbm(a);
    json["parts_us"] = {{"tensor", a.cost.tensor * 1e6},
                        {"memory", a.cost.memory * 1e6},
                        {"other", a.cost.other * 1e6},
                        {"start", a.cost.start * 1e6}};
    json["flops"] = a.cost.flops;
    json["memory_bytes"] = a.cost.bytes;
    json["inherited"] = a.gpu.inherited;
    return json;
}

void run(const Request& request) {
    const Answer answer = answer_of(request);
    put(request.json ? document_text("predict", json_of(request, answer))
                     : fitted(text_of(request, answer), style_for("").width),
        "");
}

}  // namespace

Command predict_command() {
    const auto request = std::make_shared<Request>();
    return {
        "predict",
        "Predict the time of one kernel of a serving engine on one card",
        {
            {"KERNEL",
             &request->kernel,
             "gemm, prefill, decode, mla-prefill, mla-decode or moe",
             "KERNEL",
             {.required = true}},
            {"SHAPE",
             &request->shape,
             "its extents: m=4096 n=7168 k=2048; what is missing is named",
             "KEY=VALUE",
             {.many = true}},
            {"--gpu", &request->gpu, "preset or TOML file of the card", "GPU"},
            {"--kernels", &request->library, "kernel library: trtllm, sglang, …", "LIBRARY"},
            {"--dtype", &request->format,
             "of the products: bf16 (default), fp8, fp8-block, nvfp4; of moe w4a16, too; of "
             "prefill: "
             "bf16, fp8",
             "FORMAT"},
            {"--cache", &request->cache, "of the cache: bf16 (default) or fp8", "FORMAT"},
            {"--distribution", &request->distribution,
             "rows of a MoE's experts: balanced (default), or power-law-1.2", "NAME"},
            {"--no-gate", &request->plain, "experts of a MoE have an up projection alone"},
            {"--explain", &request->explain, "say what the time is made of"},
            {"--set", &request->settings, "change a value of the card first, repeatable",
             "KEY=VALUE"},
            {"--json", &request->json, "print JSON"},
        },
        "Example:\n  moehub predict gemm --gpu b200 --dtype fp8 m=4096 n=7168 k=2048 --explain",
        [request] { run(*request); },
    };
}

}  // namespace moehub
