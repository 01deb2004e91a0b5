/// The stack machine that a pickle is a program for; see pickle.hpp.
#pragma once
#include "base/pickle.hpp"

namespace moehub {

class PickleMachine {
  public:
    PickleMachine(Pickle& pickle, Pickle::Allowed allowed, const std::string& file);
    /// Runs the pickle to its end.
    void run();

  private:
    using Ref = Pickle::Ref;
    using Kind = Pickle::Kind;
    /// The first values of every pickle, shared by all that mean them.
    static constexpr Ref kNone = 0, kFalse = 1, kTrue = 2, kEmptyTuple = 3;

    [[noreturn]] void fail(std::string_view what) const;
    std::string_view take(std::uint64_t count);
    std::uint64_t number(unsigned width) { return little_endian(take(width)); }
    std::string_view line();
    static std::uint64_t little_endian(std::string_view bytes);

    /// Each takes the opcodes it knows; false for others.
    bool step_value(unsigned char code);
    bool step_container(unsigned char code);
    bool step_memo(unsigned char code);
    bool step_object(unsigned char code);

    Ref push(Kind kind, std::uint64_t payload, std::uint64_t length = 0);
    void push_text(std::uint64_t length);
    void push_long(std::uint64_t length);
    void push_name(std::string_view module, std::string_view name);
    void push_fixed(Kind kind, std::span<const Ref> items);
    void call();
    Ref pop();
    /// What was pushed since the last mark, and the mark, are gone from the stack.
    std::vector<Ref> pop_to_mark();
    void append(Ref to, std::span<const Ref> items, Kind kind);
    void remember(std::uint64_t index);
    void recall(std::uint64_t index);

    Pickle& pickle_;
    std::string what_;
    const std::string& file_;
    std::size_t at_ = 0;
    std::vector<Ref> stack_;
    std::vector<std::size_t> marks_;
    std::vector<Ref> memo_;  ///< kNothing where nothing is remembered
    std::uint64_t remembered_ = 0;
};

}  // namespace moehub
