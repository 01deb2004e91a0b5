// µs a call of simulate_layer on a tiny layer: what bench/python_overhead.py compares with.
#include <moehub/layer.hpp>
#include <moehub/presets.hpp>

#include <chrono>
#include <cstdio>
#include <cstdlib>

int main(int argc, char** argv) {
    using namespace moehub;
    const int calls = argc > 1 ? std::atoi(argv[1]) : 500;
    const Model model = load_model("mixtral-8x7b");
    const LayerInput input{with_gpus(load_machine("dgx-h800"), 2), model,
                           make_routing({}, model, 2), contiguous_placement(model.experts, 2)};
    const SystemSpec system = load_system("ideal");
    Ps sum = 0;
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < calls; ++i) sum += simulate_layer(input, system, {}).time;
    const auto end = std::chrono::steady_clock::now();
    if (sum <= 0) return 1;
    std::printf("%.3f\n", std::chrono::duration<double, std::micro>(end - begin).count() / calls);
    return 0;
}
