#include "base/npy_header.hpp"

#include "base/npy.hpp"
#include "base/quantity.hpp"
#include "base/utf8.hpp"

#include <moehub/error.hpp>

#include <algorithm>
#include <charconv>
#include <utility>

#include <fmt/format.h>

namespace moehub {
namespace {

/// Walks the text once; knows just the literals that NumPy writes.
class Scanner {
  public:
    Scanner(std::string_view text, const std::string& file) : text_(text), file_(file) {}

    [[noreturn]] void fail(std::string_view allowed) const {
        const auto rest = text_.substr(at_);
        throw InputError(fmt::format("{}: header: found {}, allowed: {}", printable(file_),
                                     rest.empty() ? "its end" : quoted(rest.substr(0, 24)),
                                     allowed));
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
        if (!skip(token)) fail(quoted(token));
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

}  // namespace

NpyHeader parse_npy_header(std::string_view text, const std::string& file) {
    NpyHeader header;
    bool dtype = false, order = false, shape = false;
    const auto once = [](bool& seen) { return !std::exchange(seen, true); };
    Scanner scanner(text, file);
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
            throw InputError(fmt::format(
                "{}: header: found key {}, allowed: \"descr\", \"fortran_order\" and \"shape\", "
                "each once",
                printable(file), quoted(key)));
        if (scanner.skip(",")) continue;
        scanner.expect("}");
        break;
    }
    if (!scanner.done()) scanner.fail("nothing after the dictionary");
    if (!dtype || !order || !shape)
        throw InputError(fmt::format("{}: header: no {}", printable(file),
                                     !dtype   ? "\"descr\""
                                     : !order ? "\"fortran_order\""
                                              : "\"shape\""));
    return header;
}

}  // namespace moehub
