/// Which profiles a command reads, and what it is told of them.
#pragma once
#include "request/option.hpp"

#include <moehub/profile.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace moehub {

struct ProfileArguments {
    std::vector<Profile> given;      ///< at hand already, before those that are read
    std::vector<Profile> held_out;   ///< likewise, after them
    std::vector<std::string> ranks;  ///< FILE[:from-to]: dumps of one recording, one profile
    std::vector<std::string> files;  ///< FILE[:from-to][@weight], a profile each
    std::optional<std::string> experts;
    std::optional<std::string> model;
    std::optional<std::string> kind;
    std::optional<std::string> layers;
    std::optional<std::string> top_k;
};

/// All but the files.
void add_profile_options(std::vector<Option>& options, ProfileArguments& arguments);

/// True when both paths lead to one file, there or not yet.
bool same_file(const std::string& a, const std::string& b);

/// Throws InputError, with the option's name, when a command's output would replace one of the
/// profiles (FILE[:from-to][@weight]), or a file in the folder of one.
void check_output_apart(std::string_view option, const std::string& output,
                        const std::vector<std::string>& profiles);

/// How many profiles that is.
std::size_t profile_count(const ProfileArguments& arguments);

/// Reads them in order, that of the ranks first. Throws InputError when an option is wrong, a file
/// cannot be read, they do not fit together, or are not of the model.
std::vector<Profile> load_profiles(const ProfileArguments& arguments);

}  // namespace moehub
