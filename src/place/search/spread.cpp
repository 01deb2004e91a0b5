#include "place/search/spread.hpp"

#include <algorithm>
#include <bit>

namespace moehub {
namespace {

/// Words of four sets; the last set may be null: empty.
struct BitSets {
    const std::uint64_t* a;
    const std::uint64_t* b;
    const std::uint64_t* c;
    const std::uint64_t* d;
};

inline __attribute__((always_inline)) std::int64_t count(const BitSets& sets,
                                                         std::span<const int> weights) {
    std::int64_t sum = 0;
    for (std::size_t word = 0; word < weights.size(); ++word) {
        const std::uint64_t both = sets.a[word] & sets.b[word];
        int bits = std::popcount(both & sets.c[word]);
        if (sets.d) bits += std::popcount(both & sets.d[word]);
        sum += std::int64_t{bits} * weights[word];
    }
    return sum;
}

#if defined(__x86_64__)
// The x86-64 baseline has no instruction for it; every processor since 2008 does.
__attribute__((target("popcnt"))) std::int64_t count_fast(const BitSets& sets,
                                                          std::span<const int> weights) {
    return count(sets, weights);
}
#endif

/// |a ∩ b ∩ c| + |a ∩ b ∩ d|, bits of a word weighing weights[word].
std::int64_t common_bits(const BitSets& sets, std::span<const int> weights) {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("popcnt")) return count_fast(sets, weights);
#endif
    return count(sets, weights);
}

}  // namespace

Spread::Spread(const LayerTokens& tokens, std::vector<int> domain_of, int domains)
    : tokens_(&tokens),
      domains_(at(domains)),
      words_(tokens.sample().words()),
      domain_of_(std::move(domain_of)),
      items_(domains_),
      bits_(domain_of_.size() * words_),
      any_(domains_ * words_),
      single_(domains_ * words_),
      none_((domain_of_.size() + 1) * domains_),
      one_(domain_of_.size()) {
    for (std::size_t token = 0; token < tokens.size(); ++token)
        for (const std::uint16_t item : tokens.of(token))
            if (item != tokens.nobody())
                bits_[item * words_ + token / 64] |= std::uint64_t{1} << token % 64;
    for (std::size_t item = 0; item < domain_of_.size(); ++item)
        items_[at(domain_of_[item])].push_back(static_cast<int>(item));
    for (int domain = 0; domain < domains; ++domain) {
        gather(domain);
        for (std::size_t word = 0; word < words_; ++word) {
            const int weight = tokens.sample().weight(word);
            const int without = add_none(word, ~any(domain)[word], domain, weight);
            total_ += std::int64_t{weight} * (64 - without);
        }
    }
}

/// The domain's token sets and its items' counts, from the items that are there.
void Spread::gather(int domain) {
    std::uint64_t* const some = any(domain);
    std::uint64_t* const exactly = one(domain);
    std::fill_n(some, words_, 0);
    std::fill_n(exactly, words_, 0);
    // Here `exactly` first holds the tokens with two items or more.
    for (const int item : items_[at(domain)]) {
        const std::uint64_t* const own = bits(item);
        for (std::size_t word = 0; word < words_; ++word) {
            exactly[word] |= some[word] & own[word];
            some[word] |= own[word];
        }
    }
    for (std::size_t word = 0; word < words_; ++word) exactly[word] = some[word] & ~exactly[word];
    for (const int item : items_[at(domain)])
        one_[at(item)] = static_cast<std::int32_t>(
            common_bits({bits(item), bits(item), exactly, nullptr}, tokens_->sample().weights()));
}

std::int64_t Spread::change(int a, int b, std::int64_t least) const {
    const int from = domain_of_[at(a)];
    const int to = domain_of_[at(b)];
    if (from == to) return 0;
    return least + common_bits({bits(a), bits(b), one(from), one(to)}, tokens_->sample().weights());
}

void Spread::swap(int a, int b) {
    const int from = domain_of_[at(a)];
    const int to = domain_of_[at(b)];
    if (from == to) return;
    exchange(b, a, from);
    exchange(a, b, to);
    std::swap(domain_of_[at(a)], domain_of_[at(b)]);
    *std::find(items_[at(from)].begin(), items_[at(from)].end(), a) = b;
    *std::find(items_[at(to)].begin(), items_[at(to)].end(), b) = a;
    gather(from);
    gather(to);
}

/// What the domain's tokens gain and lose when `in` comes and `out` goes.
void Spread::exchange(int in, int out, int domain) {
    for (std::size_t word = 0; word < words_; ++word) {
        const std::uint64_t coming = bits(in)[word];
        const std::uint64_t going = bits(out)[word];
        const std::uint64_t lost = going & ~coming & one(domain)[word];
        const std::uint64_t gained = coming & ~going & ~any(domain)[word];
        const int weight = tokens_->sample().weight(word);
        const int fewer = add_none(word, lost, domain, weight);
        const int more = add_none(word, gained, domain, -weight);
        total_ += std::int64_t{weight} * (more - fewer);
    }
}

/// These tokens' items have so many more tokens without the domain. Returns how many tokens.
int Spread::add_none(std::size_t word, std::uint64_t tokens, int domain, int weight) {
    std::int32_t* const counts = none_.data() + at(domain) * (domain_of_.size() + 1);
    int number = 0;
    for (; tokens != 0; tokens &= tokens - 1) {
        ++number;
        const std::size_t token = word * 64 + at(std::countr_zero(tokens));
        for (const std::uint16_t item : tokens_->of(token)) counts[item] += weight;
    }
    return number;
}

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
