/// What `moehub collective` is asked, and what it answers.
#pragma once
#include "base/json.hpp"
#include "request/nouns.hpp"
#include "request/option.hpp"

#include <moehub/collective.hpp>

#include <optional>
#include <string>
#include <vector>

namespace moehub {

/// As typed; text, so that every mistake gets a message of ours.
struct CollectiveArguments {
    std::string op = "all_to_all";
    std::string algorithm;
    std::string machine = "dgx-h100";
    std::optional<std::string> gpus;
    std::string bytes = "1G";
    std::string element = "half";
    std::string grain = "row";
    std::vector<std::string> settings;
    bool json = false;
    std::string output;
};

struct CollectiveRun {
    Collective collective;
    CollectiveResult result;
    double wall_seconds = 0;
};

std::vector<Option> collective_options(CollectiveArguments& arguments);

/// On the machine that is given, else named. Throws InputError.
CollectiveRun run_collective(const CollectiveArguments& request,
                             const Loaded<Machine>* given = nullptr);

/// Bytes/s: size over time.
double algorithm_bandwidth(const CollectiveRun& run);

Json collective_json(const CollectiveRun& run, const CollectiveArguments& request);

}  // namespace moehub
