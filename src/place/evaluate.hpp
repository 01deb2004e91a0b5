/// Copies of experts in one layer of a layout, and what they mean for loads.
#pragma once
#include "place/counts.hpp"

#include <moehub/place.hpp>

#include <cstdint>
#include <vector>

namespace moehub {

/// The copies of each expert of a layer, by GPU; a token takes copy (token mod copies).
class LayerCopies {
  public:
    LayerCopies(const ExpertLayout& layout, int layer);

    int slots() const { return static_cast<int>(gpus_.size()); }
    int of(int expert) const { return first(expert + 1) - first(expert); }
    /// Slots are numbered expert by expert, copy by copy.
    int slot(int expert, std::int64_t token) const {
        return first(expert) + static_cast<int>(token % of(expert));
    }
    int gpu(int expert, std::int64_t token) const {
        return gpus_[static_cast<std::size_t>(slot(expert, token))];
    }

  private:
    int first(int expert) const { return first_[static_cast<std::size_t>(expert)]; }
    std::vector<int> first_;
    std::vector<int> gpus_;
};

/// Rows of each GPU, an expert's shared out evenly over its copies.
std::vector<double> gpu_loads(const Profile& profile, const ExpertLayout& layout, int layer);

}  // namespace moehub
