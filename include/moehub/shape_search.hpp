/// Shape search: which shape of a model trains fastest, of those with a given number of parameters
/// (Pangu Ultra MoE's question: layers, width, experts and heads are chosen by simulation).
///
///     ShapeSearchOptions options;
///     options.axes = load_shape_axes("default", run.model);
///     options.total = parse_parameter_window("718e9±5%");
///     options.active = parse_parameter_window("39e9±5%");
///     options.fixed = parse_partial_layout("tp=8,pp=16,vpp=2,ep=32");
///     const ShapeSearch found = search_shapes(run, options);
///     for (const TimedShape& one : found.best) fmt::print("{}\n", to_text_of_shape(one.model));
#pragma once
#include <moehub/training.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace moehub {

/// A number of parameters and how far from it is allowed; both ends belong to it.
struct ParameterWindow {
    double centre = 0;
    double width = 0;  ///< allowed distance to each side

    bool contains(std::int64_t count) const;
};

/// "718e9±5%", "718e9+-5%", "718B±20B"; M, B and T stand for 1e6, 1e9 and 1e12. A number alone is
/// allowed 5 % to each side. Throws InputError that says what was found.
ParameterWindow parse_parameter_window(std::string_view text);
std::string to_text(const ParameterWindow& window);  ///< "718 B ± 5 %"

/// Weights that multiply a token: active_parameters() without an input embedding, which is looked
/// up. So Pangu, DeepSeek-V3 and gpt-oss count what they call active.
std::int64_t multiplied_parameters(const Model& model);

/// What each part of a shape may be, ascending. All else is the base model's: the kind of
/// attention and its dimensions, the vocabulary, the dense layers' FFN. Shared experts stay as much
/// wider than routed ones as the base's are; keys and values keep their heads (latent attention:
/// as many as queries).
struct ShapeAxes {
    std::vector<int> layers;
    std::vector<int> dense_layers;
    std::vector<int> hidden;
    std::vector<int> heads;
    std::vector<int> experts;
    std::vector<int> top_k;
    std::vector<int> expert_ffn;
    std::vector<int> shared_experts;
};

/// Axes of a TOML file or of a preset (presets/shapes): `layers = "55..70"`, `hidden =
/// "6144..8192 step 512"`, `top_k = "4, 6, 8"`, `experts = 256`. An axis that is not named stays as
/// the base model has it. Throws InputError, one line.
ShapeAxes load_shape_axes(const std::string& name_or_path, const Model& base);
ShapeAxes parse_shape_axes(std::string_view toml, const std::string& origin, const Model& base);

/// Models of the axes' points whose parameters lie in both windows and that are possible (top_k no
/// more than experts, …). In the order of the axes, the last one fastest. Throws InputError for
/// more points than can be looked at.
std::vector<Model> shapes_within(const Model& base, const ShapeAxes& axes,
                                 const ParameterWindow& total, const ParameterWindow& active);
double points_of(const ShapeAxes& axes);

/// "61 layers (3 dense), hidden 7680, 128 heads, top-8 of 256 experts of 2048, 1 shared".
std::string to_text_of_shape(const Model& model);
bool same_shape(const Model& one, const Model& other);  ///< alike in all that axes change

struct ShapeSearchOptions {
    ShapeAxes axes;
    ParameterWindow total;
    ParameterWindow active;            ///< window of multiplied_parameters()
    PartialLayout fixed;               ///< what parallel layouts keep, as in PlanOptions
    std::vector<std::string> systems;  ///< systems to search over, as in PlanOptions
    /// Ways to cut a model that each shape is timed under: those of the base model's best layouts,
    /// each with more and more recomputation and offloading.
    std::size_t layouts = 8;
    std::size_t top = 10;  ///< shapes to return
    int threads = 0;       ///< shapes timed at a time; 0: as many as there are cores
    /// Called now and then with how much is done, of how much, by one thread at a time. May be
    /// empty.
    std::function<void(std::size_t, std::size_t)> progress;
};

struct TimedShape {
    Model model;
    std::int64_t total = 0;   ///< number of all parameters
    std::int64_t active = 0;  ///< multiplied_parameters()
    TrainingStep step;        ///< step on the fastest of the layouts, by tables
};

/// Fastest shapes by the value of one axis.
struct AxisBest {
    std::string axis;  ///< name of the axis: "layers", …
    std::vector<int> values;
    std::vector<double> tokens_per_second;  ///< rate of a GPU; 0: no shape has the value
};

struct ShapeSearch {
    std::vector<TimedShape> best;         ///< fastest first; of equal ones the smaller first
    std::vector<ParallelLayout> layouts;  ///< layouts that shapes were timed under
    std::vector<AxisBest> by_axis;        ///< axes with more than one value
    double points = 0;                    ///< points of the axes
    std::size_t within = 0;               ///< points in both windows
    std::size_t timed = 0;                ///< points in both windows that run and fit
    std::optional<TimedShape> base;       ///< the base model's own shape, in the windows or not
    std::size_t base_rank = 0;            ///< the base's rank among shapes timed, from 1; 0: none
};

/// Searches shapes. Throws InputError as check(run) does, when no shape lies in the windows, and
/// when none of them runs under a layout.
ShapeSearch search_shapes(const TrainingRun& run, const ShapeSearchOptions& options);

}  // namespace moehub
