#include "request/place_simulated.hpp"

#include <algorithm>

namespace moehub {
namespace {

Profile with_tokens(const PlaceTask& task, std::vector<std::string>& notes) {
    const Profile& profile =
        task.held_out.empty() ? task.input.profiles.front() : task.held_out.front();
    if (profile.has_tokens()) return profile;
    notes.emplace_back(
        "Simulated tokens were drawn by the counts, each layer by itself: loads are as counted; "
        "which experts go together is not known, so fewer GPUs per token gain nothing here.");
    return with_drawn_tokens(profile, *task.model);
}

std::vector<std::size_t> chosen_layers(const PlaceTask& task, int recorded) {
    constexpr int kLayersTimesGpus = 256;
    constexpr int kFewest = 8;
    const int layers = std::min(recorded, task.model->moe_layers());
    const int count = std::min(layers, std::max(kFewest, kLayersTimesGpus / task.input.gpus));
    std::vector<std::size_t> chosen;
    for (int i = 0; i < count; ++i)
        chosen.push_back(static_cast<std::size_t>((2 * i + 1) * layers / (2 * count)));
    return chosen;
}

Profile with_layers(const Profile& whole, const std::vector<std::size_t>& kept) {
    Profile part;
    part.name = whole.name;
    part.layers = static_cast<int>(kept.size());
    part.experts = whole.experts;
    part.top_k = whole.top_k;
    part.tokens = whole.tokens;
    part.model_layers = whole.model_layers;
    const auto size = whole.tokens * whole.top_k;
    for (const std::size_t layer : kept) {
        const auto first = whole.chosen.begin() + static_cast<std::ptrdiff_t>(layer) * size;
        part.chosen.insert(part.chosen.end(), first, first + size);
        part.layer_numbers.push_back(whole.layer_numbers[layer]);
    }
    count_choices(part);
    return part;
}

}  // namespace

Profile simulated_part(const PlaceTask& task, std::vector<NamedLayout>& layouts,
                       std::vector<std::string>& notes) {
    const Profile whole = with_tokens(task, notes);
    const std::vector<std::size_t> kept = chosen_layers(task, whole.layers);
    for (NamedLayout& one : layouts) {
        const ExpertLayout all = one.layout;
        one.layout.on.clear();
        one.layout.layer_numbers.clear();
        for (const std::size_t layer : kept) {
            one.layout.on.push_back(all.on[layer]);
            one.layout.layer_numbers.push_back(all.layer_numbers[layer]);
        }
    }
    return with_layers(whole, kept);
}

}  // namespace moehub
