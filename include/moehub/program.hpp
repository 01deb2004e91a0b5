/// A system of one's own: what every GPU does in a MoE layer, as a coroutine over a Layer's GPU.
///
///     Process my_layer(GpuProgram& gpu) {
///         co_await gpu.route();
///         …
///     }
///     simulate_layer(input, own_system("mine", my_layer), options);
///
/// The rows that it sends are real: the run fails (std::logic_error) when a row does not reach its
/// expert exactly once, or its result does not come back exactly once, and with `verify` when the
/// outputs differ from the reference layer's; InputError where a call makes no sense.
/// examples/own_system is a whole one.
#pragma once
#include <moehub/process.hpp>
#include <moehub/system.hpp>
#include <moehub/units.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace moehub {

struct LayerInput;

/// A row, a (token, expert) pair, on its way or in a buffer: whose it is and, where rows carry
/// numbers, what it says.
struct CarriedRow {
    std::uint32_t token = 0;
    std::uint16_t choice = 0;  ///< which of the token's experts
    std::uint16_t expert = 0;
    const double* numbers = nullptr;
};
using Rows = std::vector<CarriedRow>;

/// One GPU as its program sees it. Every GPU of the machine runs the same program.
class GpuProgram {
  public:
    virtual ~GpuProgram() = default;

    virtual int gpu() const = 0;   ///< number of this GPU
    virtual int gpus() const = 0;  ///< how many GPUs there are
    virtual const LayerInput& input() const = 0;
    virtual Bytes row_bytes() const = 0;                 ///< bytes of one row on the wire
    virtual int home_of(std::uint32_t token) const = 0;  ///< the GPU whose token it is
    virtual std::vector<Rows> rows_by_gpu() const = 0;   ///< its own rows, by who computes them
    virtual Ps now() const = 0;

    // Compute, on the GPU's SMs.
    virtual Process route() = 0;  ///< router GEMM, top-k, softmax
    /// GEMM, activation, GEMM of rows whose experts are here; results stand where the rows stood.
    /// `rows` must last until it ends.
    virtual Process run_experts(Rows& rows) = 0;
    virtual Process run_shared() = 0;  ///< shared experts, where there are some
    /// Takes results of its own tokens, each once and all of them in the end, and adds them up.
    virtual Process add_up(Rows results) = 0;
    virtual Process delay(Ps time) = 0;

    // Rows between GPUs. A channel is what a receiver waits for by itself. Rows take bytes; without
    // rows, 0 bytes are a flag of one. SMs (SystemSpec::sending_sms, 16) read what is sent and
    // store it, one message after the other; nobody waits for them here.
    virtual void send(int to, int channel, Rows rows, Bytes bytes) = 0;
    /// Waits for so many messages in the channel since the start. Messages may overtake each other,
    /// also one sender's: give what is waited for by itself a channel of its own.
    virtual Process received(int channel, std::int64_t messages) = 0;
    /// Takes the rows that have come in the channel and were not taken yet, by sender.
    virtual Rows take(int channel) = 0;
};

/// The program of a system of one's own.
struct OwnProgram {
    std::function<Process(GpuProgram&)> run;
    int channels = 1;
};

/// A system that the library runs like its own: simulate_layer, compare_systems, …
SystemSpec own_system(std::string name, std::function<Process(GpuProgram&)> program,
                      int channels = 1);

}  // namespace moehub
