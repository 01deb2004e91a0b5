#include "cli/sweep_ranks.hpp"

#include <moehub/error.hpp>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include <dlfcn.h>
#include <fmt/format.h>

namespace moehub {
namespace {

namespace fs = std::filesystem;

/// Open MPI's mpirun sets the first, and srun with PMIx the second.
bool started_by_mpi() {
    return std::getenv("OMPI_COMM_WORLD_SIZE") != nullptr || std::getenv("PMIX_RANK") != nullptr;
}

/// Beside the program, as built; where it is installed.
std::vector<std::string> module_paths() {
    std::error_code ignored;
    const fs::path folder = fs::read_symlink("/proc/self/exe", ignored).parent_path();
    constexpr const char* kName = "libmoehub_mpi.so";
    return {(folder / kName).string(), (folder / ".." / MOEHUB_MODULES / kName).string()};
}

}  // namespace

bool is_alone() {
    const char* const size = std::getenv("OMPI_COMM_WORLD_SIZE");
    return !started_by_mpi() || (size != nullptr && std::string(size) == "1");
}

std::unique_ptr<Transport> load_transport() {
    if (is_alone()) return nullptr;
    std::string why;
    for (const std::string& path : module_paths()) {
        if (!fs::exists(path)) continue;
        // Open MPI loads parts of its own, which look for its symbols among the program's.
        void* const module = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
        void* const make = module == nullptr ? nullptr : dlsym(module, "moehub_transport");
        if (make == nullptr) {
            why = dlerror();
            continue;
        }
        auto transport = std::unique_ptr<Transport>(reinterpret_cast<Transport* (*)()>(make)());
        if (transport->size() > 1) return transport;
        transport->finish(true);
        return nullptr;
    }
    throw InputError(fmt::format(
        "sweep: started by MPI, but libmoehub_mpi.so cannot be loaded ({}), allowed: a build where "
        "libopenmpi-dev is installed, or --shard without MPI",
        why.empty() ? "it was not built" : why));
}

}  // namespace moehub
