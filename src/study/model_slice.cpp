#include "study/model_slice.hpp"

#include "base/quantity.hpp"

#include <moehub/error.hpp>

#include <fmt/format.h>

namespace moehub {

Model slice_of(const Model& model, int gpus) {
    const auto refuse = [&](int found, const char* what, const char* allowed) {
        throw InputError(
            fmt::format("model {}: found {} {}, allowed: {} of the {} GPUs that share "
                        "them",
                        quoted(model.name), found, what, allowed, gpus));
    };
    Model slice = model;
    Attention& a = slice.attention;
    if (a.heads % gpus != 0) refuse(a.heads, "attention heads", "a multiple");
    if (a.kv_heads % gpus != 0 && gpus % a.kv_heads != 0)
        refuse(a.kv_heads, "key-value heads", "a multiple or a divisor");
    const auto share = [gpus](int width) { return width == 0 ? 0 : (width - 1) / gpus + 1; };
    a.heads /= gpus;
    a.kv_heads = share(a.kv_heads);
    slice.dense_ffn = share(model.dense_ffn);
    slice.vocab = share(model.vocab);
    return slice;
}

}  // namespace moehub
