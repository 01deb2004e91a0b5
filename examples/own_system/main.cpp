// A system of one's own beside the library's: every GPU pushes all rows at once, one message to
// each GPU, computes what it got when all messages are there, and pushes the results back.
#include <moehub/compare.hpp>
#include <moehub/presets.hpp>
#include <moehub/program.hpp>

#include <cstdio>

namespace {

using namespace moehub;

enum Channel { kRows, kResults, kChannels };

/// One message to every GPU, itself included, the next one first.
void push(GpuProgram& gpu, Channel channel, std::vector<Rows> rows) {
    for (int step = 1; step <= gpu.gpus(); ++step) {
        const int to = (gpu.gpu() + step) % gpu.gpus();
        Rows& some = rows[static_cast<std::size_t>(to)];
        const Bytes bytes = static_cast<Bytes>(some.size()) * gpu.row_bytes();
        gpu.send(to, channel, std::move(some), bytes);
    }
}

Process push_layer(GpuProgram& gpu) {
    co_await gpu.route();
    push(gpu, kRows, gpu.rows_by_gpu());
    co_await gpu.received(kRows, gpu.gpus());
    Rows rows = gpu.take(kRows);
    co_await gpu.run_experts(rows);
    std::vector<Rows> results(static_cast<std::size_t>(gpu.gpus()));
    for (const CarriedRow& row : rows) {
        results[static_cast<std::size_t>(gpu.home_of(row.token))].push_back(row);
    }
    push(gpu, kResults, std::move(results));
    co_await gpu.received(kResults, gpu.gpus());
    Rows own = gpu.take(kResults);
    co_await gpu.add_up(std::move(own));
    co_await gpu.run_shared();
}

}  // namespace

int main() {
    const Model model = load_model("mixtral-8x7b");
    const LayerInput input{with_gpus(load_machine("dgx-h800"), 8), model,
                           make_routing(parse_routing("uniform"), model, 4096),
                           contiguous_placement(model.experts, 8)};
    std::vector<SystemSpec> systems = load_systems({"ideal", "megatron-te", "moe-hub"});
    systems.push_back(own_system("push", push_layer, kChannels));
    CompareOptions options;
    options.layer.verify = true;
    for (const ComparisonRow& row : compare_systems(input, systems, options).rows) {
        std::printf("%-12s %8.1f us  %.2f times megatron-te\n", row.result.system.c_str(),
                    static_cast<double>(row.result.time) / kUs, row.speedup);
    }
}
