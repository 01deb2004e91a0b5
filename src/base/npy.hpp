/// NumPy's .npy files: arrays of integers, format versions 1 to 3, in C order, little endian.
/// Every error is an InputError of one line, "file: what was found, allowed: …".
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace moehub {

/// The values of an array as they lie in the file.
template <class Value>
class NpyValues {
  public:
    NpyValues(const std::byte* bytes, std::size_t size) : bytes_(bytes), size_(size) {}
    std::size_t size() const { return size_; }
    Value operator[](std::size_t index) const {
        Value value;
        std::memcpy(&value, bytes_ + index * sizeof(Value), sizeof(Value));
        return value;
    }

  private:
    const std::byte* bytes_;
    std::size_t size_;
};

class NpyArray {
  public:
    /// Limits that no array meant for moehub comes near.
    static constexpr std::uint64_t kMostBytes = std::uint64_t{16} << 30;
    static constexpr std::size_t kLongestHeader = 1u << 20;
    static constexpr std::size_t kMostDimensions = 32;

    /// Reads the file of that path; names it in errors. Never takes more memory than the file is
    /// long, whatever its header says.
    static NpyArray read(const std::string& path);
    /// Parses the bytes of a file; `file` is its name in errors.
    static NpyArray parse(std::string bytes, const std::string& file);

    const std::vector<std::int64_t>& shape() const { return shape_; }
    std::size_t size() const { return size_; }  ///< values in all: the product of the shape
    const std::string& dtype() const { return dtype_; }  ///< as the file has it: "<i4"

    /// Calls `visitor` with the NpyValues of the file's own type, last dimension fastest.
    template <class Visitor>
    auto visit(Visitor&& visitor) const {
        return visit_type<std::uint8_t, std::uint16_t, std::uint32_t, std::uint64_t, std::int8_t,
                          std::int16_t, std::int32_t, std::int64_t>(visitor, type_);
    }

  private:
    /// The type of that number among those listed.
    template <class Value, class... Others, class Visitor>
    auto visit_type(Visitor& visitor, std::size_t type) const {
        if constexpr (sizeof...(Others) > 0)
            if (type > 0) return visit_type<Others...>(visitor, type - 1);
        return visitor(
            NpyValues<Value>(reinterpret_cast<const std::byte*>(bytes_.data()) + first_, size_));
    }
    void set_dtype(const std::string& dtype, const std::string& file);

    std::vector<std::int64_t> shape_;
    std::size_t size_ = 0;
    std::size_t type_ = 0;  ///< index of the type: u1, u2, u4, u8, i1, i2, i4, i8
    std::string dtype_;
    std::string bytes_;      ///< bytes of the file
    std::size_t first_ = 0;  ///< byte of the first value
};

}  // namespace moehub
