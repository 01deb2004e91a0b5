#include <moehub/predict.hpp>

#include <bit>

namespace moehub {
namespace {

using Key = std::array<std::int64_t, 13>;

std::int64_t number(NumberFormat format) {
    return static_cast<std::int64_t>(format);
}

Key key(const GemmCall& c) {
    return {number(c.format), c.m, c.n, c.k};
}
Key key(const PrefillCall& c) {
    return {number(c.format), number(c.cache), c.batch,    c.tokens, c.context,
            c.heads,          c.kv_heads,      c.head_dim, c.window};
}
Key key(const DecodeCall& c) {
    return {number(c.cache), c.batch, c.context, c.heads, c.kv_heads, c.head_dim, c.window};
}
Key key(const MlaPrefillCall& c) {
    return {number(c.cache), c.batch, c.tokens, c.heads};
}
Key key(const MlaDecodeCall& c) {
    return {number(c.cache), c.batch, c.context, c.heads};
}
Key key(const MoeCall& c) {
    return {number(c.format),
            c.tokens,
            c.hidden,
            c.expert_ffn,
            c.top_k,
            c.experts,
            c.tp,
            c.ep,
            c.groups,
            c.kept_groups,
            c.gated ? 1 : 0,
            std::bit_cast<std::int64_t>(c.skew)};
}

}  // namespace

PredictionCache::PredictionCache(Gpu gpu, std::string library)
    : gpu_(std::move(gpu)), library_(std::move(library)) {}

std::size_t PredictionCache::Hash::operator()(const Key& key) const {
    std::uint64_t hash = 0;
    for (const std::int64_t value : key) {
        hash = (hash ^ static_cast<std::uint64_t>(value)) * 0x9e3779b97f4a7c15U;
        hash ^= hash >> 32U;
    }
    return hash;
}

PredictionCache::Key PredictionCache::key_of(const KernelCall& call) {
    Key key = std::visit([](const auto& one) { return moehub::key(one); }, call);
    key.back() = static_cast<std::int64_t>(call.index());
    return key;
}

const KernelCost& PredictionCache::cost(const KernelCall& call) {
    const Key key = key_of(call);
    const auto known = known_.find(key);
    if (known != known_.end()) return known->second;
    return known_[key] = predict_kernel(gpu_, library_, call);
}

}  // namespace moehub
