/// The field table of what collective libraries cost on a card.
#include "model/records.hpp"

namespace moehub {
namespace {

constexpr Limits kTime = {0, 1e12};    // ps: up to a second
constexpr Limits kRate = {1e8, 1e15};  // slower ones make 1 TB last longer than an int64 of ps

Fields fields_of(ProtocolCosts& costs) {
    return {
        {"hop", &costs.hop, Kind::time, kTime, "on the way, beyond the fabric's"},
        {"slice", &costs.slice, Kind::time, kTime, "a block's, to hand over"},
        {"rate", &costs.rate, Kind::rate, kRate, "of payload, one channel"},
    };
}

}  // namespace

Fields fields_of(NcclCosts& nccl) {
    Fields fields{
        {"start", &nccl.start, Kind::time, kTime, "launch to first store, last store to end"},
        {"blocks", &nccl.blocks, Kind::time, kTime, "more with several blocks"},
        {"channels", &nccl.channels, Kind::count, {1, 4096}, "of a ring"},
        {"ll128_used", &nccl.ll128_used, Kind::flag, {}, "between LL and Simple"},
        {"int8_sum", &nccl.int8_sum, Kind::number, {0.1, 1}, "of a channel's rate"},
        {"peer_channels", &nccl.peer_channels, Kind::count, {1, 4096}, "of sends and receives"},
        {"peer_hop", &nccl.peer_hop, Kind::time, kTime, "of sends by Simple"},
        {"peer_rate", &nccl.peer_rate, Kind::rate, kRate, "of each"},
        {"peer_copy", &nccl.peer_copy, Kind::rate, kRate, "of each, to the user's buffer"},
        {"switch_start", &nccl.switch_start, Kind::time, kTime, "of an in-switch all-reduce"},
        {"switch_wave", &nccl.switch_wave, Kind::time, kTime, "between waves of its chunks"},
        {"switch_rate", &nccl.switch_rate, Kind::rate, kRate, "NCCL's estimate, a GPU's channel"},
        {"switch_efficiency", &nccl.switch_efficiency, Kind::number, {0.01, 1}, "of it"},
        {"net_rings", &nccl.net_rings, Kind::count, {1, 4096}, "between nodes, a NIC each"},
        {"net_hop", &nccl.net_hop, Kind::time, kTime, "of what goes through NICs"},
        {"net_start", &nccl.net_start, Kind::time, kTime, "more, of a call between nodes"},
        {"one_shot_start", &nccl.one_shot_start, Kind::time, kTime, "TensorRT-LLM's kernel"},
        {"one_shot_memory", &nccl.one_shot_memory, Kind::rate, kRate, "buffers read and cleared"},
    };
    nest(fields, "ll.", fields_of(nccl.ll));
    nest(fields, "ll128.", fields_of(nccl.ll128));
    nest(fields, "simple.", fields_of(nccl.simple));
    return optional_fields(std::move(fields));
}

}  // namespace moehub
