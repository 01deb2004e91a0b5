#include "request/predict_arguments.hpp"

#include "request/values.hpp"
#include "study/kernel_keys.hpp"

#include <moehub/presets.hpp>

#include <algorithm>

#include <fmt/format.h>

namespace moehub {
namespace {

/// "m=4096" for each key of the call; in any order, each once.
void read_shape(const PredictArguments& request, KernelCall& call) {
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
void refuse_strangers(const PredictArguments& request, const KernelCall& call) {
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

KernelCall call_of(const PredictArguments& request) {
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

}  // namespace

KernelPrediction predict(const PredictArguments& request, const Loaded<Gpu>* given) {
    const KernelCall call = call_of(request);
    const Gpu gpu = given != nullptr ? given->value : load_gpu(request.gpu, request.settings);
    try {
        return {call, gpu, predict_kernel(gpu, request.library, call)};
    } catch (const InputError& error) {
        throw InputError(fmt::format("{}: {}", request.gpu, error.what()));
    }
}

std::vector<PredictedPart> parts_of(const KernelCost& cost) {
    return {{"SMs", "products, and what SMs load and wait for beside them", cost.tensor},
            {"HBM", "at the same time", cost.memory},
            {"passes", "before and after: RoPE, permutation, quantisation, sums", cost.other},
            {"start", "launches, first loads", cost.start}};
}

std::string_view bound_of(const KernelCost& cost) {
    std::string_view bound;
    double most = -1;
    for (const PredictedPart& part : parts_of(cost)) {
        if (part.seconds <= most) continue;
        most = part.seconds;
        bound = part.name;
    }
    return bound;
}

double share_of_peak(const KernelPrediction& a) {
    return a.cost.flops / a.cost.seconds / a.cost.peak;
}

double share_of_hbm(const KernelPrediction& a) {
    return a.cost.bytes / a.cost.seconds / a.gpu.hbm_bandwidth;
}

Json predict_json(const PredictArguments& request, const KernelPrediction& a) {
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

std::vector<Option> predict_options(PredictArguments& arguments) {
    return {
        {"KERNEL",
         &arguments.kernel,
         "gemm, prefill, decode, mla-prefill, mla-decode or moe",
         "KERNEL",
         {.required = true},
         {"gemm", "prefill", "decode", "mla-prefill", "mla-decode", "moe"}},
        {"SHAPE",
         &arguments.shape,
         "its extents: m=4096 n=7168 k=2048; what is missing is named",
         "KEY=VALUE",
         {.many = true}},
        {"--gpu", &arguments.gpu, "preset or TOML file of the card", "GPU"},
        {"--kernels", &arguments.library, "kernel library: trtllm, sglang, …", "LIBRARY"},
        {"--dtype", &arguments.format,
         "of the products: bf16 (default), fp8, fp8-block, nvfp4; of moe w4a16, too; of "
         "prefill: "
         "bf16, fp8",
         "FORMAT"},
        {"--cache", &arguments.cache, "of the cache: bf16 (default) or fp8", "FORMAT"},
        {"--distribution", &arguments.distribution,
         "rows of a MoE's experts: balanced (default), or power-law-1.2", "NAME"},
        {"--no-gate", &arguments.plain, "experts of a MoE have an up projection alone"},
        {"--explain", &arguments.explain, "say what the time is made of"},
        {"--set", &arguments.settings, "change a value of the card first, repeatable", "KEY=VALUE"},
        {"--json", &arguments.json, "print JSON"},
    };
}

}  // namespace moehub
