/// A folder of a test's own.
#pragma once
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>

namespace moehub {

/// An empty folder, gone with all that is in it when this goes.
class OwnFolder {
  public:
    OwnFolder() {
        std::string name = (std::filesystem::temp_directory_path() / "moehub-XXXXXX").string();
        if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder");
        folder_ = name;
    }
    ~OwnFolder() { std::filesystem::remove_all(folder_); }
    OwnFolder(const OwnFolder&) = delete;
    OwnFolder& operator=(const OwnFolder&) = delete;

    std::string file(const std::string& name) const { return (folder_ / name).string(); }
    /// The path of a file that holds `text`.
    std::string saved(const std::string& name, const std::string& text) const {
        std::ofstream(file(name), std::ios::binary) << text;
        return file(name);
    }

  private:
    std::filesystem::path folder_;
};

}  // namespace moehub
