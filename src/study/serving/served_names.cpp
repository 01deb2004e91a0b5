#include <moehub/served_model.hpp>

namespace moehub {
namespace {

std::string_view part_of(OperatorKind kind) {
    switch (kind) {
        case OperatorKind::attention:
            return "attention core";
        case OperatorKind::linear:
        case OperatorKind::router:
        case OperatorKind::shared_experts:
            return "GEMM (dense)";
        case OperatorKind::experts:
            return "routed experts (MoE)";
        case OperatorKind::dispatch:
            return "dispatch";
        case OperatorKind::combine:
            return "combine";
        case OperatorKind::all_reduce:
            return "all-reduces";
        case OperatorKind::small:
            return "other kernels";
        case OperatorKind::head:
        case OperatorKind::sampling:
            return "head and sampling";
        case OperatorKind::host:
            break;
    }
    return "host and waits";
}

}  // namespace

std::vector<std::string_view> served_part_names() {
    return {"attention core",       "GEMM (dense)",      "dispatch",
            "routed experts (MoE)", "combine",           "all-reduces",
            "other kernels",        "head and sampling", "host and waits"};
}

double part_seconds(const ServedStep& step, std::string_view name) {
    double seconds = 0;
    for (const StepOperator& one : step.operators)
        if (part_of(one.kind) == name) seconds += one.total();
    return seconds;
}

std::vector<ServedPart> parts_of(const ServedStep& step) {
    std::vector<ServedPart> parts;
    for (const std::string_view name : served_part_names())
        if (const double seconds = part_seconds(step, name); seconds > 0)
            parts.push_back({std::string(name), seconds});
    return parts;
}

}  // namespace moehub
