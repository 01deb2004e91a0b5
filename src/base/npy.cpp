// The format: https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
#include "base/npy.hpp"

#include "base/files.hpp"
#include "base/input_error.hpp"
#include "base/quantity.hpp"
#include "base/utf8.hpp"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstdint>
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

/// The next `width` bytes as a number, low byte first; they are taken off the front.
std::size_t take_number(std::string_view& bytes, std::size_t width, const std::string& file) {
    if (bytes.size() < width) fail_in(file, "ends within its header");
    std::size_t value = 0;
    for (std::size_t i = width; i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[i]);
    bytes.remove_prefix(width);
    return value;
}

/// The header's text; what is left of `bytes` are the values.
std::string_view take_header(std::string_view& bytes, const std::string& file) {
    if (!bytes.starts_with(kMagic))
        fail_in(file, "found another kind of file, allowed: NumPy's .npy");
    bytes.remove_prefix(kMagic.size());
    const std::size_t major = take_number(bytes, 1, file);
    const std::size_t minor = take_number(bytes, 1, file);
    if (major < 1 || major > 3 || minor != 0)
        fail_in(file, "found .npy format version {}.{}, allowed: 1.0, 2.0 and 3.0", major, minor);
    const std::size_t length = take_number(bytes, major == 1 ? 2 : 4, file);
    if (length > NpyArray::kLongestHeader)
        fail_in(file, "found a header of {} bytes, allowed: at most {}", length,
                NpyArray::kLongestHeader);
    if (length > bytes.size()) fail_in(file, "ends within its header");
    const std::string_view text = bytes.substr(0, length);
    bytes.remove_prefix(length);
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

NpyArray NpyArray::read(const std::string& path) {
    return parse(read_bytes(path, kMostBytes), path);
}

NpyArray NpyArray::parse(std::string bytes, const std::string& file) {
    if (bytes.size() > kMostBytes)
        fail_in(file, "found {} bytes, allowed: at most {} GiB", bytes.size(), kMostBytes >> 30);
    NpyArray array;
    array.bytes_ = std::move(bytes);
    std::string_view values = array.bytes_;
    NpyHeader header = parse_npy_header(take_header(values, file), file);
    array.set_dtype(header.dtype, file);
    if (header.fortran_order && header.shape.size() > 1)
        fail_in(file,
                "found an array in Fortran order, allowed: C order (numpy.ascontiguousarray)");
    const std::uint64_t width = std::uint64_t{1} << (array.type_ % 4);
    const std::uint64_t size = bytes_of(header.shape, width);
    if (size != values.size())
        fail_in(file, "found {} bytes of values, its shape ({}) of {} needs {}", values.size(),
                fmt::join(header.shape, ", "), header.dtype,
                size == std::numeric_limits<std::uint64_t>::max() ? "more than 2^64"
                                                                  : fmt::to_string(size));
    array.shape_ = std::move(header.shape);
    array.size_ = static_cast<std::size_t>(size / width);
    array.first_ = array.bytes_.size() - values.size();
    return array;
}

}  // namespace moehub
