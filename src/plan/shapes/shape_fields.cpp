#include "plan/shapes/shape_fields.hpp"

#include <fmt/format.h>

namespace moehub {
namespace {

int get_layers(const Model& m) {
    return m.layers;
}
int get_dense(const Model& m) {
    return m.dense_layers;
}
int get_hidden(const Model& m) {
    return m.hidden;
}
int get_heads(const Model& m) {
    return m.attention.heads;
}
int get_experts(const Model& m) {
    return m.experts;
}
int get_top_k(const Model& m) {
    return m.top_k;
}
int get_ffn(const Model& m) {
    return m.expert_ffn;
}
int get_shared(const Model& m) {
    return m.shared_experts;
}

void set_layers(Model& m, int value, const Model&) {
    m.layers = value;
}
void set_dense(Model& m, int value, const Model&) {
    m.dense_layers = value;
}
void set_hidden(Model& m, int value, const Model&) {
    m.hidden = value;
}
void set_experts(Model& m, int value, const Model&) {
    m.experts = value;
}
void set_top_k(Model& m, int value, const Model&) {
    m.top_k = value;
}
void set_shared(Model& m, int value, const Model&) {
    m.shared_experts = value;
}

void set_heads(Model& m, int value, const Model&) {
    m.attention.heads = value;
    if (m.attention.kind == Attention::Kind::mla) m.attention.kv_heads = value;
}

/// Shared experts stay as wide beside routed ones as the base's; without any there, as wide.
void set_ffn(Model& m, int value, const Model& base) {
    m.expert_ffn = value;
    const auto shared = std::int64_t{base.shared_ffn} * value / base.expert_ffn;
    m.shared_ffn = base.shared_ffn > 0 ? static_cast<int>(shared) : value;
}

constexpr ShapeField kFields[] = {
    {"hidden", &ShapeAxes::hidden, get_hidden, set_hidden, 1, 1 << 20},
    {"heads", &ShapeAxes::heads, get_heads, set_heads, 1, 1 << 14},
    {"experts", &ShapeAxes::experts, get_experts, set_experts, 1, 1 << 16},
    {"top_k", &ShapeAxes::top_k, get_top_k, set_top_k, 1, 1 << 10},
    {"expert_ffn", &ShapeAxes::expert_ffn, get_ffn, set_ffn, 1, 1 << 20},
    {"shared_experts", &ShapeAxes::shared_experts, get_shared, set_shared, 0, 1 << 10},
    {"dense_layers", &ShapeAxes::dense_layers, get_dense, set_dense, 0, 1 << 12},
    {"layers", &ShapeAxes::layers, get_layers, set_layers, 1, 1 << 12},
};

}  // namespace

std::span<const ShapeField> shape_fields() {
    return kFields;
}

std::string to_text_of_shape(const Model& m) {
    return fmt::format(
        "{} layers ({} dense), hidden {}, {} heads, top-{} of {} experts of {}, {} "
        "shared",
        m.layers, m.dense_layers, m.hidden, m.attention.heads, m.top_k, m.experts, m.expert_ffn,
        m.shared_experts);
}

bool same_shape(const Model& one, const Model& other) {
    for (const ShapeField& field : kFields)
        if (field.get(one) != field.get(other)) return false;
    return true;
}

}  // namespace moehub
