// Answers of servers that return the experts of every token.
//   SGLang (--enable-return-routed-experts): "routed_experts" in meta_info, or in sgl_ext of a
//   choice: base64 of int32, [tokens, layers, top_k], without its shape.
//   vLLM (--enable-return-routed-experts): "routed_experts" of a choice: base64 of a .npy file.
//   Others: an object of data (base64), shape and dtype; or nested lists.
#include "base/base64.hpp"
#include "base/files.hpp"
#include "base/quantity.hpp"
#include "place/profile/profile_readers.hpp"

#include <algorithm>

#include <nlohmann/json.hpp>

namespace moehub {
namespace {

using Json = nlohmann::json;
constexpr const char* kKey = "routed_experts";

/// Sizes of ids; 0 where unknown.
struct RoutedShape {
    std::int64_t tokens = 0, layers = 0, top_k = 0;
};

/// Adds answers to a recording; `where` is the file and line of the answer at hand.
class Answers {
  public:
    Answers(const ProfileOptions& options, std::string file)
        : options_(options), where_(std::move(file)) {
        recording_.experts = options.experts;
    }

    void at(std::string where) { where_ = std::move(where); }
    void add(const Json& answer) {
        if (!answer.is_object()) fail("found JSON that is no object, allowed: a server's answer");
        bool found = add_from(answer);
        if (const auto choices = answer.find("choices");
            choices != answer.end() && choices->is_array())
            for (const Json& choice : *choices)
                if (choice.is_object()) found = add_from(choice) || found;
        if (!found)
            fail_in(where_,
                    "found no \"{}\", allowed: at the top, in meta_info, in sgl_ext or in choices",
                    kKey);
    }

    RecordedTokens take() { return std::move(recording_); }
    [[noreturn]] void fail(std::string_view what) const { fail_in(where_, what); }

  private:
    bool add_from(const Json& object) {
        bool found = false;
        const auto add_of = [&](const Json& holder) {
            const auto routed = holder.find(kKey);
            if (routed == holder.end() || routed->is_null()) return;
            RoutedShape shape = shape_in(holder);
            if (shape.layers == 0 && shape.top_k == 0) shape = shape_in(object);
            add_routed(*routed, shape);
            found = true;
        };
        add_of(object);
        for (const char* key : {"meta_info", "sgl_ext", "sglext"})
            if (const auto holder = object.find(key); holder != object.end() && holder->is_object())
                add_of(*holder);
        return found;
    }

    void add_routed(const Json& routed, RoutedShape shape) {
        if (routed.is_array()) return add_lists(routed);
        if (routed.is_string())
            return add_base64(routed.get_ref<const std::string&>(), shape, "int32");
        if (!routed.is_object() || !routed.contains("data") || !routed["data"].is_string())
            fail_in(where_, "{}: found something else, allowed: base64 or lists", kKey);
        if (const RoutedShape own = shape_in(routed); own.layers > 0) shape = own;
        const auto dtype = routed.find("dtype");
        add_base64(
            routed["data"].get_ref<const std::string&>(), shape,
            dtype != routed.end() && dtype->is_string() ? dtype->get<std::string>() : "int32");
    }

    void add_base64(const std::string& text, RoutedShape shape, const std::string& dtype) {
        const auto bytes = base64_decoded(text);
        if (!bytes) fail_in(where_, "{}: found {}, allowed: base64", kKey, moehub::quoted(text));
        if (bytes->starts_with("\x93NUMPY")) {
            const NpyArray array = NpyArray::parse(*bytes, where_);
            const auto& sizes = array.shape();
            if (sizes.size() != 3)
                fail_in(where_, "{}: found shape ({}), allowed: (tokens, layers, top_k)", kKey,
                        fmt::join(sizes, ", "));
            set_shape({sizes[0], sizes[1], sizes[2]});
            return array.visit([&](const auto& values) { append(recording_, values, where_); });
        }
        if (shape.layers == 0) shape.layers = options_.layers;
        if (shape.top_k == 0) shape.top_k = options_.top_k;
        if (shape.layers == 0 || shape.top_k == 0)
            fail_in(where_, "{} does not say its {}: say {}", kKey,
                    shape.layers == 0 ? "layers" : "top_k",
                    shape.layers == 0 ? "--layers" : "--top-k");
        set_shape(shape);
        if (dtype == "int32") return add_bytes<std::int32_t>(*bytes, shape);
        if (dtype == "int64") return add_bytes<std::int64_t>(*bytes, shape);
        if (dtype == "int16") return add_bytes<std::int16_t>(*bytes, shape);
        if (dtype == "uint16") return add_bytes<std::uint16_t>(*bytes, shape);
        if (dtype == "uint8") return add_bytes<std::uint8_t>(*bytes, shape);
        fail_in(where_, "dtype: found {}, allowed: uint8, uint16, int16, int32, int64",
                moehub::quoted(dtype));
    }

    void add_lists(const Json& tokens) {
        if (tokens.empty()) return;
        const auto ragged = [this] {
            fail_in(where_, "{}: found lists that differ, allowed: [tokens][layers][top_k] ids",
                    kKey);
        };
        if (!tokens[0].is_array() || tokens[0].empty() || !tokens[0][0].is_array()) ragged();
        const std::size_t layers = tokens[0].size(), top_k = tokens[0][0].size();
        set_shape({0, static_cast<std::int64_t>(layers), static_cast<std::int64_t>(top_k)});
        std::vector<std::int64_t> ids;
        for (const Json& token : tokens) {
            if (!token.is_array() || token.size() != layers) ragged();
            for (const Json& row : token) {
                if (!row.is_array() || row.size() != top_k) ragged();
                for (const Json& id : row) {
                    if (!id.is_number_integer()) ragged();
                    if (id.is_number_unsigned() && id.get<std::uint64_t>() > kMostProfileExperts)
                        fail_in(where_, "found the id {}, allowed: below {}", id.dump(),
                                kMostProfileExperts);
                    ids.push_back(id.get<std::int64_t>());
                }
            }
        }
        append(recording_, ids, where_);
    }

    void set_shape(const RoutedShape& shape) {
        if (shape.layers < 1 || shape.layers > kMostProfileLayers || shape.top_k < 1 ||
            shape.top_k > (options_.experts > 0 ? options_.experts : kMostProfileExperts))
            fail_in(where_, "found {} layers and top_k {}, allowed: 1 to {} and 1 to {}",
                    shape.layers, shape.top_k, kMostProfileLayers,
                    options_.experts > 0 ? options_.experts : kMostProfileExperts);
        if (recording_.layers == 0) {
            recording_.layers = static_cast<int>(shape.layers);
            recording_.top_k = static_cast<int>(shape.top_k);
        }
        if (recording_.layers != shape.layers || recording_.top_k != shape.top_k)
            fail_in(where_, "found {} layers and top_k {}, answers before have {} and {}",
                    shape.layers, shape.top_k, recording_.layers, recording_.top_k);
    }

    RoutedShape shape_in(const Json& object) const {
        constexpr std::int64_t kMost = std::int64_t{1} << 31;
        const auto size = [this](const Json& value, const char* what) {
            if (!value.is_number_unsigned() || value.get<std::uint64_t>() > kMost)
                // Not printed: a list may be nested deeper than the stack.
                fail_in(where_, "{}: found {}, allowed: a size", what,
                        moehub::quoted(value.is_number() ? value.dump() : "something else"));
            return value.get<std::int64_t>();
        };
        if (const auto shape = object.find("shape"); shape != object.end()) {
            if (!shape->is_array() || shape->size() != 3)
                fail("shape: found something else, allowed: [tokens, layers, top_k]");
            return {size((*shape)[0], "shape"), size((*shape)[1], "shape"),
                    size((*shape)[2], "shape")};
        }
        RoutedShape sizes;
        if (const auto layers = object.find("layers"); layers != object.end())
            sizes.layers = size(*layers, "layers");
        if (const auto top_k = object.find("top_k"); top_k != object.end())
            sizes.top_k = size(*top_k, "top_k");
        return sizes;
    }

    template <class Value>
    void add_bytes(const std::string& bytes, const RoutedShape& shape) {
        const auto token = static_cast<std::uint64_t>(shape.layers * shape.top_k) * sizeof(Value);
        if (bytes.size() % token != 0 ||
            (shape.tokens > 0 && bytes.size() / token != static_cast<std::uint64_t>(shape.tokens)))
            fail_in(where_,
                    "{}: found {} bytes, allowed: a multiple of {} layers x {} x {} bytes{}", kKey,
                    bytes.size(), shape.layers, shape.top_k, sizeof(Value),
                    shape.tokens > 0 ? ", as the shape says" : "");
        append(recording_,
               NpyValues<Value>(reinterpret_cast<const std::byte*>(bytes.data()),
                                bytes.size() / sizeof(Value)),
               where_);
    }

    const ProfileOptions& options_;
    std::string where_;
    RecordedTokens recording_;
};

std::string_view first_line(std::string_view text) {
    return text.substr(0, text.find('\n'));
}

void add_document(std::string_view text, Answers& answers) {
    const Json document = Json::parse(text, nullptr, false);
    if (document.is_discarded()) answers.fail("found text that is no JSON, allowed: an object");
    if (!document.is_array()) return answers.add(document);
    for (const Json& answer : document) answers.add(answer);
}

}  // namespace

RecordedTokens parse_routed_answers(std::string_view text, const ProfileOptions& options,
                                    const std::string& file) {
    Answers answers(options, file);
    text.remove_prefix(std::min(text.find_first_not_of(" \t\r\n\xEF\xBB\xBF"), text.size()));
    // A document over several lines has a first line that is none by itself.
    if (!Json::accept(first_line(text)) && Json::accept(text)) {
        add_document(text, answers);
        return answers.take();
    }
    for (int line = 1; !text.empty(); ++line) {
        const std::string_view one = first_line(text);
        text.remove_prefix(std::min(one.size() + 1, text.size()));
        if (one.find_first_not_of(" \t\r") == std::string_view::npos) continue;
        answers.at(fmt::format("{}:{}", file, line));
        add_document(one, answers);
    }
    return answers.take();
}

}  // namespace moehub
