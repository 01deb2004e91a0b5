#include "place/search/activated.hpp"

#include <algorithm>

namespace moehub {

Activated::Activated(const LayerTokens& tokens, std::vector<int> gpu_of, int gpus, int batch)
    : gpus_(at(gpus)), gpu_of_(std::move(gpu_of)) {
    std::vector<std::size_t> real;  // without those that fill up words
    for (std::size_t token = 0; token < tokens.size(); ++token)
        if (tokens.sample().tokens()[token].profile >= 0) real.push_back(token);
    const std::size_t size = std::min(at(batch), real.size());
    batches_ = size > 0 ? real.size() / size : 0;
    awake_.assign(gpu_of_.size() * batches_, 0);
    for (std::size_t at = 0; at < batches_ * size; ++at)
        for (const std::uint16_t item : tokens.of(real[at]))
            if (item != tokens.nobody()) awake_[item * batches_ + at / size] = 1;
    count_.assign(batches_ * gpus_, 0);
    mean_.assign(batches_, 0.0);
    for (std::size_t item = 0; item < gpu_of_.size(); ++item)
        for (std::size_t number = 0; number < batches_; ++number) {
            if (!awake_[item * batches_ + number]) continue;
            ++count_[number * gpus_ + at(gpu_of_[item])];
            mean_[number] += 1.0 / static_cast<double>(gpus_);
        }
}

int Activated::most_but(std::size_t batch, std::size_t g, std::size_t h) const {
    int most = 0;
    for (std::size_t gpu = 0; gpu < gpus_; ++gpu)
        if (gpu != g && gpu != h) most = std::max(most, count_[batch * gpus_ + gpu]);
    return most;
}

double Activated::value() const {
    double sum = 0;
    for (std::size_t batch = 0; batch < batches_; ++batch)
        sum += mean_[batch] > 0 ? most_but(batch, gpus_, gpus_) / mean_[batch] : 1;
    return batches_ > 0 ? sum / static_cast<double>(batches_) : 0;
}

double Activated::change(int a, int b) const {
    const std::size_t g = at(gpu_of_[at(a)]);
    const std::size_t h = at(gpu_of_[at(b)]);
    if (g == h) return 0;
    double sum = 0;
    for (std::size_t batch = 0; batch < batches_; ++batch) {
        const int shift = int{awake(b, batch)} - int{awake(a, batch)};
        if (shift == 0) continue;
        const int others = most_but(batch, g, h);
        const int here = count_[batch * gpus_ + g];
        const int there = count_[batch * gpus_ + h];
        sum += (std::max({others, here + shift, there - shift}) - std::max({others, here, there})) /
               mean_[batch];
    }
    return sum / static_cast<double>(batches_);
}

void Activated::swap(int a, int b) {
    const std::size_t g = at(gpu_of_[at(a)]);
    const std::size_t h = at(gpu_of_[at(b)]);
    for (std::size_t batch = 0; batch < batches_; ++batch) {
        const int shift = int{awake(b, batch)} - int{awake(a, batch)};
        count_[batch * gpus_ + g] += shift;
        count_[batch * gpus_ + h] -= shift;
    }
    std::swap(gpu_of_[at(a)], gpu_of_[at(b)]);
}

}  // namespace moehub
