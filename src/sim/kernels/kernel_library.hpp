/// Libraries by name.
#pragma once
#include <moehub/gpu.hpp>

#include <string>

namespace moehub {

/// Throws InputError, naming those there are.
const KernelLibrary& library_of(const Gpu& gpu, const std::string& name);

}  // namespace moehub
