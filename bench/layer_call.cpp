// µs of processor time that a tiny layer takes from C++, as simulate_layer and as compare_systems:
// what bench/python_overhead.py compares with.
#include <moehub/compare.hpp>
#include <moehub/presets.hpp>

#include <cstdio>
#include <ctime>

namespace {

template <class Call>
double per_call(int calls, Call call) {
    const std::clock_t begin = std::clock();
    for (int i = 0; i < calls; ++i) call();
    return 1e6 * static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC / calls;
}

}  // namespace

int main(int argc, char** argv) {
    using namespace moehub;
    const int calls = argc > 1 ? std::atoi(argv[1]) : 100;
    const Model model =
        load_model("mixtral-8x7b", {"hidden=128", "expert_ffn=128", "experts=2", "top_k=1"});
    const LayerInput input{with_gpus(load_machine("dgx-h800"), 2), model,
                           make_routing({}, model, 2), contiguous_placement(model.experts, 2)};
    const SystemSpec system = load_system("ideal");
    const double one = per_call(calls, [&] { simulate_layer(input, system, {}); });
    const double compared = per_call(calls, [&] { compare_systems(input, {system}); });
    std::printf("%.3f %.3f\n", one, compared);
    return 0;
}
