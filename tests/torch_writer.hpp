/// Files as torch.save writes them, made by hand: a pickle, and storages of int32 or int64.
#pragma once
#include "recorded_files.hpp"

namespace moehub {

inline std::string pickled(std::int64_t value) {
    return std::string("\x8a\x08") + little_endian(static_cast<std::uint64_t>(value), 8);
}
inline std::string pickled(const std::string& text) {
    return std::string("X") + little_endian(text.size(), 4) + text;
}
inline std::string pickled_tuple(const std::vector<std::int64_t>& values) {
    std::string bytes = "(";
    for (const auto value : values) bytes += pickled(value);
    return bytes + "t";
}
inline std::string pickled_dict(const std::vector<std::pair<std::string, std::string>>& items) {
    std::string bytes = "}(";
    for (const auto& [key, value] : items) bytes += pickled(key) + value;
    return bytes + "u";
}
inline std::string pickled_list(const std::vector<std::string>& items) {
    std::string bytes = "](";
    for (const auto& item : items) bytes += item;
    return bytes + "e";
}

/// Collects storages while the pickle is written.
class TorchWriter {
  public:
    struct View {
        std::vector<std::int64_t> shape, strides;
        std::int64_t offset = 0;
    };

    template <class Value>
    std::string tensor(const std::vector<Value>& values, const std::vector<std::int64_t>& shape) {
        View view{shape, std::vector<std::int64_t>(shape.size(), 1)};
        for (std::size_t d = shape.size(); d-- > 1;)
            view.strides[d - 1] = view.strides[d] * shape[d];
        return this->view(values, view);
    }
    template <class Value>
    std::string view(const std::vector<Value>& values, const View& view) {
        const std::string key = std::to_string(storages_.size());
        storages_.emplace_back("archive/data/" + key, bytes_of(values));
        const std::string type = sizeof(Value) == 8 ? "Long" : "Int";
        return "ctorch._utils\n_rebuild_tensor_v2\n((" + pickled(std::string("storage")) +
               "ctorch\n" + type + "Storage\n" + pickled(key) + pickled(std::string("cuda:0")) +
               pickled(static_cast<std::int64_t>(values.size())) + "tQ" + pickled(view.offset) +
               pickled_tuple(view.shape) + pickled_tuple(view.strides) +
               "\x89"
               "ccollections\nOrderedDict\n)RtR";
    }
    std::string file(const std::string& pickle, bool zip64 = false) const {
        std::vector<std::pair<std::string, std::string>> entries = {
            {"archive/data.pkl", std::string("\x80\x02") + pickle + "."},
            {"archive/byteorder", "little"}};
        entries.insert(entries.end(), storages_.begin(), storages_.end());
        entries.emplace_back("archive/version", "3\n");
        return stored_zip(entries, zip64);
    }

  private:
    std::vector<std::pair<std::string, std::string>> storages_;
};

}  // namespace moehub
