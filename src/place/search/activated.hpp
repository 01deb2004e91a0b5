/// Activated experts: in decode a GPU reads the weights of every expert that a batch wakes, so what
/// counts is the GPU with the most of them.
#pragma once
#include "place/search/items.hpp"

namespace moehub {

class Activated {
  public:
    /// Runs of `batch` tokens; a rest shorter than that is left out.
    Activated(const LayerTokens& tokens, std::vector<int> gpu_of, int gpus, int batch);

    /// GPU with the most awake items over the mean, mean over batches.
    double value() const;
    double change(int a, int b) const;
    double batches() const { return static_cast<double>(batches_); }
    void swap(int a, int b);

  private:
    bool awake(int item, std::size_t batch) const { return awake_[at(item) * batches_ + batch]; }
    int most_but(std::size_t batch, std::size_t g, std::size_t h) const;

    std::size_t gpus_;
    std::size_t batches_ = 0;
    std::vector<int> gpu_of_;
    std::vector<std::uint8_t> awake_;  ///< [item][batch]
    std::vector<int> count_;           ///< [batch][gpu]
    std::vector<double> mean_;         ///< [batch]
};

}  // namespace moehub
