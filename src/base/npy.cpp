// The format: https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
#include "base/npy.hpp"

#include "base/files.hpp"
#include "base/input_error.hpp"
#include "base/quantity.hpp"
#include "base/utf8.hpp"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace moehub {
namespace {

struct NpyHeader {
    std::string dtype;  ///< 'descr', any text
    bool fortran_order = false;
    std::vector<std::int64_t> shape;  ///< each 0 or more
};

/// Walks the text once; knows just the literals that NumPy writes.
class HeaderScanner {
  public:
    HeaderScanner(std::string_view text, const std::string& file) : text_(text), file_(file) {}

    [[noreturn]] void fail(std::string_view allowed) const {
        const auto rest = text_.substr(at_);
        throw input_error("{}: header: found {}, allowed: {}", printable(file_),
                          rest.empty() ? "its end" : moehub::quoted(rest.substr(0, 24)), allowed);
    }

    bool done() {
        skip_blanks();
        return at_ == text_.size();
    }
    bool skip(std::string_view token) {
        skip_blanks();
        if (!text_.substr(at_).starts_with(token)) return false;
        at_ += token.size();
        return true;
    }
    void expect(std::string_view token) {
        if (!skip(token)) fail(moehub::quoted(token));
    }

    std::string string(std::string_view what) {
        skip_blanks();
        const char quote = at_ < text_.size() ? text_[at_] : '\0';
        if (quote != '\'' && quote != '"') fail(what);
        const auto end = text_.find(quote, at_ + 1);
        if (end == std::string_view::npos) fail("a text that ends");
        const auto text = text_.substr(at_ + 1, end - at_ - 1);
        at_ = end + 1;
        return std::string(text);
    }

    bool boolean() {
        if (skip("True")) return true;
        if (skip("False")) return false;
        fail("True or False");
    }

    std::vector<std::int64_t> sizes() {
        std::vector<std::int64_t> sizes;
        expect("(");
        while (!skip(")")) {
            if (sizes.size() == NpyArray::kMostDimensions)
                fail(fmt::format("at most {} dimensions", NpyArray::kMostDimensions));
            sizes.push_back(size());
            if (skip(",")) continue;
            expect(")");
            break;
        }
        return sizes;
    }

  private:
    void skip_blanks() { at_ = std::min(text_.find_first_not_of(" \t\r\n", at_), text_.size()); }

    std::int64_t size() {
        skip_blanks();
        std::int64_t value = 0;
        const char* const end = text_.data() + text_.size();
        const auto read = std::from_chars(text_.data() + at_, end, value);
        if (read.ec != std::errc() || value < 0) fail("a size, 0 to 2^63 - 1");
        at_ = static_cast<std::size_t>(read.ptr - text_.data());
        skip("L");  // Python 2 wrote 4L for some
        return value;
    }

    std::string_view text_;
    const std::string& file_;
    std::size_t at_ = 0;
};

/// Reads "{'descr': '<i4', 'fortran_order': False, 'shape': (3, 4), }". Throws InputError "file:
/// header: …" when it is not of that form; what the values mean is not checked.
NpyHeader parse_npy_header(std::string_view text, const std::string& file) {
    NpyHeader header;
    bool dtype = false, order = false, shape = false;
    const auto once = [](bool& seen) { return !std::exchange(seen, true); };
    HeaderScanner scanner(text, file);
    scanner.expect("{");
    while (!scanner.skip("}")) {
        const std::string key = scanner.string("'descr', 'fortran_order' and 'shape'");
        scanner.expect(":");
        if (key == "descr" && once(dtype))
            header.dtype = scanner.string("the name of one type, no structure");
        else if (key == "fortran_order" && once(order))
            header.fortran_order = scanner.boolean();
        else if (key == "shape" && once(shape))
            header.shape = scanner.sizes();
        else
            throw input_error(
                "{}: header: found key {}, allowed: \"descr\", \"fortran_order\" and \"shape\", "
                "each once",
                printable(file), moehub::quoted(key));
        if (scanner.skip(",")) continue;
        scanner.expect("}");
        break;
    }
    if (!scanner.done()) scanner.fail("nothing after the dictionary");
    if (!dtype || !order || !shape)
        throw input_error("{}: header: no {}", printable(file),
                          !dtype   ? "\"descr\""
                          : !order ? "\"fortran_order\""
                                   : "\"shape\"");
    return header;
}

static_assert(std::endian::native == std::endian::little, "values are used as the file has them");

constexpr std::string_view kMagic = "\x93NUMPY";

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
        if (!std::filesystem::exists(path, error)) fail_in(path, "no such file");
        if (!std::filesystem::is_regular_file(path, error)) fail_in(path, "not a regular file");
        left_ = std::filesystem::file_size(path, error);
        if (error) fail_in(path, "cannot be read: " + error.message());
        file_.reset(std::fopen(path.c_str(), "rb"));
        if (!file_) fail_in(path, "cannot be read: {}", std::strerror(errno));
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
    if (!source.take(bytes, width)) fail_in(file, "ends within its header");
    std::size_t value = 0;
    for (std::size_t i = 0; i < width; ++i) value |= std::size_t{bytes[i]} << (8 * i);
    return value;
}

template <class Source>
std::string take_header(Source& source, const std::string& file) {
    char magic[kMagic.size()] = {};
    if (!source.take(magic, sizeof magic) || std::string_view(magic, sizeof magic) != kMagic)
        fail_in(file, "found another kind of file, allowed: NumPy's .npy");
    const std::size_t major = take_number(source, 1, file);
    const std::size_t minor = take_number(source, 1, file);
    if (major < 1 || major > 3 || minor != 0)
        fail_in(file, "found .npy format version {}.{}, allowed: 1.0, 2.0 and 3.0", major, minor);
    const std::size_t length = take_number(source, major == 1 ? 2 : 4, file);
    if (length > NpyArray::kLongestHeader)
        fail_in(file, "found a header of {} bytes, allowed: at most {}", length,
                NpyArray::kLongestHeader);
    if (length > source.left()) fail_in(file, "ends within its header");
    std::string text(length, '\0');
    if (!source.take(text.data(), length)) fail_in(file, "ends within its header");
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
        fail_in(file,
                "found values of type {}, allowed: |u1, <u2, <u4, <u8, |i1, <i2, "
                "<i4, <i8 (integers, little endian)",
                moehub::quoted(dtype));
    type_ = static_cast<std::size_t>(found - std::begin(kNames));
    dtype_ = dtype;
}

template <class Source>
NpyArray NpyArray::take(Source& source, const std::string& file) {
    if (source.left() > kMostBytes)
        fail_in(file, "found {} bytes, allowed: at most {} GiB", source.left(), kMostBytes >> 30);
    NpyHeader header = parse_npy_header(take_header(source, file), file);
    NpyArray array;
    array.set_dtype(header.dtype, file);
    if (header.fortran_order && header.shape.size() > 1)
        fail_in(file,
                "found an array in Fortran order, allowed: C order (numpy.ascontiguousarray)");
    const std::uint64_t width = std::uint64_t{1} << (array.type_ % 4);
    const std::uint64_t bytes = bytes_of(header.shape, width);
    if (bytes != source.left())
        fail_in(file, "found {} bytes of values, its shape ({}) of {} needs {}", source.left(),
                fmt::join(header.shape, ", "), header.dtype,
                bytes == std::numeric_limits<std::uint64_t>::max() ? "more than 2^64"
                                                                   : fmt::to_string(bytes));
    array.shape_ = std::move(header.shape);
    array.size_ = static_cast<std::size_t>(bytes / width);
    array.bytes_.reset(new std::byte[static_cast<std::size_t>(bytes)]);
    if (!source.take(array.bytes_.get(), static_cast<std::size_t>(bytes)))
        fail_in(file, "cannot be read to its end");
    return array;
}

NpyArray NpyArray::read(const std::string& path) {
    Disk disk(path);
    try {
        return take(disk, path);
    } catch (const std::bad_alloc&) {
        fail_in(path, "does not fit in memory");
    }
}

NpyArray NpyArray::parse(std::string_view bytes, const std::string& file) {
    Memory memory(bytes);
    return take(memory, file);
}

}  // namespace moehub
