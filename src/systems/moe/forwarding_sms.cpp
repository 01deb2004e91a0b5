#include "systems/moe/forwarding_sms.hpp"

#include <cmath>

namespace moehub::systems {
namespace {

Ps time_of(Bytes bytes, double rate) {
    return std::llround(static_cast<double>(bytes) / rate * 1e12);
}

/// Of SMs that do several things at once.
struct Slowed {
    double share;
    Ps operator()(Ps time) const { return std::llround(static_cast<double>(time) / share); }
};

}  // namespace

ForwardingSms warps_through_queues(const layers::MoeLayer& layer) {
    const Exchange& rates = layer.input.machine.gpu.exchange;
    const Slowed slowed{layer.system.copy_share};
    const int lanes = layer.input.machine.gpus_per_node;
    const Bytes out = layer.dispatch_bytes();
    const Bytes back = layer.combine_bytes();
    ForwardingSms sms;
    sms.per_channel = 2;
    sms.lanes = lanes;
    sms.queues = true;
    sms.send_token = slowed(rates.push_token);
    sms.send_row = slowed(time_of(out, rates.push));
    sms.forward_token = slowed(rates.push_token);
    sms.forward_row = slowed(rates.push_row + time_of(lanes * out, rates.push));
    sms.receive_row = slowed(time_of(out, rates.push));
    sms.contribute_row = slowed(rates.push_row + time_of(lanes * back, rates.push));
    sms.collect_row = slowed(time_of(back, rates.sum_load));
    sms.collect_sum = slowed(time_of(back, rates.sum_store));
    sms.add_row = slowed(time_of(back, rates.sum_load));
    return sms;
}

ForwardingSms copy_engines(const layers::MoeLayer& layer) {
    const Exchange& rates = layer.input.machine.gpu.exchange;
    const Slowed slowed{layer.system.copy_share};
    const Bytes out = layer.dispatch_bytes();
    const Bytes back = layer.combine_bytes();
    ForwardingSms sms;
    sms.send_row = rates.post_row;
    sms.forward_row = slowed(rates.copy_row + time_of(out, rates.push));
    // Who adds up fetches as fast as its SMs do; who gives is as fast, since all give as they get.
    sms.contribute_row = slowed(time_of(back, rates.copy_sum));
    sms.return_row = rates.post_row;
    if (layer.input.machine.nodes > 1) sms.add_row = slowed(time_of(back, rates.copy_sum));
    return sms;
}

}  // namespace moehub::systems
