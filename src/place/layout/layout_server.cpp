// How a server is started with a layout. Names of options are those of
//   SGLang: python/sglang/srt/server_args.py, which takes a file only where its name ends in .json
//   TensorRT-LLM: examples/wide_ep/ep_load_balancer/README.md
//   vllm-ascend: its user guide, "Expert Parallelism Load Balancer", static EPLB
//   vLLM: nothing that was released; pull request 49572 proposes eplb_config's
//   initial_expert_map_path, 34811 --expert-placement-file.
#include <moehub/expert_layout.hpp>

#include <fmt/format.h>

namespace moehub {
namespace {

/// As a shell takes it for one word.
std::string word(const std::string& text) {
    constexpr std::string_view kPlain =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./-+=:,@%";
    if (!text.empty() && text.find_first_not_of(kPlain) == std::string::npos) return text;
    std::string quoted = "'";
    for (const char one : text) quoted += one == '\'' ? "'\\''" : std::string(1, one);
    return quoted + "'";
}

struct Server {
    const ExpertLayout& layout;
    const std::string& file;
    int nodes;
    int copies;  ///< slots of a layer beyond one per expert
};

std::vector<std::string> sglang(const Server& server) {
    std::vector<std::string> lines{
        fmt::format("python -m sglang.launch_server --model-path MODEL --tp-size {0} --ep-size {0} "
                    "\\",
                    server.layout.gpus)};
    if (server.nodes > 1)
        lines.push_back(fmt::format(
            "    --nnodes {} --node-rank RANK --dist-init-addr HOST:PORT \\", server.nodes));
    lines.push_back(fmt::format("    --moe-a2a-backend deepep --ep-num-redundant-experts {} \\",
                                server.copies));
    lines.push_back(fmt::format("    --init-expert-location {}", word(server.file)));
    if (!server.file.ends_with(".json"))
        lines.emplace_back("# SGLang takes a file only where its name ends in .json: rename it");
    return lines;
}

std::vector<std::string> trtllm(const Server& server) {
    return {
        "echo 'enable_attention_dp: true' > extra.yaml",
        fmt::format("echo {} >> extra.yaml",
                    word(fmt::format("moe_config: {{backend: WideEP, load_balancer: \"{}\"}}",
                                     server.file))),
        fmt::format("trtllm-serve MODEL --tp_size {0} --ep_size {0} --extra_llm_api_options "
                    "extra.yaml",
                    server.layout.gpus),
        "# a release that no longer knows WideEP: without the backend",
    };
}

std::vector<std::string> vllm_ascend(const Server& server) {
    return {
        fmt::format("vllm serve MODEL --tensor-parallel-size {} --enable-expert-parallel \\",
                    server.layout.gpus),
        fmt::format("    --additional-config {}",
                    word(fmt::format(R"({{"eplb_config": {{"expert_map_path": "{}", )"
                                     R"("num_redundant_experts": {}}}}})",
                                     server.file, server.copies))),
    };
}

}  // namespace

std::vector<std::string> server_command(const ExpertLayout& layout, LayoutFormat format,
                                        const std::string& file, int nodes) {
    int slots = 0;
    for (const auto& experts : layout.on.front()) slots += static_cast<int>(experts.size());
    const Server server{layout, file, nodes, slots - layout.experts};
    switch (format) {
        case LayoutFormat::sglang:
            return sglang(server);
        case LayoutFormat::trtllm:
            return trtllm(server);
        case LayoutFormat::vllm_ascend:
            return vllm_ascend(server);
        case LayoutFormat::vllm:
            return {"# No release of vLLM loads this file: it is for an option that was proposed,",
                    "# eplb_config's initial_expert_map_path (vllm-project/vllm pull request "
                    "49572)."};
        case LayoutFormat::csv:
        case LayoutFormat::json:
            return {};
    }
    return {};
}

}  // namespace moehub
