#include <moehub/error.hpp>
#include <moehub/presets.hpp>

#include <fmt/format.h>

namespace moehub {

Machine with_gpus(const Machine& machine, int gpus) {
    const int limit = machine.max_gpus > 0 ? machine.max_gpus : machine.gpus();
    if (gpus < 1 || gpus > limit)
        throw InputError(
            fmt::format("{}: found {} GPUs, allowed 1 to {}", machine.name, gpus, limit));
    Machine sized = machine;
    const bool cluster = machine.nic.bandwidth > 0;
    if (!cluster || gpus <= machine.gpus_per_node) {
        sized.nodes = 1;
        sized.gpus_per_node = gpus;
        return sized;
    }
    if (gpus % machine.gpus_per_node != 0)
        throw InputError(fmt::format("{}: found {} GPUs, allowed up to {} or a multiple of it",
                                     machine.name, gpus, machine.gpus_per_node));
    sized.nodes = gpus / machine.gpus_per_node;
    return sized;
}

}  // namespace moehub
