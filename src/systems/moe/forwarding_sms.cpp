#include "systems/moe/forwarding_sms.hpp"

#include <cmath>

namespace moehub::systems {
namespace {

Ps time_of(Bytes bytes, double rate) {
    return std::llround(static_cast<double>(bytes) / rate * 1e12);
}

}  // namespace

ForwardingSms warps_through_queues(const layers::MoeLayer& layer) {
    const Exchange& rates = layer.input.machine.gpu.exchange;
    const int lanes = layer.input.machine.gpus_per_node;
    const Bytes out = layer.dispatch_bytes();
    const Bytes back = layer.combine_bytes();
    ForwardingSms sms;
    sms.per_channel = 2;
    sms.lanes = lanes;
    sms.queues = true;
    sms.send_token = rates.push_token;
    sms.send_row = time_of(out, rates.push);
    sms.forward_token = rates.push_token;
    sms.forward_row = rates.push_row + time_of(lanes * out, rates.push);
    sms.receive_row = time_of(out, rates.push);
    sms.contribute_row = rates.push_row + time_of(lanes * back, rates.push);
    sms.collect_row = time_of(back, rates.sum_load);
    sms.collect_sum = time_of(back, rates.sum_store);
    sms.add_row = time_of(back, rates.sum_load);
    sms.add_token = time_of(back, rates.sum_store);
    return sms;
}

ForwardingSms copy_engines(const layers::MoeLayer& layer) {
    const Exchange& rates = layer.input.machine.gpu.exchange;
    const double share = layer.system.copy_share;
    const auto slowed = [&](Ps time) { return std::llround(static_cast<double>(time) / share); };
    const Bytes out = layer.dispatch_bytes();
    const Bytes back = layer.combine_bytes();
    ForwardingSms sms;
    sms.send_row = rates.post_row;
    sms.forward_row = slowed(rates.copy_row + time_of(out, rates.push));
    sms.collect_row = slowed(time_of(back, rates.copy_sum));
    sms.return_row = rates.post_row;
    sms.add_row = slowed(time_of(back, rates.copy_sum));
    return sms;
}

}  // namespace moehub::systems
