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

struct Prediction {
    KernelCall call;
    Gpu gpu;
    KernelCost cost;
};

std::vector<Option> predict_options(PredictArguments& arguments);

/// On the card that is given, else named. Throws InputError.
Prediction predict(const PredictArguments& request, const Loaded<Gpu>* given = nullptr);

struct PredictedPart {
    std::string_view name;
    std::string_view what;
    double seconds;
};

/// Products and memory run side by side; the others stand before and after.
std::vector<PredictedPart> parts_of(const KernelCost& cost);
/// The longest of them.
std::string_view bound_of(const KernelCost& cost);
double share_of_peak(const Prediction& a);
double share_of_hbm(const Prediction& a);

Json predict_json(const PredictArguments& request, const Prediction& a);

}  // namespace moehub
