/// What `moehub place` was asked, as typed and as values.
#pragma once
#include "request/html_output.hpp"
#include "request/option.hpp"
#include "request/profile_arguments.hpp"

#include <moehub/machine.hpp>
#include <moehub/model.hpp>
#include <moehub/place.hpp>
#include <moehub/system.hpp>

#include <optional>
#include <string>
#include <vector>

namespace moehub {

/// As typed; text, so that every mistake gets a message of ours.
struct PlaceArguments {
    ProfileArguments profiles;
    std::vector<std::string> evaluate;  ///< FILE[:from-to][@weight]
    std::string machine = "dgx-h100";
    std::string gpus = "8";
    std::optional<std::string> nodes;
    std::string groups = "1";
    std::string replicas = "0";
    std::string method = "joint";
    std::optional<std::string> objective;
    std::string load_cap = "1.06";
    std::string load_blocks = "1";
    bool worst_profile = false;
    bool unequal = false;
    std::string batch = "64";
    std::optional<std::string> current;
    std::optional<std::string> max_moves;
    std::optional<std::string> memory;
    std::string weight_bits = "16";
    std::optional<std::string> dense_layers;
    std::string time_limit = "10";
    std::string seed = "1";
    std::optional<std::string> threads;
    bool pareto = false;
    std::optional<std::string> system;
    std::vector<std::string> simulate;
    std::optional<std::string> format;
    std::string output;
    bool json = false;
    HtmlOutput html;
};

std::vector<Option> place_options(PlaceArguments& arguments);

struct PlaceTask {
    PlaceInput input;
    PlaceOptions options;
    std::vector<Profile> held_out;
    Machine machine;  ///< where systems are simulated, of the size wanted
    std::optional<Model> model;
    std::vector<SystemSpec> systems;  ///< to simulate; the first decides which layout is taken
    LayoutFormat format = LayoutFormat::sglang;
};

/// Loads what is named. Throws InputError, for what can be seen before the search.
PlaceTask load_place(const PlaceArguments& arguments);

}  // namespace moehub
