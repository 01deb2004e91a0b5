/// All points of the axes, each a model; those whose parameters lie in the windows are kept.
#include "base/input_error.hpp"
#include "base/quantity.hpp"
#include "plan/shapes/shape_fields.hpp"

#include <cmath>

#include <fmt/format.h>

namespace moehub {
namespace {

constexpr double kMostPoints = 1e7;  ///< points that take some ten seconds

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

// "718e9±5%": a number of parameters, then nothing (5 %), or ± and a share or another number.

constexpr double kUsualShare = 0.05;
constexpr double kFewest = 1e3;
constexpr double kMost = 1e16;

void skip_blanks(std::string_view& text) {
    while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
}

bool take(std::string_view& text, std::string_view what) {
    if (!text.starts_with(what)) return false;
    text.remove_prefix(what.size());
    return true;
}

double take_suffix(std::string_view& text) {
    skip_blanks(text);
    if (take(text, "M")) return 1e6;
    if (take(text, "B")) return 1e9;
    if (take(text, "T")) return 1e12;
    return 1;
}

bool take_plus_minus(std::string_view& text) {
    skip_blanks(text);
    return take(text, "±") || take(text, "+-") || take(text, "+/-");
}

/// The width behind the centre; none when it cannot be read.
std::optional<double> take_width(std::string_view& text, double centre) {
    skip_blanks(text);
    if (text.empty()) return kUsualShare * centre;
    if (!take_plus_minus(text)) return std::nullopt;
    skip_blanks(text);
    const std::optional<double> number = take_number(text);
    if (!number || *number < 0) return std::nullopt;
    skip_blanks(text);
    const double width = take(text, "%") ? *number / 100 * centre : *number * take_suffix(text);
    return width < centre ? std::optional(width) : std::nullopt;
}

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
        throw input_error(
            "shapes: found {:.3g} points of the axes, allowed at most {:.3g}: narrow a range or "
            "take larger steps",
            points, kMostPoints);
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

bool ParameterWindow::contains(std::int64_t count) const {
    // The ends belong to it: a hair for what 5 % of a number lose in binary.
    return std::abs(static_cast<double>(count) - centre) <= width + 1e-12 * centre;
}

ParameterWindow parse_parameter_window(std::string_view text) {
    std::string_view rest = text;
    skip_blanks(rest);
    const std::optional<double> number = take_number(rest);
    if (number) {
        const double centre = *number * take_suffix(rest);
        const std::optional<double> width = take_width(rest, centre);
        skip_blanks(rest);
        if (width && rest.empty() && centre >= kFewest && centre <= kMost) return {centre, *width};
    }
    throw input_error(
        "found {}, allowed: a number of parameters from 1e3 to 1e16 and less than it to each side, "
        "such as \"718e9±5%\", \"718e9+-5%\" or \"718B±20B\"",
        quoted(text));
}

std::string to_text(const ParameterWindow& window) {
    const double centre = window.centre;
    const bool trillions = centre >= 1e12;
    const double unit = trillions ? 1e12 : centre >= 1e9 ? 1e9 : 1e6;
    const char* name = trillions ? "T" : centre >= 1e9 ? "B" : "M";
    return fmt::format("{:.4g} {} ± {:.3g} %", centre / unit, name, 100 * window.width / centre);
}

}  // namespace moehub
