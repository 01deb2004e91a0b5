// Does the fit write the same constants every time, and are they those that are shipped?
#include "model/records.hpp"
#include "nelder_mead.hpp"
#include "problems.hpp"

#include <moehub/presets.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>
#include <unistd.h>

namespace moehub::fit::fit_test {
namespace {

const std::string kMeasurements = std::string(MOEHUB_SOURCE_DIR) + "/validation/kernels";
const std::string kPresets = std::string(MOEHUB_SOURCE_DIR) + "/presets/generations";

std::string text_of(const std::filesystem::path& path) {
    std::ostringstream text;
    text << std::ifstream(path, std::ios::binary).rdbuf();
    return text.str();
}

TEST(NelderMead, finds_the_minimum_of_a_valley) {
    const auto valley = [](const Point& x) {
        return (x[0] - 3) * (x[0] - 3) + 10 * (x[1] - x[0] * x[0]) * (x[1] - x[0] * x[0]);
    };
    const Point found = minimise(valley, {1, 1}, {2000, 0.3, 1e-14});
    EXPECT_NEAR(found[0], 3, 1e-3);
    EXPECT_NEAR(found[1], 9, 1e-2);
    EXPECT_EQ(found, minimise(valley, {1, 1}, {2000, 0.3, 1e-14}));
}

Problem problem_of(const std::string& generation, const std::string& library,
                   const std::string& kernel) {
    for (const Problem& one : problems())
        if (one.generation == generation && one.library == library && one.kernel == kernel)
            return one;
    throw std::logic_error("no such problem");
}

/// Expects that the fit writes the generation's file as it is, to the byte.
void expect_shipped(const Problem& problem, const Solution& solution) {
    const std::filesystem::path folder =
        std::filesystem::temp_directory_path() / ("moehub-fit-" + std::to_string(getpid()));
    std::filesystem::create_directories(folder);
    const std::string name = problem.generation + ".toml";
    std::filesystem::copy_file(kPresets + "/" + name, folder / name);
    write_constants(problem, solution, folder.string());
    EXPECT_EQ(text_of(folder / name), text_of(kPresets + "/" + name));
    std::filesystem::remove_all(folder);
}

/// The quickest of both generations, one of them a fused MoE.
TEST(Fit, writes_the_shipped_constants_to_the_byte) {
    for (const Problem& problem : {problem_of("blackwell", "trtllm", "decode"),
                                   problem_of("hopper", "flashinfer-cutlass", "moe_bf16")})
        expect_shipped(problem, solve(problem, kMeasurements));
}

/// All constants, as they stand in the presets, are what the fit would print of them.
TEST(Fit, every_shipped_constant_is_written_as_the_fit_writes_it) {
    for (const Problem& problem : problems()) {
        Gpu gpu = load_gpu(problem.generation == "hopper" ? "h200-sxm" : "b200");
        Solution solution;
        for (const Knob& knob : problem.knobs) {
            const std::string key = knob.key.find('.') == std::string::npos
                                        ? problem.kernel + "." + knob.key
                                        : knob.key;
            for (const Field& field : fields_of(gpu.libraries.at(problem.library)))
                if (field.key == key) solution.values.push_back(*number_in(field.pointer));
        }
        ASSERT_EQ(solution.values.size(), problem.knobs.size());
        expect_shipped(problem, solution);
    }
}

TEST(Fit, every_knob_is_a_constant_and_every_kernel_is_fitted) {
    for (const std::string generation : {"hopper", "blackwell"}) {
        std::map<std::string, KernelLibrary> libraries =
            load_gpu(generation == "hopper" ? "h200-sxm" : "b200").libraries;
        for (auto& [name, library] : libraries) {
            std::set<std::string> tables;
            for (const Problem& problem : problems())
                if (problem.generation == generation && problem.library == name)
                    for (const Knob& knob : problem.knobs) {
                        std::vector<std::string> keys = knob.tied;
                        keys.push_back(knob.key);
                        for (const std::string& key : keys) {
                            const auto dot = key.find('.');
                            tables.insert(dot == std::string::npos ? problem.kernel
                                                                   : key.substr(0, dot));
                        }
                    }
            for (const Field& field : fields_of(library)) {
                const std::string table = field.key.substr(0, field.key.find('.'));
                const auto* start = std::get_if<std::int64_t*>(&field.pointer);
                const bool there = start != nullptr && **start > 0;
                if (field.key.ends_with(".start") && there) {
                    EXPECT_TRUE(tables.contains(table))
                        << generation << ' ' << name << ' ' << table;
                }
            }
        }
    }
}

}  // namespace
}  // namespace moehub::fit::fit_test
