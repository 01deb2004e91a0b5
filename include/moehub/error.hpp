/// The one exception a user of the program can cause: bad input. It prints its text as one line and
/// exits with code 2. Everything else that throws is a defect: of moehub, or of a program of one's
/// own that loses rows (std::logic_error) or waits for what never comes (std::runtime_error).
#pragma once
#include <stdexcept>
#include <string>
#include <utility>

namespace moehub {

class InputError : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

/// A system that cannot run what is asked of it: sizes that do not fit, a machine it needs more of.
class CannotRun : public InputError {
  public:
    CannotRun(const std::string& system, std::string why)
        : InputError(system + " cannot run this: " + why), why_(std::move(why)) {}

    const std::string& why() const { return why_; }

  private:
    std::string why_;
};

}  // namespace moehub
