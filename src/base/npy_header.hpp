/// The header of a .npy file: a Python dictionary as text, in front of the values.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace moehub {

struct NpyHeader {
    std::string dtype;  ///< 'descr', any text
    bool fortran_order = false;
    std::vector<std::int64_t> shape;  ///< each 0 or more
};

/// Reads "{'descr': '<i4', 'fortran_order': False, 'shape': (3, 4), }". Throws InputError "file:
/// header: …" when it is not of that form; what the values mean is not checked.
NpyHeader parse_npy_header(std::string_view text, const std::string& file);

}  // namespace moehub
