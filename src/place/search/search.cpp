#include "place/search/search.hpp"

#include "place/assignment.hpp"

#include <algorithm>
#include <numeric>

namespace moehub {

HeldExperts held_by(const ExpertLayout& layout, int layer) {
    const auto gpus = at(layout.gpus);
    HeldExperts held{layout.gpus, std::vector<std::uint8_t>(at(layout.experts) * gpus)};
    const auto& on = layout.on[at(layer)];
    for (std::size_t gpu = 0; gpu < gpus; ++gpu)
        for (const int expert : on[gpu]) held.held[at(expert) * gpus + gpu] = 1;
    return held;
}

Search::Search(const SearchSpec& spec, std::vector<SearchLayer> layers) : spec_(spec) {
    for (SearchLayer& layer : layers) layers_.push_back({std::move(layer), {}, {}, {}});
    if (layers_.front().tokens)
        per_token_ = 1.0 / static_cast<double>(layers_.front().tokens->sample().total_weight());
    build();
}

/// Fills all tables from the items' places.
void Search::build() {
    const Objective& want = spec_.objective;
    moved_ = 0;
    ItemGpus item_gpus;
    ItemGpus nodes;
    for (Layer& layer : layers_) {
        const std::vector<int>& gpu_of = layer.loads.gpu_of();
        item_gpus.push_back(gpu_of);
        nodes.push_back(node_of(gpu_of));
        for (std::size_t item = 0; item < gpu_of.size(); ++item)
            moved_ += fetched(layer, static_cast<int>(item), gpu_of[item]);
        if (!layer.tokens) continue;
        if (want.gpus > 0) layer.gpus.emplace(*layer.tokens, gpu_of, spec_.gpus);
        if (want.nodes > 0) layer.nodes.emplace(*layer.tokens, nodes.back(), spec_.nodes);
        if (want.activated > 0)
            layer.activated.emplace(*layer.tokens, gpu_of, spec_.gpus, spec_.batch);
    }
    if (layers_.size() < 2 || !layers_.front().tokens) return;
    std::vector<LayerTokens> tokens;
    const auto place = [&](std::optional<Chain>& chain, ItemGpus& gpu_of, int domains) {
        if (chain) return chain->place(std::move(gpu_of));
        if (tokens.empty())
            for (const Layer& layer : layers_) tokens.push_back(*layer.tokens);
        chain.emplace(tokens, std::move(gpu_of), domains);
    };
    if (want.transitions > 0 || want.pair > 0) place(chain_, item_gpus, spec_.gpus);
    if (want.node_transitions > 0) place(node_chain_, nodes, spec_.nodes);
}

void Search::place(const ItemGpus& item_gpus) {
    for (std::size_t layer = 0; layer < layers_.size(); ++layer)
        layers_[layer].loads.place(item_gpus[layer]);
    build();
}

double Search::energy() const {
    const Objective& want = spec_.objective;
    double sum = evenness_ * unevenness();
    for (const Layer& layer : layers_) {
        if (want.load > 0) sum += want.load * layer.loads.value();
        if (layer.gpus) sum += want.gpus * per_token_ * static_cast<double>(layer.gpus->total());
        if (layer.nodes) sum += want.nodes * per_token_ * static_cast<double>(layer.nodes->total());
        if (layer.activated) sum += want.activated * layer.activated->value();
    }
    double whole = want.moved * static_cast<double>(moved_) / static_cast<double>(spec_.slots);
    if (chain_) whole += want.transitions * chain_->off_domain() + want.pair * chain_->pair_norm();
    if (node_chain_) whole += want.node_transitions * node_chain_->off_domain();
    return sum + whole * spec_.layers;
}

double Search::objective() const {
    double value = energy() - evenness_ * unevenness();
    if (chain_ && spec_.objective.pair > 0)
        value +=
            spec_.objective.pair * spec_.layers * (chain_->heaviest_pair() - chain_->pair_norm());
    return value;
}

double Search::proposal_cost() const {
    constexpr double kPerGpu = 0.4;  // cost of a pair's power, or of a look for the busiest GPU
    const Objective& want = spec_.objective;
    const Layer& layer = layers_.front();
    double looks = 0;
    if (chain_ && want.pair > 0) looks += spec_.gpus;
    if (want.load > 0) looks += 0.25 * spec_.gpus * layer.loads.views();
    if (layer.activated) looks += 0.5 * spec_.gpus * layer.activated->batches();
    return 1 + kPerGpu * looks;
}

double Search::swap_cost() const {
    constexpr double kAlways = 10;
    constexpr double kPerProposal = 40;  // words or counters that are mended in the time of one
    const Layer& layer = layers_.front();
    const double items = this->items(0);
    double mended = 0;
    if (layer.tokens) {
        const auto words = static_cast<double>(layer.tokens->sample().words());
        const double k = layer.tokens->sample().top_k();
        const double counters = 2 * words * 64 * k / items * k;
        if (layer.gpus) mended += 6 * words * items / spec_.gpus + counters;
        if (layer.nodes) mended += 6 * words * items / spec_.nodes + counters;
    }
    if (chain_) mended += 4 * items;
    if (node_chain_) mended += 4 * items;
    return kAlways + mended / kPerProposal;
}

int Search::fetched_change(const Swap& swap) const {
    const Layer& layer = layers_[at(swap.layer)];
    if (!layer.held) return 0;
    const int g = layer.loads.gpu_of()[at(swap.a)];
    const int h = layer.loads.gpu_of()[at(swap.b)];
    return fetched(layer, swap.a, h) + fetched(layer, swap.b, g) - fetched(layer, swap.a, g) -
           fetched(layer, swap.b, h);
}

/// The change of the parts that cost the same exactly as bounded from below.
double Search::fixed_change(const Swap& swap) const {
    const Objective& want = spec_.objective;
    const Layer& layer = layers_[at(swap.layer)];
    double sum = 0;
    if (evenness_ > 0) sum += evenness_ * layer.loads.unevenness_change(swap.a, swap.b);
    if (want.load > 0) sum += want.load * layer.loads.change(swap.a, swap.b);
    if (layer.activated) sum += want.activated * layer.activated->change(swap.a, swap.b);
    double whole = 0;
    if (want.moved > 0)
        whole += want.moved * fetched_change(swap) / static_cast<double>(spec_.slots);
    if (chain_ && want.transitions > 0)
        whole += want.transitions * chain_->off_domain_change(swap.layer, swap.a, swap.b);
    if (chain_ && want.pair > 0)
        whole += want.pair * chain_->pair_norm_change(swap.layer, swap.a, swap.b);
    if (node_chain_)
        whole += want.node_transitions * node_chain_->off_domain_change(swap.layer, swap.a, swap.b);
    return sum + whole * spec_.layers;
}

double Search::least_change(const Swap& swap) const {
    const Layer& layer = layers_[at(swap.layer)];
    double sum = fixed_change(swap);
    if (layer.gpus)
        sum += spec_.objective.gpus * per_token_ *
               static_cast<double>(layer.gpus->least_change(swap.a, swap.b));
    if (layer.nodes)
        sum += spec_.objective.nodes * per_token_ *
               static_cast<double>(layer.nodes->least_change(swap.a, swap.b));
    return sum;
}

double Search::change(const Swap& swap) const {
    const Layer& layer = layers_[at(swap.layer)];
    double sum = fixed_change(swap);
    const auto exact = [&](const std::optional<Spread>& spread) {
        if (!spread) return 0.0;
        const std::int64_t least = spread->least_change(swap.a, swap.b);
        return per_token_ * static_cast<double>(spread->change(swap.a, swap.b, least));
    };
    sum += spec_.objective.gpus * exact(layer.gpus);
    sum += spec_.objective.nodes * exact(layer.nodes);
    return sum;
}

bool Search::allows(const Swap& swap) const {
    if (spec_.max_moves) {
        const int more = fetched_change(swap);
        if (more > 0 && moved_ + more > *spec_.max_moves) return false;
    }
    return layers_[at(swap.layer)].loads.allows(swap.a, swap.b);
}

void Search::apply(const Swap& swap) {
    Layer& layer = layers_[at(swap.layer)];
    moved_ += fetched_change(swap);
    if (layer.gpus) layer.gpus->swap(swap.a, swap.b);
    if (layer.nodes) layer.nodes->swap(swap.a, swap.b);
    if (layer.activated) layer.activated->swap(swap.a, swap.b);
    if (chain_) chain_->swap(swap.layer, swap.a, swap.b);
    if (node_chain_) node_chain_->swap(swap.layer, swap.a, swap.b);
    layer.loads.swap(swap.a, swap.b);
}

void Search::sort_copies() {
    ItemGpus sorted = item_gpus();
    bool changed = false;
    for (std::size_t layer = 0; layer < layers_.size(); ++layer) {
        const LayerItems& items = *layers_[layer].items;
        for (std::size_t expert = 0; expert + 1 < items.first.size(); ++expert) {
            const auto begin = sorted[layer].begin() + items.first[expert];
            const auto end = sorted[layer].begin() + items.first[expert + 1];
            if (std::is_sorted(begin, end)) continue;
            std::sort(begin, end);
            changed = true;
        }
    }
    if (changed) place(sorted);
}

void Search::align() {
    if (!chain_) return;
    ItemGpus item_gpus{gpu_of(0)};
    std::vector<int> before(at(spec_.gpus));  // the new labels of the layer before
    std::iota(before.begin(), before.end(), 0);
    for (int layer = 1; layer < layers(); ++layer) {
        const Matrix old = chain_->from_before(layer);
        Matrix gain(spec_.gpus, spec_.gpus);
        for (int mine = 0; mine < spec_.gpus; ++mine)
            for (int theirs = 0; theirs < spec_.gpus; ++theirs)
                gain(mine, before[at(theirs)]) = old(mine, theirs);
        before = best_labels(gain, spec_.nodes);
        std::vector<int>& there = item_gpus.emplace_back(gpu_of(layer));
        for (int& gpu : there) gpu = before[at(gpu)];
    }
    place(item_gpus);
}

}  // namespace moehub
