// What a program of somebody else's needs of moehub: headers, a library, presets inside it.
#include <moehub/layer.hpp>
#include <moehub/presets.hpp>

#include <cstdio>

int main() {
    const moehub::Machine machine = moehub::load_machine("dgx-h100");
    const moehub::Model model = moehub::load_model("mixtral-8x7b");
    const moehub::Routing routing =
        moehub::make_routing(moehub::parse_routing("uniform"), model, 256);
    const moehub::Placement placement = moehub::contiguous_placement(model.experts, machine.gpus());
    const moehub::LayerResult result =
        moehub::simulate_layer({machine, model, routing, placement}, "moe-hub", {});
    std::printf("%s: %lld rows\n", result.system.c_str(), static_cast<long long>(result.rows));
    return result.rows == 256 * model.top_k ? 0 : 1;
}
