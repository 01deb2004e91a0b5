/// Python pickles as data: nothing is ever called. A pickle may hold None, truth values, numbers,
/// texts, lists, tuples, dictionaries, and calls of named things that the reader of the pickle has
/// allowed; such a call is only noted. Everything else is refused by name.
/// Every error is an InputError of one line, "file: …".
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace moehub {

class Pickle {
  public:
    /// Names a value. Values may share others and contain themselves: never walk them all.
    using Ref = std::uint32_t;
    enum class Kind : std::uint8_t {
        none,
        boolean,
        integer,
        real,
        text,
        list,
        tuple,
        dict,        ///< key, value, key, value …
        name,        ///< something allowed, e.g. "torch.IntStorage"
        call,        ///< what is called (a name), its arguments (a tuple)
        persistent,  ///< one value: what the writer stored elsewhere
    };
    /// "module.name"s; a call of "collections.OrderedDict" without arguments is an empty dict.
    using Names = std::vector<std::string>;

    /// Limits that no pickle meant for moehub comes near.
    static constexpr std::size_t kMostBytes = std::size_t{1} << 26;

    /// `bytes` must outlive the pickle; `file` is its name in errors; `what` says in errors what
    /// the allowed names are good for.
    struct Allowed {
        Names names;
        std::string what;
    };
    static Pickle parse(std::string_view bytes, Allowed allowed, const std::string& file);

    Ref root() const { return root_; }
    Kind kind(Ref value) const { return nodes_[value].kind; }
    /// The number that is an integer or truth value.
    std::int64_t integer(Ref value) const;
    /// The letters of a text or name; empty for other values.
    std::string_view text(Ref value) const;
    /// What a list, tuple, dict, call or persistent holds; empty for other values.
    std::span<const Ref> items(Ref value) const;
    /// The value of a dictionary's key, the last where it stands twice.
    std::optional<Ref> find(Ref dict, std::string_view key) const;

  private:
    friend class PickleMachine;
    /// A node takes 16 bytes, for a byte of a pickle can make one.
    struct Node {
        Kind kind = Kind::none;
        std::uint32_t length = 0;   ///< length of a text or tuple
        std::uint64_t payload = 0;  ///< number, index into bytes_, fixed_ or growing_, or the name
    };

    std::string_view bytes_;
    Names names_;
    std::vector<Node> nodes_;
    std::vector<Ref> fixed_;                 ///< items of tuples, calls and persistents
    std::vector<std::vector<Ref>> growing_;  ///< items of lists and dicts; [0] is the empty one
    Ref root_ = 0;
};

}  // namespace moehub
