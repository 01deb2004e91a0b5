/// Files of tensors in the safetensors format. Every error is an InputError of one line, "file: …".
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace moehub {

struct SafeTensor {
    std::string name;
    std::string type;  ///< type as the file has it: "I32"
    std::vector<std::int64_t> shape;
    std::string_view bytes;  ///< values in C order, little endian
};

/// Tensors of a file, ascending by name; `bytes` must outlive them. Sizes fit the shapes, and the
/// tensors together are what follows the header, no more and no less.
std::vector<SafeTensor> parse_safetensors(std::string_view bytes, const std::string& file);

/// The values of a tensor of integers of any width. Throws when it has others.
std::vector<std::int64_t> integers_of(const SafeTensor& tensor, const std::string& file);

}  // namespace moehub
