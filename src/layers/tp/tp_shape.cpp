#include "layers/tp/tp_shape.hpp"

#include <array>
#include <tuple>
#include <utility>

namespace moehub {
namespace {

struct NamedSubLayer {
    SubLayer part;
    std::string_view name;
    std::string_view words;
};
constexpr std::array<NamedSubLayer, 6> kSubLayers = {{
    {SubLayer::l1, "L1", "attention's output, norm, FFN's first"},
    {SubLayer::l2, "L2", "FFN's second, norm, attention's input"},
    {SubLayer::l3, "L3", "gradients: FFN's first, norm, attention's output"},
    {SubLayer::l4, "L4", "gradients: attention's input, norm, FFN's second"},
    {SubLayer::attention_out, "attention-out", "attention's output, norm"},
    {SubLayer::attention_in, "attention-in", "norm, attention's input"},
}};

const NamedSubLayer& named(SubLayer part) {
    return kSubLayers[static_cast<std::size_t>(part)];
}

}  // namespace

std::string_view name_of(SubLayer part) {
    return named(part).name;
}

std::string words_of(SubLayer part) {
    return std::string(named(part).words);
}

std::optional<SubLayer> sub_layer_named(std::string_view name) {
    for (const NamedSubLayer& one : kSubLayers)
        if (one.name == name) return one.part;
    return {};
}

std::vector<std::string> sub_layer_names() {
    std::vector<std::string> names;
    for (const NamedSubLayer& one : kSubLayers) names.emplace_back(one.name);
    return names;
}

namespace layers {

/// Latent attention's input is a projection to ranks that all heads share, which every GPU computes
/// whole; what is cut by heads follows behind it (sim/gpu/transformer.cpp).
TpShape tp_shape(const Model& model, SubLayer part) {
    const Attention& a = model.attention;
    const bool latent = a.kind == Attention::Form::mla;
    const std::int64_t out = std::int64_t{a.heads} * (latent ? a.v_head_dim : a.head_dim);
    const std::int64_t ranks = std::int64_t{a.q_lora_rank} + a.kv_lora_rank + a.qk_rope_head_dim;
    const std::int64_t in =
        latent ? ranks : (std::int64_t{a.heads} + 2 * std::int64_t{a.kv_heads}) * a.head_dim;
    const std::int64_t ffn = model.dense_ffn;
    const std::int64_t up = (model.gated ? 2 : 1) * ffn;
    TpShape shape;
    shape.hidden = model.hidden;
    shape.after_whole = latent && (part == SubLayer::l2 || part == SubLayer::attention_in);
    const std::pair<std::int64_t, std::int64_t> widths[] = {{out, up}, {ffn, in}, {up, out},
                                                            {in, ffn}, {out, 0},  {0, in}};
    std::tie(shape.before, shape.after) = widths[static_cast<std::size_t>(part)];
    shape.backward = part == SubLayer::l3 || part == SubLayer::l4;
    return shape;
}

}  // namespace layers
}  // namespace moehub
