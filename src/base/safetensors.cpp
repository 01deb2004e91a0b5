// The format: https://huggingface.co/docs/safetensors: the header's length in 8 bytes, a header in
// JSON, the values.
#include "base/safetensors.hpp"

#include "base/files.hpp"
#include "base/npy.hpp"
#include "base/quantity.hpp"

#include <nlohmann/json.hpp>

namespace moehub {
namespace {

using HeaderJson = nlohmann::json;

struct Width {
    std::string_view type;
    std::uint64_t bytes;
};
constexpr Width kWidths[] = {{"BOOL", 1}, {"U8", 1},  {"I8", 1},  {"F8_E5M2", 1}, {"F8_E4M3", 1},
                             {"U16", 2},  {"I16", 2}, {"F16", 2}, {"BF16", 2},    {"U32", 4},
                             {"I32", 4},  {"F32", 4}, {"U64", 8}, {"I64", 8},     {"F64", 8}};

/// Bytes of one value of a type; 0 when the type is unknown.
std::uint64_t width_of(std::string_view type) {
    for (const Width& width : kWidths)
        if (width.type == type) return width.bytes;
    return 0;
}

/// A whole number of JSON that is at least 0; -1 otherwise.
std::int64_t size_in(const HeaderJson& value) {
    if (!value.is_number_integer()) return -1;
    if (value.is_number_unsigned() && value.get<std::uint64_t>() > INT64_MAX) return -1;
    return std::max<std::int64_t>(value.get<std::int64_t>(), -1);
}

std::vector<std::int64_t> sizes_in(const HeaderJson& entry, const char* key) {
    const auto found = entry.find(key);
    if (found == entry.end() || !found->is_array() || found->size() > NpyArray::kMostDimensions)
        return {-1};
    std::vector<std::int64_t> sizes;
    for (const HeaderJson& value : *found) sizes.push_back(size_in(value));
    return sizes;
}

SafeTensor tensor_of(const std::string& name, const HeaderJson& entry, std::string_view data,
                     const std::string& file) {
    const auto broken = [&](std::string_view what) {
        fail_in(file, "header: {}: {}", moehub::quoted(name), what);
    };
    if (!entry.is_object() || !entry.contains("dtype") || !entry["dtype"].is_string())
        broken("has no dtype");
    SafeTensor tensor{name, entry["dtype"].get<std::string>(), sizes_in(entry, "shape"), {}};
    std::uint64_t bytes = width_of(tensor.type);
    if (bytes == 0)
        broken(fmt::format("found dtype {}, which is unknown", moehub::quoted(tensor.type)));
    for (const std::int64_t size : tensor.shape)
        if (size < 0 || __builtin_mul_overflow(bytes, static_cast<std::uint64_t>(size), &bytes))
            broken("found no shape, or one too large");
    const auto offsets = sizes_in(entry, "data_offsets");
    if (offsets.size() != 2 || offsets[0] < 0 || offsets[1] < offsets[0] ||
        static_cast<std::uint64_t>(offsets[1]) > data.size())
        broken(fmt::format("found no data_offsets within the {} bytes of values", data.size()));
    const auto length = static_cast<std::uint64_t>(offsets[1] - offsets[0]);
    if (length != bytes)
        broken(fmt::format("found {} bytes, its shape ({}) of {} needs {}", length,
                           fmt::join(tensor.shape, ", "), tensor.type, bytes));
    tensor.bytes = data.substr(static_cast<std::size_t>(offsets[0]), length);
    return tensor;
}

template <class Value>
std::vector<std::int64_t> copied(std::string_view bytes) {
    const NpyValues<Value> values(reinterpret_cast<const std::byte*>(bytes.data()),
                                  bytes.size() / sizeof(Value));
    std::vector<std::int64_t> all(values.size());
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::int64_t>(values[i]);
    return all;
}

}  // namespace

std::vector<SafeTensor> parse_safetensors(std::string_view bytes, const std::string& file) {
    constexpr std::uint64_t kLongestHeader = 100'000'000;  // limit of the format itself
    std::uint64_t length = 0;
    if (bytes.size() < sizeof length) fail_in(file, "ends within its header");
    std::memcpy(&length, bytes.data(), sizeof length);
    bytes.remove_prefix(sizeof length);
    if (length > kLongestHeader || length > bytes.size())
        fail_in(file,
                "found a header of {} bytes, allowed: at most {} and within the "
                "file (is it a .safetensors?)",
                length, kLongestHeader);
    const HeaderJson header = HeaderJson::parse(bytes.substr(0, length), nullptr, false);
    if (!header.is_object()) fail_in(file, "header: found something else, allowed: a JSON object");
    bytes.remove_prefix(length);
    std::vector<SafeTensor> tensors;
    std::uint64_t left = bytes.size();
    for (const auto& [name, entry] : header.items()) {
        if (name == "__metadata__") continue;
        tensors.push_back(tensor_of(name, entry, bytes, file));
        if (tensors.back().bytes.size() > left) fail_in(file, "header: tensors overlap");
        left -= tensors.back().bytes.size();
    }
    // Finds a name that stands twice, too, of which JSON keeps the last.
    if (left > 0) fail_in(file, "header: {} bytes of values belong to no tensor", left);
    return tensors;
}

std::vector<std::int64_t> integers_of(const SafeTensor& tensor, const std::string& file) {
    if (tensor.type == "I32") return copied<std::int32_t>(tensor.bytes);
    if (tensor.type == "I64") return copied<std::int64_t>(tensor.bytes);
    if (tensor.type == "U8") return copied<std::uint8_t>(tensor.bytes);
    if (tensor.type == "I8") return copied<std::int8_t>(tensor.bytes);
    if (tensor.type == "U16") return copied<std::uint16_t>(tensor.bytes);
    if (tensor.type == "I16") return copied<std::int16_t>(tensor.bytes);
    if (tensor.type == "U32") return copied<std::uint32_t>(tensor.bytes);
    fail_in(file, "{}: found values of type {}, allowed: integers of up to 32 bits, I64",
            moehub::quoted(tensor.name), tensor.type);
}

}  // namespace moehub
