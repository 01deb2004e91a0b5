/// Recorded routing as questions ask for it: files, dumps of ranks, or routings at hand.
#pragma once
#include "answers/option.hpp"

#include <moehub/profile.hpp>

#include <optional>
#include <string>
#include <vector>

namespace moehub {

struct ProfileRequest {
    std::vector<std::string> ranks;              ///< dumps of one recording, one profile
    std::vector<Wanted<NamedRouting>> profiles;  ///< FILE[:from-to][@weight], a profile each
    std::vector<Wanted<NamedRouting>> held_out;  ///< to judge by, in the same form
    std::optional<int> experts, layers, top_k;   ///< where files do not say
    ArrayKind kind = ArrayKind::by_itself;
    Wanted<Model> model;
    std::optional<int> dense_layers;  ///< dense layers before the first recorded one

    std::size_t count() const { return profiles.size() + (ranks.empty() ? 0 : 1); }
};

/// Options that say how recorded routing is read: all but the files.
Options profile_options(ProfileRequest& request);

/// The model that is asked for, which has experts; none where none is named. Throws InputError.
std::optional<Model> profiled_model(const ProfileRequest& request);

/// In order, that of the ranks first and those held out last. Throws InputError when a file cannot
/// be read, they do not fit together, or are not of the model.
std::vector<Profile> load_profiles(const ProfileRequest& request, const Model* model);

/// Files that are read.
std::vector<std::string> files_of(const ProfileRequest& request);

}  // namespace moehub
