/// What programs ask for, of a layer and of a system's parameters.
#pragma once
#include <moehub/error.hpp>
#include <moehub/layer.hpp>

#include <initializer_list>
#include <utility>

#include <fmt/format.h>

namespace moehub::systems {

/// What a program may ask for beyond what every layer needs.
enum class Requirement {
    one_gpu,        ///< which has all experts
    one_node,       ///< all GPUs reach each other's memory
    in_switch,      ///< switches that multicast and reduce
    whole_experts,  ///< no tensor parallelism inside experts
    even_experts,   ///< every GPU has as many experts
    computes,       ///< rows do not move in steps of their own
    sends,          ///< SMs that read rows and store them
    combines,       ///< SMs that load sums of results
    spare_sms,      ///< SMs beside those that communication holds
    one_kernel,     ///< all of it, so there is none between the GEMMs
    as_sent,        ///< experts read rows as they were sent
    one_piece,      ///< regions have room for every token, in one piece
    plain,          ///< BF16, and no kernel that does two things
};

class Needs {
  public:
    Needs(std::initializer_list<Requirement> needs = {}) {
        for (const Requirement need : needs) bits_ |= 1u << static_cast<unsigned>(need);
    }
    bool has(Requirement need) const { return (bits_ >> static_cast<unsigned>(need) & 1u) != 0; }

  private:
    unsigned bits_ = 0;
};

/// Throws CannotRun.
template <class... Values>
[[noreturn]] void cannot_run(const SystemSpec& system, fmt::format_string<Values...> why,
                             Values&&... values) {
    throw CannotRun(system.name, fmt::format(why, std::forward<Values>(values)...));
}

// Each throws CannotRun when the layer, its machine or the system does not have what is needed.
void check_switches(const Machine& machine, const SystemSpec& system);
void check_sms(const Machine& machine, const SystemSpec& system, const Needs& needs);
void check_needs(const LayerInput& in, const SystemSpec& system, const Needs& needs,
                 const LayerOptions& options);

/// As check_layer(), of a machine whose values were looked at one by one when it was loaded, which
/// takes longer than all the rest.
void check_loaded(const LayerInput& input, const SystemSpec& system, const LayerOptions& options);

}  // namespace moehub::systems
