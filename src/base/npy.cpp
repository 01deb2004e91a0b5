// The format: https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
#include "base/npy.hpp"

#include "base/npy_header.hpp"
#include "base/quantity.hpp"
#include "base/utf8.hpp"

#include <moehub/error.hpp>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <limits>

#include <fmt/format.h>

namespace moehub {
namespace {

static_assert(std::endian::native == std::endian::little, "values are used as the file has them");

constexpr std::string_view kMagic = "\x93NUMPY";

[[noreturn]] void fail(const std::string& file, std::string_view what) {
    throw InputError(fmt::format("{}: {}", printable(file), what));
}

/// Bytes in memory, from the first to the last.
class Memory {
  public:
    explicit Memory(std::string_view bytes) : bytes_(bytes) {}
    std::uint64_t left() const { return bytes_.size(); }
    bool take(void* to, std::size_t count) {
        if (count > bytes_.size()) return false;
        if (count > 0) std::memcpy(to, bytes_.data(), count);
        bytes_.remove_prefix(count);
        return true;
    }

  private:
    std::string_view bytes_;
};

/// Bytes of a file, from the first to the last.
class Disk {
  public:
    explicit Disk(const std::string& path) {
        std::error_code error;
        if (!std::filesystem::exists(path, error)) fail(path, "no such file");
        if (!std::filesystem::is_regular_file(path, error)) fail(path, "not a regular file");
        left_ = std::filesystem::file_size(path, error);
        if (error) fail(path, "cannot be read: " + error.message());
        file_.reset(std::fopen(path.c_str(), "rb"));
        if (!file_) fail(path, fmt::format("cannot be read: {}", std::strerror(errno)));
    }
    std::uint64_t left() const { return left_; }
    bool take(void* to, std::size_t count) {
        if (count > left_ || std::fread(to, 1, count, file_.get()) != count) return false;
        left_ -= count;
        return true;
    }

  private:
    struct Close {
        void operator()(std::FILE* file) const { std::fclose(file); }
    };
    std::unique_ptr<std::FILE, Close> file_;
    std::uint64_t left_ = 0;
};

/// The next `width` bytes as a number, low byte first.
template <class Source>
std::size_t take_number(Source& source, std::size_t width, const std::string& file) {
    std::uint8_t bytes[4] = {};
    if (!source.take(bytes, width)) fail(file, "ends within its header");
    std::size_t value = 0;
    for (std::size_t i = 0; i < width; ++i) value |= std::size_t{bytes[i]} << (8 * i);
    return value;
}

template <class Source>
std::string take_header(Source& source, const std::string& file) {
    char magic[kMagic.size()] = {};
    if (!source.take(magic, sizeof magic) || std::string_view(magic, sizeof magic) != kMagic)
        fail(file, "found another kind of file, allowed: NumPy's .npy");
    const std::size_t major = take_number(source, 1, file);
    const std::size_t minor = take_number(source, 1, file);
    if (major < 1 || major > 3 || minor != 0)
        fail(file, fmt::format("found .npy format version {}.{}, allowed: 1.0, 2.0 and 3.0", major,
                               minor));
    const std::size_t length = take_number(source, major == 1 ? 2 : 4, file);
    if (length > NpyArray::kLongestHeader)
        fail(file, fmt::format("found a header of {} bytes, allowed: at most {}", length,
                               NpyArray::kLongestHeader));
    if (length > source.left()) fail(file, "ends within its header");
    std::string text(length, '\0');
    if (!source.take(text.data(), length)) fail(file, "ends within its header");
    return text;
}

/// Bytes that an array of that shape and width takes; the largest number when none is that large.
std::uint64_t bytes_of(const std::vector<std::int64_t>& shape, std::uint64_t width) {
    if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return 0;
    std::uint64_t bytes = width;
    for (const auto size : shape)
        if (__builtin_mul_overflow(bytes, static_cast<std::uint64_t>(size), &bytes))
            return std::numeric_limits<std::uint64_t>::max();
    return bytes;
}

}  // namespace

void NpyArray::set_dtype(const std::string& dtype, const std::string& file) {
    static constexpr std::string_view kNames[] = {"u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8"};
    const char order = dtype.empty() ? '\0' : dtype.front();
    const std::string_view name = std::string_view(dtype).substr(dtype.empty() ? 0 : 1);
    const auto found = std::find(std::begin(kNames), std::end(kNames), name);
    // "|" says that order does not matter: true of single bytes only.
    const bool in_order = order == '<' || (order == '|' && name.ends_with('1'));
    if (found == std::end(kNames) || !in_order)
        fail(file, fmt::format("found values of type {}, allowed: |u1, <u2, <u4, <u8, |i1, <i2, "
                               "<i4, <i8 (integers, little endian)",
                               moehub::quoted(dtype)));
    type_ = static_cast<Type>(found - std::begin(kNames));
    dtype_ = dtype;
}

template <class Source>
NpyArray NpyArray::take(Source& source, const std::string& file) {
    if (source.left() > kMostBytes)
        fail(file, fmt::format("found {} bytes, allowed: at most {} GiB", source.left(),
                               kMostBytes >> 30));
    NpyHeader header = parse_npy_header(take_header(source, file), file);
    NpyArray array;
    array.set_dtype(header.dtype, file);
    if (header.fortran_order && header.shape.size() > 1)
        fail(file, "found an array in Fortran order, allowed: C order (numpy.ascontiguousarray)");
    const std::uint64_t width = std::uint64_t{1} << (static_cast<unsigned>(array.type_) % 4);
    const std::uint64_t bytes = bytes_of(header.shape, width);
    if (bytes != source.left())
        fail(file, fmt::format("found {} bytes of values, its shape ({}) of {} needs {}",
                               source.left(), fmt::join(header.shape, ", "), header.dtype,
                               bytes == std::numeric_limits<std::uint64_t>::max()
                                   ? "more than 2^64"
                                   : fmt::to_string(bytes)));
    array.shape_ = std::move(header.shape);
    array.size_ = static_cast<std::size_t>(bytes / width);
    array.bytes_.reset(new std::byte[static_cast<std::size_t>(bytes)]);
    if (!source.take(array.bytes_.get(), static_cast<std::size_t>(bytes)))
        fail(file, "cannot be read to its end");
    return array;
}

NpyArray NpyArray::read(const std::string& path) {
    Disk disk(path);
    try {
        return take(disk, path);
    } catch (const std::bad_alloc&) {
        fail(path, "does not fit in memory");
    }
}

NpyArray NpyArray::parse(std::string_view bytes, const std::string& file) {
    Memory memory(bytes);
    return take(memory, file);
}

}  // namespace moehub
