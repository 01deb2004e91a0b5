/// The one exception a user can cause: bad input. The program prints its text as one line and
/// exits with code 2. Everything else that throws is a defect.
#pragma once
#include <stdexcept>
#include <string>

namespace moehub {

class InputError : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

}  // namespace moehub
