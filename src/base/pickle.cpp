// The opcodes: Lib/pickletools.py of CPython describes each. Protocols 2 to 5; what only older ones
// write, and everything that builds objects of classes, is refused.
#include "base/pickle.hpp"

#include "base/input_error.hpp"
#include "base/utf8.hpp"

#include <algorithm>
#include <bit>
#include <utility>

namespace moehub {
namespace {

constexpr Pickle::Ref kNothing = 0xFFFFFFFF;
constexpr std::string_view kOrderedDict = "collections.OrderedDict";

}  // namespace

/// The stack machine that a pickle is a program for.
class PickleMachine {
  public:
    PickleMachine(Pickle& pickle, Pickle::Allowed allowed, const std::string& file)
        : pickle_(pickle), what_(std::move(allowed.what)), file_(file) {
        pickle_.names_ = std::move(allowed.names);
        pickle_.nodes_ = {
            {Kind::none, 0, 0}, {Kind::boolean, 0, 0}, {Kind::boolean, 0, 1}, {Kind::tuple, 0, 0}};
        pickle_.growing_.resize(1);
    }

    /// Runs the pickle to its end.
    void run() {
        if (pickle_.bytes_.size() > Pickle::kMostBytes)
            fail(fmt::format("found a pickle of {} bytes, allowed: at most {}",
                             pickle_.bytes_.size(), Pickle::kMostBytes));
        for (;;) {
            const auto code = static_cast<unsigned char>(take(1).front());
            if (code == '.') break;
            if (!step_value(code) && !step_container(code) && !step_memo(code) &&
                !step_object(code))
                fail(fmt::format("found the pickle opcode 0x{:02x}, allowed: {}", code, what_));
        }
        pickle_.root_ = pop();
    }

  private:
    using Ref = Pickle::Ref;
    using Kind = Pickle::Kind;
    /// The first values of every pickle, shared by all that mean them.
    static constexpr Ref kNone = 0, kFalse = 1, kTrue = 2, kEmptyTuple = 3;

    [[noreturn]] void fail(std::string_view what) const {
        throw input_error("{}: {} (byte {} of its pickle)", printable(file_), what, at_);
    }

    std::string_view take(std::uint64_t count) {
        if (count > pickle_.bytes_.size() - at_) fail("the pickle ends too early");
        const auto bytes = pickle_.bytes_.substr(at_, count);
        at_ += count;
        return bytes;
    }
    std::uint64_t number(unsigned width) { return little_endian(take(width)); }

    std::string_view line() {
        const auto end = pickle_.bytes_.find('\n', at_);
        if (end == std::string_view::npos) fail("the pickle ends too early");
        const auto text = take(end - at_);
        ++at_;
        return text;
    }

    static std::uint64_t little_endian(std::string_view bytes) {
        std::uint64_t value = 0;
        for (std::size_t i = bytes.size(); i-- > 0;)
            value = value << 8 | static_cast<unsigned char>(bytes[i]);
        return value;
    }

    // Each step takes the opcodes it knows; false for others.

    bool step_value(unsigned char code) {
        switch (code) {
            case 'N':
                return stack_.push_back(kNone), true;
            case 0x88:
                return stack_.push_back(kTrue), true;
            case 0x89:
                return stack_.push_back(kFalse), true;
            case 'K':
                return push(Kind::integer, number(1)), true;
            case 'M':
                return push(Kind::integer, number(2)), true;
            case 'J':
                return push_long(4), true;
            case 0x8a:
                return push_long(number(1)), true;
            case 0x8b:
                return push_long(number(4)), true;
            case 'G': {
                std::uint64_t bits = 0;  // high byte first
                for (const char byte : take(8)) bits = bits << 8 | static_cast<unsigned char>(byte);
                return push(Kind::real, bits), true;
            }
            case 'U':
            case 0x8c:
                return push_text(number(1)), true;
            case 'T':
            case 'X':
                return push_text(number(4)), true;
            case 0x8d:
                return push_text(number(8)), true;
            default:
                return false;
        }
    }

    bool step_container(unsigned char code) {
        switch (code) {
            case '(':
                return marks_.push_back(stack_.size()), true;
            case ')':
                return stack_.push_back(kEmptyTuple), true;
            case ']':
                return push(Kind::list, 0), true;
            case '}':
                return push(Kind::dict, 0), true;
            case 't':
                return push_fixed(Kind::tuple, pop_to_mark()), true;
            case 0x85:
            case 0x86:
            case 0x87: {
                Ref items[3] = {};
                const std::size_t count = code - 0x84u;
                for (std::size_t i = count; i-- > 0;) items[i] = pop();
                return push_fixed(Kind::tuple, {items, count}), true;
            }
            case 'a':
            case 's': {
                Ref items[2] = {};
                const std::size_t count = code == 'a' ? 1 : 2;
                for (std::size_t i = count; i-- > 0;) items[i] = pop();
                const Ref to = pop();
                append(to, {items, count}, code == 'a' ? Kind::list : Kind::dict);
                return stack_.push_back(to), true;
            }
            case 'e':
            case 'u': {
                const auto items = pop_to_mark();
                const Ref to = pop();
                append(to, items, code == 'e' ? Kind::list : Kind::dict);
                return stack_.push_back(to), true;
            }
            default:
                return false;
        }
    }

    bool step_memo(unsigned char code) {
        switch (code) {
            case 'q':
                return remember(number(1)), true;
            case 'r':
                return remember(number(4)), true;
            case 0x94:
                return remember(remembered_), true;
            case 'h':
                return recall(number(1)), true;
            case 'j':
                return recall(number(4)), true;
            case '0':
                return pop(), true;
            case '2': {
                const Ref top = pop();
                stack_.push_back(top);
                return stack_.push_back(top), true;
            }
            default:
                return false;
        }
    }

    bool step_object(unsigned char code) {
        switch (code) {
            case 'c': {
                const auto module = line();
                return push_name(module, line()), true;
            }
            case 0x93: {
                const Ref name = pop(), module = pop();
                if (pickle_.kind(name) != Kind::text || pickle_.kind(module) != Kind::text)
                    fail("found a name that is no text");
                return push_name(pickle_.text(module), pickle_.text(name)), true;
            }
            case 'R':
                return call(), true;
            case 'Q': {
                const Ref item = pop();
                return push_fixed(Kind::persistent, {&item, 1}), true;
            }
            case 0x95:  // the length of a frame: of use to streams only
                return take(8), true;
            case 0x80:
                if (number(1) > 5) fail("found a pickle of a protocol above 5");
                return true;
            default:
                return false;
        }
    }

    Ref push(Kind kind, std::uint64_t payload, std::uint64_t length = 0) {
        pickle_.nodes_.push_back({kind, static_cast<std::uint32_t>(length), payload});
        stack_.push_back(static_cast<Ref>(pickle_.nodes_.size() - 1));
        return stack_.back();
    }

    void push_text(std::uint64_t length) {
        take(length);
        push(Kind::text, at_ - length, length);
    }

    void push_long(std::uint64_t length) {
        const auto bytes = take(length);
        if (length > 8) fail("found a whole number of more than 64 bits");
        std::uint64_t value = little_endian(bytes);
        const bool negative = length > 0 && (bytes.back() & 0x80) != 0;
        if (negative && length < 8) value |= ~std::uint64_t{0} << (8 * length);
        push(Kind::integer, value);
    }

    void push_name(std::string_view module, std::string_view name) {
        const std::string full = fmt::format("{}.{}", module, name);
        const auto& names = pickle_.names_;
        const auto found = std::find(names.begin(), names.end(), full);
        if (found == names.end())
            throw input_error("{}: asks for {}, allowed: {}", printable(file_),
                              printable(full.substr(0, 80)), what_);
        push(Kind::name, static_cast<std::uint64_t>(found - names.begin()));
    }

    void push_fixed(Kind kind, std::span<const Ref> items) {
        const std::size_t from = pickle_.fixed_.size();
        pickle_.fixed_.insert(pickle_.fixed_.end(), items.begin(), items.end());
        push(kind, from, items.size());
    }

    void call() {
        const Ref arguments = pop(), callee = pop();
        if (pickle_.kind(callee) != Kind::name || pickle_.kind(arguments) != Kind::tuple)
            fail("the pickle calls what cannot be called");
        if (pickle_.text(callee) != kOrderedDict) {
            const Ref items[] = {callee, arguments};
            push_fixed(Kind::call, items);
        } else if (pickle_.items(arguments).empty()) {
            push(Kind::dict, 0);
        } else {
            fail("found an OrderedDict with arguments");
        }
    }

    Ref pop() {
        if (stack_.empty() || (!marks_.empty() && marks_.back() == stack_.size()))
            fail("the pickle takes what is not there");
        const Ref value = stack_.back();
        stack_.pop_back();
        return value;
    }

    /// What was pushed since the last mark, and the mark, are gone from the stack.
    std::vector<Ref> pop_to_mark() {
        if (marks_.empty()) fail("the pickle takes what is not there");
        const auto from = stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back());
        marks_.pop_back();
        std::vector<Ref> items(from, stack_.end());
        stack_.erase(from, stack_.end());
        return items;
    }

    void append(Ref to, std::span<const Ref> items, Kind kind) {
        auto& node = pickle_.nodes_[to];
        if (node.kind != kind || (kind == Kind::dict && items.size() % 2 != 0))
            fail("the pickle puts values where they do not belong");
        if (items.empty()) return;
        if (node.payload == 0) {
            node.payload = pickle_.growing_.size();
            pickle_.growing_.emplace_back();
        }
        auto& all = pickle_.growing_[node.payload];
        all.insert(all.end(), items.begin(), items.end());
    }

    void remember(std::uint64_t index) {
        // Writers count from 0: an index beyond the bytes is a trap for the reader's memory.
        if (index > pickle_.bytes_.size()) fail("found a memo out of range");
        if (stack_.empty()) fail("the pickle takes what is not there");
        if (index >= memo_.size()) memo_.resize(index + 1, kNothing);
        if (std::exchange(memo_[index], stack_.back()) == kNothing) ++remembered_;
    }

    void recall(std::uint64_t index) {
        if (index >= memo_.size() || memo_[index] == kNothing) fail("found a memo out of range");
        stack_.push_back(memo_[index]);
    }

    Pickle& pickle_;
    std::string what_;
    const std::string& file_;
    std::size_t at_ = 0;
    std::vector<Ref> stack_;
    std::vector<std::size_t> marks_;
    std::vector<Ref> memo_;  ///< kNothing where nothing is remembered
    std::uint64_t remembered_ = 0;
};

Pickle Pickle::parse(std::string_view bytes, Allowed allowed, const std::string& file) {
    Pickle pickle;
    pickle.bytes_ = bytes;
    PickleMachine(pickle, std::move(allowed), file).run();
    return pickle;
}

std::int64_t Pickle::integer(Ref value) const {
    return std::bit_cast<std::int64_t>(nodes_[value].payload);
}

std::string_view Pickle::text(Ref value) const {
    const Node& node = nodes_[value];
    if (node.kind == Kind::text) return bytes_.substr(node.payload, node.length);
    if (node.kind == Kind::name) return names_[node.payload];
    return {};
}

std::span<const Pickle::Ref> Pickle::items(Ref value) const {
    const Node& node = nodes_[value];
    switch (node.kind) {
        case Kind::list:
        case Kind::dict:
            return growing_[node.payload];
        case Kind::tuple:
        case Kind::call:
        case Kind::persistent:
            return {fixed_.data() + node.payload, node.length};
        default:
            return {};
    }
}

std::optional<Pickle::Ref> Pickle::find(Ref dict, std::string_view key) const {
    if (kind(dict) != Kind::dict) return std::nullopt;
    const auto all = items(dict);
    for (std::size_t i = all.size(); i >= 2; i -= 2)
        if (kind(all[i - 2]) == Kind::text && text(all[i - 2]) == key) return all[i - 1];
    return std::nullopt;
}

}  // namespace moehub
