/// The options that describe a layer to simulate, shared by `moehub compare` and `moehub run`.
#pragma once
#include "cli/command.hpp"
#include "study/layer_case.hpp"

#include <optional>
#include <string>
#include <vector>

namespace moehub {

/// As typed; text, so that every mistake gets a message of ours.
struct LayerArguments {
    std::string machine = "dgx-h800";
    std::string model = "mixtral-8x7b";
    std::optional<std::string> gpus;
    std::optional<std::string> tokens;
    std::string routing = "uniform";
    std::optional<std::string> seed;
    std::optional<std::string> layer;
    std::string pass = "forward";
    std::string grain = "row";
    std::vector<std::string> settings;
    std::optional<std::string> host;
    bool fused_activation = false;
    bool fp8 = false;
    std::string tensor_parallel = "1";
    std::string replicas = "0";
    std::string replica_policy = "round-robin";
    std::optional<std::string> region_rows;
    std::optional<std::string> page_rows;
    std::optional<std::string> page_pool;
    bool verify = false;
    bool json = false;
    std::string output;
};

void add_layer_options(std::vector<Option>& options, LayerArguments& arguments);
void add_pass_option(std::vector<Option>& options, LayerArguments& arguments);

/// The software that all systems are to have.
Software software_of(const LayerArguments& arguments);
void add_software_options(std::vector<Option>& options, LayerArguments& arguments);

/// The systems with what `--set system.NAME.KEY=VALUE` changes. Throws InputError.
std::vector<SystemSpec> load_systems(const LayerArguments& arguments,
                                     const std::vector<std::string>& names);

/// Loads what is named and makes the routing and the placement. Throws InputError.
LayerCase load_layer(const LayerArguments& arguments);

}  // namespace moehub
