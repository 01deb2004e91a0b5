/// All points of the axes, each a model; those whose parameters lie in the windows are kept.
#include "plan/shapes/shape_fields.hpp"

#include <moehub/error.hpp>
#include <moehub/shape_search.hpp>

#include <algorithm>

#include <fmt/format.h>

namespace moehub {
namespace {

constexpr double kMostPoints = 1e7;  ///< some ten seconds

/// What the axes can break; all else is the base model's, which was checked.
bool is_model(const Model& m) {
    if (m.dense_layers > m.layers || m.attention.window_layers > m.layers) return false;
    if (m.dense_layers > 0 && m.dense_ffn == 0) return false;
    if (m.experts % m.expert_groups != 0) return false;
    if (m.top_k > m.experts / m.expert_groups * m.top_groups) return false;
    return m.attention.heads % m.attention.kv_heads == 0 &&
           (m.shared_experts == 0 || m.shared_ffn > 0);
}

/// Counts through the axes like a clock, the last axis fastest.
class Points {
  public:
    explicit Points(const ShapeAxes& axes) : axes_(axes), at_(shape_fields().size(), 0) {}

    bool next() {
        for (std::size_t i = at_.size(); i-- > 0;) {
            if (++at_[i] < values(i).size()) return true;
            at_[i] = 0;
        }
        return false;
    }
    Model model(const Model& base) const {
        Model made = base;
        for (std::size_t i = 0; i < at_.size(); ++i)
            shape_fields()[i].set(made, values(i)[at_[i]], base);
        return made;
    }

  private:
    const std::vector<int>& values(std::size_t i) const { return axes_.*shape_fields()[i].axis; }

    const ShapeAxes& axes_;
    std::vector<std::size_t> at_;
};

}  // namespace

std::int64_t multiplied_parameters(const Model& model) {
    const std::int64_t lookup = std::int64_t{model.vocab} * model.hidden;
    return active_parameters(model) - (model.tied_embeddings ? 0 : lookup);
}

double points_of(const ShapeAxes& axes) {
    double points = 1;
    for (const ShapeField& field : shape_fields())
        points *= static_cast<double>((axes.*field.axis).size());
    return points;
}

std::vector<Model> shapes_within(const Model& base, const ShapeAxes& axes,
                                 const ParameterWindow& total, const ParameterWindow& active) {
    const double points = points_of(axes);
    if (points > kMostPoints)
        throw InputError(fmt::format(
            "shapes: found {:.3g} points of the axes, allowed at most {:.3g}: narrow a range or "
            "take larger steps",
            points, kMostPoints));
    std::vector<Model> found;
    if (points == 0) return found;
    Points walk(axes);
    Model made = base;
    // Names are long to copy: points without them, found ones with.
    Model bare = base;
    bare.name.clear();
    bare.title.clear();
    do {
        made = walk.model(bare);
        if (!is_model(made) || !total.contains(parameters(made)) ||
            !active.contains(multiplied_parameters(made)))
            continue;
        made.name = base.name;
        found.push_back(made);
    } while (walk.next());
    return found;
}

}  // namespace moehub
