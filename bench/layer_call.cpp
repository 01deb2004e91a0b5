// µs of processor time a call of simulate_layer takes on a tiny layer: what
// bench/python_overhead.py compares with.
#include <moehub/layer.hpp>
#include <moehub/presets.hpp>

#include <cstdio>
#include <cstdlib>
#include <ctime>

int main(int argc, char** argv) {
    using namespace moehub;
    const int calls = argc > 1 ? std::atoi(argv[1]) : 100;
    const Model model = load_model("mixtral-8x7b");
    const LayerInput input{with_gpus(load_machine("dgx-h800"), 2), model,
                           make_routing({}, model, 2), contiguous_placement(model.experts, 2)};
    const SystemSpec system = load_system("ideal");
    Ps sum = 0;
    const std::clock_t begin = std::clock();
    for (int i = 0; i < calls; ++i) sum += simulate_layer(input, system, {}).time;
    const std::clock_t end = std::clock();
    if (sum <= 0) return 1;
    std::printf("%.3f\n", 1e6 * static_cast<double>(end - begin) / CLOCKS_PER_SEC / calls);
    return 0;
}
