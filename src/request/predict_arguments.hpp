/// What `moehub predict` is asked, and what it answers.
#pragma once
#include "base/json.hpp"
#include "request/nouns.hpp"
#include "request/option.hpp"

#include <moehub/predict.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace moehub {

/// As typed; text, so that every mistake gets a message of ours.
struct PredictArguments {
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

struct KernelPrediction {
    KernelCall call;
    Gpu gpu;
    KernelCost cost;
};

std::vector<Option> predict_options(PredictArguments& arguments);

/// On the card that is given, else named. Throws InputError.
KernelPrediction predict(const PredictArguments& request, const Loaded<Gpu>* given = nullptr);

struct PredictedPart {
    std::string_view name;
    std::string_view what;
    double seconds;
};

/// Products and memory run side by side; the others stand before and after.
std::vector<PredictedPart> parts_of(const KernelCost& cost);
/// The longest of them.
std::string_view bound_of(const KernelCost& cost);
double share_of_peak(const KernelPrediction& a);
double share_of_hbm(const KernelPrediction& a);

Json predict_json(const PredictArguments& request, const KernelPrediction& a);

}  // namespace moehub
