// torch.save writes a zip of NAME/data.pkl, a pickle in which tensors are calls of
// torch._utils._rebuild_tensor_v2(storage, offset, size, stride, …), and NAME/data/KEY with the
// bytes of each storage; a storage is the persistent ("storage", type, KEY, device, values).
// torch/serialization.py and torch/_utils.py of PyTorch describe it.
#include "base/torch_file.hpp"

#include "base/input_error.hpp"
#include "base/npy.hpp"
#include "base/quantity.hpp"
#include "base/utf8.hpp"

#include <algorithm>

namespace moehub {
namespace {

using Kind = Pickle::Kind;
using Ref = Pickle::Ref;

constexpr std::string_view kRebuild2 = "torch._utils._rebuild_tensor_v2";
constexpr std::string_view kRebuild3 = "torch._utils._rebuild_tensor_v3";
constexpr std::string_view kUntyped = "torch.storage.UntypedStorage";

Pickle::Allowed allowed_calls() {
    Pickle::Names names = {"collections.OrderedDict", std::string(kRebuild2),
                           std::string(kRebuild3), std::string(kUntyped)};
    for (const char* type :
         {"Byte", "Char", "Short", "Int", "Long", "Bool", "Half", "BFloat16", "Float", "Double"})
        names.push_back(fmt::format("torch.{}Storage", type));
    for (const char* type : {"uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64",
                             "int64", "bool", "float16", "bfloat16", "float32", "float64"})
        names.push_back(fmt::format("torch.{}", type));
    return {std::move(names), "tensors and containers"};
}

/// Where the values of a tensor lie in its storage.
struct View {
    std::string_view bytes;
    std::int64_t offset = 0;
    std::vector<std::int64_t> shape, strides;
    std::uint64_t values = 1;
};

template <class Value>
std::vector<std::int64_t> values_of(const View& view) {
    const NpyValues<Value> from(reinterpret_cast<const std::byte*>(view.bytes.data()),
                                view.bytes.size() / sizeof(Value));
    std::vector<std::int64_t> to(view.values);
    const std::size_t dimensions = view.shape.size();
    std::vector<std::int64_t> index(dimensions, 0);
    std::int64_t at = view.offset;
    for (std::int64_t& value : to) {
        value = static_cast<std::int64_t>(from[static_cast<std::size_t>(at)]);
        for (std::size_t d = dimensions; d-- > 0;) {
            at += view.strides[d];
            if (++index[d] < view.shape[d]) break;
            at -= view.strides[d] * view.shape[d];
            index[d] = 0;
        }
    }
    return to;
}

using Copy = std::vector<std::int64_t> (*)(const View&);
struct IntegerType {
    std::string_view storage, dtype;
    std::uint64_t width;
    Copy copy;
};
constexpr IntegerType kTypes[] = {
    {"torch.ByteStorage", "torch.uint8", 1, values_of<std::uint8_t>},
    {"torch.CharStorage", "torch.int8", 1, values_of<std::int8_t>},
    {"torch.ShortStorage", "torch.int16", 2, values_of<std::int16_t>},
    {"", "torch.uint16", 2, values_of<std::uint16_t>},
    {"torch.IntStorage", "torch.int32", 4, values_of<std::int32_t>},
    {"", "torch.uint32", 4, values_of<std::uint32_t>},
    {"torch.LongStorage", "torch.int64", 8, values_of<std::int64_t>},
};

/// Null when the values are no integers that fit.
const IntegerType* type_of(std::string_view name) {
    for (const IntegerType& type : kTypes)
        if (!name.empty() && (type.storage == name || type.dtype == name)) return &type;
    return nullptr;
}

/// Counts the values of the view; false when it leaves the storage.
bool fits(View& view, std::uint64_t storage_values) {
    if (view.shape.size() != view.strides.size() || view.offset < 0) return false;
    for (const std::int64_t size : view.shape)
        if (size < 0 ||
            __builtin_mul_overflow(view.values, static_cast<std::uint64_t>(size), &view.values))
            return false;
    if (view.values == 0) return true;
    std::int64_t last = view.offset, step = 0;
    for (std::size_t d = 0; d < view.shape.size(); ++d) {
        if (view.shape[d] == 1) view.strides[d] = 0;  // any number may stand there
        if (view.strides[d] < 0 || __builtin_mul_overflow(view.shape[d], view.strides[d], &step) ||
            __builtin_add_overflow(last, step - view.strides[d], &last))
            return false;
    }
    // An expanded tensor has more values than its storage: a few bytes could ask for all memory.
    return static_cast<std::uint64_t>(last) < storage_values && view.values <= storage_values;
}

}  // namespace

TorchFile::TorchFile(ZipArchive archive, std::string prefix, Pickle contents, std::string file)
    : archive_(std::move(archive)),
      prefix_(std::move(prefix)),
      contents_(std::move(contents)),
      file_(std::move(file)),
      read_(archive_.entries().size()) {}

TorchFile TorchFile::parse(std::string_view bytes, const std::string& file) {
    ZipArchive archive = ZipArchive::parse(bytes, file);
    const auto refuse = [&file](std::string_view what) {
        throw input_error("{}: {}", printable(file), what);
    };
    const ZipArchive::Entry* pickle = nullptr;
    for (const auto& entry : archive.entries())
        if (entry.name.ends_with("/data.pkl") || entry.name == "data.pkl") {
            if (pickle != nullptr) refuse("found two data.pkl, allowed: one, as torch.save writes");
            pickle = &entry;
        }
    if (pickle == nullptr) refuse("found a zip archive without data.pkl, allowed: torch.save's");
    std::string prefix(pickle->name.substr(0, pickle->name.size() - 8));
    const auto* order = archive.find(prefix + "byteorder");
    if (order != nullptr && archive.contents(*order) != "little")
        refuse(fmt::format("byteorder: found {}, allowed: \"little\"",
                           quoted(archive.contents(*order))));
    Pickle contents = Pickle::parse(archive.contents(*pickle), allowed_calls(), file);
    TorchFile torch(std::move(archive), prefix + "data/", std::move(contents), file);
    torch.values_left_ = bytes.size();
    return torch;
}

void TorchFile::fail(std::string_view what, std::string_view why) const {
    throw input_error("{}: {}: {}", printable(file_), what, why);
}

bool TorchFile::is_tensor(Ref value) const {
    if (contents_.kind(value) != Kind::call) return false;
    const auto callee = contents_.text(contents_.items(value)[0]);
    return callee == kRebuild2 || callee == kRebuild3;
}

std::vector<std::int64_t> TorchFile::sizes_of(Ref value, std::string_view what) const {
    const auto items = contents_.items(value);
    if (contents_.kind(value) != Kind::tuple || items.size() > NpyArray::kMostDimensions)
        fail(what, "found a broken tensor");
    std::vector<std::int64_t> sizes;
    for (const Ref item : items) {
        if (contents_.kind(item) != Kind::integer) fail(what, "found a broken tensor");
        sizes.push_back(contents_.integer(item));
    }
    return sizes;
}

TorchFile::Storage TorchFile::storage_of(Ref value, std::string_view what) {
    const auto id = contents_.kind(value) == Kind::persistent
                        ? contents_.items(contents_.items(value)[0])
                        : std::span<const Ref>{};
    if (id.size() != 5 || contents_.text(id[0]) != "storage" ||
        contents_.kind(id[1]) != Kind::name || contents_.kind(id[2]) != Kind::text)
        fail(what, "found a tensor without a storage");
    const auto* entry = archive_.find(prefix_ + std::string(contents_.text(id[2])));
    if (entry == nullptr)
        fail(what, fmt::format("its storage {} is not in the file", quoted(contents_.text(id[2]))));
    auto& bytes = read_[static_cast<std::size_t>(entry - archive_.entries().data())];
    if (bytes.data() == nullptr) bytes = archive_.contents(*entry);
    return {bytes, contents_.text(id[1])};
}

IntegerTensor TorchFile::tensor(Ref value, std::string_view what) {
    if (!is_tensor(value)) fail(what, "found no tensor, allowed: one of integers");
    const bool has_dtype = contents_.text(contents_.items(value)[0]) == kRebuild3;
    const auto arguments = contents_.items(contents_.items(value)[1]);
    if (arguments.size() < (has_dtype ? 7u : 4u) || contents_.kind(arguments[1]) != Kind::integer)
        fail(what, "found a broken tensor");
    const Storage storage = storage_of(arguments[0], what);
    const std::string_view name = has_dtype ? contents_.text(arguments[6]) : storage.type;
    const IntegerType* type = type_of(name);
    if (type == nullptr)
        fail(what, fmt::format("found values of {}, allowed: integers", printable(name)));
    View view{storage.bytes, contents_.integer(arguments[1]), sizes_of(arguments[2], what),
              sizes_of(arguments[3], what)};
    if (!fits(view, storage.bytes.size() / type->width))
        fail(what, fmt::format("found shape ({}), more than its {} bytes of values",
                               fmt::join(view.shape, ", "), storage.bytes.size()));
    if (view.values > values_left_) fail(what, "found more values than the file has bytes");
    values_left_ -= view.values;
    auto values = type->copy(view);
    return {std::move(view.shape), std::move(values)};
}

}  // namespace moehub
