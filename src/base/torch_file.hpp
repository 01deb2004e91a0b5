/// Files of torch.save (zip archives, since PyTorch 1.6): containers and tensors of integers, read
/// as data. Every error is an InputError of one line, "file: …".
#pragma once
#include "base/pickle.hpp"
#include "base/zip.hpp"

namespace moehub {

/// The values of a tensor, last dimension fastest, whatever its strides were.
struct IntegerTensor {
    std::vector<std::int64_t> shape;
    std::vector<std::int64_t> values;
};

class TorchFile {
  public:
    /// `bytes` must outlive the file.
    static TorchFile parse(std::string_view bytes, const std::string& file);

    const Pickle& contents() const { return contents_; }
    bool is_tensor(Pickle::Ref value) const;
    /// `what` names the tensor in errors. All tensors read from one file have together at most as
    /// many values as the file has bytes: a small file cannot ask for much memory.
    IntegerTensor tensor(Pickle::Ref value, std::string_view what);

  private:
    struct Storage {
        std::string_view bytes;
        std::string_view type;  ///< "torch.IntStorage", "torch.storage.UntypedStorage"
    };
    TorchFile(ZipArchive archive, std::string prefix, Pickle contents, std::string file);
    [[noreturn]] void fail(std::string_view what, std::string_view why) const;
    Storage storage_of(Pickle::Ref value, std::string_view what);
    std::vector<std::int64_t> sizes_of(Pickle::Ref value, std::string_view what) const;

    ZipArchive archive_;
    std::string prefix_;  ///< "archive/data/"
    Pickle contents_;
    std::string file_;
    std::uint64_t values_left_ = 0;
    std::vector<std::string_view> read_;  ///< [entry of the archive], where its checksum is checked
};

}  // namespace moehub
