#include "plan/shapes/shape_fields.hpp"

#include "base/input_error.hpp"
#include "base/nearest.hpp"
#include "base/quantity.hpp"
#include "model/records.hpp"

#include <moehub/error.hpp>

#include <algorithm>

#include <fmt/format.h>

namespace moehub {
namespace {

template <int Model::*member>
int get(const Model& m) {
    return m.*member;
}
template <int Model::*member>
void set(Model& m, int value, const Model&) {
    m.*member = value;
}

int get_heads(const Model& m) {
    return m.attention.heads;
}
void set_heads(Model& m, int value, const Model&) {
    m.attention.heads = value;
    if (m.attention.kind == Attention::Form::mla) m.attention.kv_heads = value;
}

/// Shared experts stay as wide beside routed ones as the base's; without any there, as wide.
void set_ffn(Model& m, int value, const Model& base) {
    m.expert_ffn = value;
    const auto shared = std::int64_t{base.shared_ffn} * value / base.expert_ffn;
    m.shared_ffn = base.shared_ffn > 0 ? static_cast<int>(shared) : value;
}

template <int Model::*member>
constexpr ShapeField field(std::string_view key, std::vector<int> ShapeAxes::*axis, int least,
                           int most) {
    return {key, axis, get<member>, set<member>, least, most};
}

constexpr ShapeField kFields[] = {
    field<&Model::hidden>("hidden", &ShapeAxes::hidden, 1, 1 << 20),
    {"heads", &ShapeAxes::heads, get_heads, set_heads, 1, 1 << 14},
    field<&Model::experts>("experts", &ShapeAxes::experts, 1, 1 << 16),
    field<&Model::top_k>("top_k", &ShapeAxes::top_k, 1, 1 << 10),
    {"expert_ffn", &ShapeAxes::expert_ffn, get<&Model::expert_ffn>, set_ffn, 1, 1 << 20},
    field<&Model::shared_experts>("shared_experts", &ShapeAxes::shared_experts, 0, 1 << 10),
    field<&Model::dense_layers>("dense_layers", &ShapeAxes::dense_layers, 0, 1 << 12),
    field<&Model::layers>("layers", &ShapeAxes::layers, 1, 1 << 12),
};

// Axes of a shape search from TOML: each is a number, or a text of numbers and ranges.

constexpr std::int64_t kMostOfAxis = 10'000;  ///< values

[[noreturn]] void refuse(std::string_view found, const ShapeField& field) {
    throw input_error(
        "found {}, allowed: whole numbers from {} to {}, such as 8, \"4, 6, 8\", \"55..70\" or "
        "\"6144..8192 step 512\"",
        quoted(found), field.least, field.most);
}

/// Splits at the first `mark`; the second half is nothing where there is none.
std::pair<std::string_view, std::optional<std::string_view>> halves(std::string_view text,
                                                                    std::string_view mark) {
    const std::size_t where = text.find(mark);
    if (where == std::string_view::npos) return {trimmed(text), std::nullopt};
    return {trimmed(text.substr(0, where)), trimmed(text.substr(where + mark.size()))};
}

int whole(std::string_view text, const ShapeField& field, std::int64_t least) {
    std::int64_t value = 0;
    try {
        value = parse_count(text);
    } catch (const InputError&) {
        refuse(text, field);
    }
    if (value < least || value > field.most) refuse(text, field);
    return static_cast<int>(value);
}

void add_item(std::string_view item, const ShapeField& field, std::vector<int>& values) {
    const auto [range, step_text] = halves(item, "step");
    const auto [first_text, last_text] = halves(range, "..");
    const int first = whole(first_text, field, field.least);
    if (!last_text && step_text) refuse(item, field);
    const int last = last_text ? whole(*last_text, field, field.least) : first;
    const int step = step_text ? whole(*step_text, field, 1) : 1;
    if (last < first || (last - first) / step >= kMostOfAxis) refuse(item, field);
    for (int value = first; value <= last; value += step) values.push_back(value);
}

std::vector<int> values_of(const Entry& entry, const ShapeField& field) {
    if (entry.type != Entry::Type::string && entry.type != Entry::Type::integer)
        refuse(entry.text, field);
    std::vector<int> values;
    std::string_view rest = entry.text;
    while (true) {
        const auto [item, more] = halves(rest, ",");
        add_item(item, field, values);
        if (!more) break;
        rest = *more;
    }
    std::sort(values.begin(), values.end());
    values.erase(std::unique(values.begin(), values.end()), values.end());
    return values;
}

const ShapeField& field_named(const Entry& entry) {
    std::vector<std::string> known;
    for (const ShapeField& field : shape_fields()) {
        if (field.key == entry.key) return field;
        known.emplace_back(field.key);
    }
    throw input_error("unknown axis{}", did_you_mean(entry.key, known));
}

ShapeAxes from_chain(const std::vector<Document>& chain, const Model& base) {
    if (base.experts == 0)
        throw input_error(
            "model {}: found no experts, allowed: shapes are searched of models with them",
            base.name);
    ShapeAxes axes;
    for (const ShapeField& field : shape_fields()) axes.*field.axis = {field.get(base)};
    for (const Document& document : chain)
        for (const Entry& entry : document.entries) {
            if (entry.key == "name" || entry.key == "title") continue;
            try {
                const ShapeField& field = field_named(entry);
                axes.*field.axis = values_of(entry, field);
            } catch (const InputError& error) {
                throw InputError(at(document.origin, entry) + error.what());
            }
        }
    return axes;
}

}  // namespace

std::span<const ShapeField> shape_fields() {
    return kFields;
}

std::string to_text_of_shape(const Model& m) {
    return fmt::format(
        "{} layers ({} dense), hidden {}, {} heads, top-{} of {} experts of {}, {} shared",
        m.layers, m.dense_layers, m.hidden, m.attention.heads, m.top_k, m.experts, m.expert_ffn,
        m.shared_experts);
}

bool same_shape(const Model& one, const Model& other) {
    for (const ShapeField& field : kFields)
        if (field.get(one) != field.get(other)) return false;
    return true;
}

ShapeAxes load_shape_axes(const std::string& name_or_path, const Model& base) {
    return from_chain(load_chain("shapes", name_or_path), base);
}

ShapeAxes parse_shape_axes(std::string_view toml, const std::string& origin, const Model& base) {
    return from_chain(parse_chain("shapes", toml, origin), base);
}

}  // namespace moehub
