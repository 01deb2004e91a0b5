#include "study/sweep/outcome.hpp"

namespace moehub {
namespace {

/// Rounded once, so that what is printed is as short as the picoseconds are.
double us(Ps time) {
    return static_cast<double>(time) / 1e6;
}

}  // namespace

const std::vector<SweepMeasure>& measures_of(StudyKind kind) {
    constexpr bool kWhole = true;
    static const std::vector<SweepMeasure> layer{{"time_us"},
                                                 {"compute_us"},
                                                 {"communication_us"},
                                                 {"host_us"},
                                                 {"first_gemm_us"},
                                                 {"dispatch_us"},
                                                 {"combine_us"},
                                                 {"up_bytes", kWhole},
                                                 {"down_bytes", kWhole},
                                                 {"payload_bytes", kWhole},
                                                 {"sm_busy"},
                                                 {"tensor_busy"},
                                                 {"rows", kWhole},
                                                 {"packets", kWhole}};
    static const std::vector<SweepMeasure> model{
        {"time_us"}, {"simulated_us"},      {"compute_us"}, {"communication_us"},
        {"host_us"}, {"tokens_per_second"}, {"mfu"}};
    return kind == StudyKind::model ? model : layer;
}

SweepOutcome outcome_of(const LayerResult& r) {
    return {
        "",
        {us(r.time), us(r.breakdown.compute), us(r.breakdown.communication), us(r.breakdown.host),
         us(r.first_gemm), us(r.dispatch), us(r.combine), static_cast<double>(r.bytes_up),
         static_cast<double>(r.bytes_down), static_cast<double>(r.payload), r.sm_busy,
         r.tensor_busy, static_cast<double>(r.rows), static_cast<double>(r.packets)}};
}

SweepOutcome outcome_of(const ModelTime& time) {
    Breakdown sum;
    for (const LayerTypeTime& part : time.parts) {
        sum.compute += part.count * part.simulated.compute;
        sum.communication += part.count * part.simulated.communication;
        sum.host += part.count * part.simulated.host;
    }
    return {"",
            {us(time.total), us(sum.compute + sum.communication + sum.host), us(sum.compute),
             us(sum.communication), us(sum.host), time.tokens_per_second, time.mfu}};
}

}  // namespace moehub
