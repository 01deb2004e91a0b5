/// One GPU's compute side: thread blocks on SMs that draw on tensor cores and HBM together with
/// whatever else runs there, and the kernels that consist of them. Alone on the card, a kernel
/// takes what its plan predicts (tile.hpp, memory_ops.hpp).
#pragma once
#include "sim/endpoint.hpp"
#include "sim/gpu/kernel_log.hpp"
#include "sim/gpu/memory_ops.hpp"
#include "sim/gpu/shared_rate.hpp"
#include "sim/gpu/tile.hpp"

#include <moehub/gpu.hpp>
#include <moehub/units.hpp>

#include <array>
#include <coroutine>
#include <deque>
#include <vector>

namespace moehub::sim {

/// What a GPU did at each moment: computed; or, where no kernel ran, had rows underway; or neither.
class Activity {
  public:
    struct Interval {
        Ps begin = 0;
        Ps end = 0;
    };

    /// `change` more (or fewer) kernels run, transfers are underway, from `now` on.
    void compute(int change, Ps now) {
        advance(now);
        note(computing_, change, now, compute_intervals_);
    }
    void communicate(int change, Ps now) {
        advance(now);
        note(communicating_, change, now, communication_intervals_);
    }

    // Picoseconds, up to the last change.
    Ps computed() const { return computed_; }
    Ps exposed() const { return exposed_; }  ///< rows underway, no kernel running
    // When it did either without a break; the last interval is open while it lasts.
    const std::vector<Interval>& compute_intervals() const { return compute_intervals_; }
    const std::vector<Interval>& communication_intervals() const {
        return communication_intervals_;
    }

  private:
    static void note(int& count, int change, Ps now, std::vector<Interval>& intervals) {
        const bool before = count > 0;
        count += change;
        if (!before && count > 0) {
            const bool goes_on = !intervals.empty() && intervals.back().end == now;
            if (!goes_on) intervals.push_back({now, now});
        } else if (before && count == 0) {
            intervals.back().end = now;
        }
    }
    void advance(Ps now) {
        if (computing_ > 0) {
            computed_ += now - last_;
        } else if (communicating_ > 0) {
            exposed_ += now - last_;
        }
        last_ = now;
    }

    int computing_ = 0;
    int communicating_ = 0;
    Ps last_ = 0;
    Ps computed_ = 0;
    Ps exposed_ = 0;
    std::vector<Interval> compute_intervals_;
    std::vector<Interval> communication_intervals_;
};

struct Card;

/// Whoever submitted a block and wants to know when it is done. Slow path.
class BlockOwner {
  public:
    virtual void block_done(std::uint32_t block) = 0;

  protected:
    ~BlockOwner() = default;
};

/// Work and rates must outlive the block.
struct Block {
    const TileWork* work = nullptr;
    const TileRates* rates = nullptr;
    BlockOwner* owner = nullptr;
    std::uint32_t number = 0;  ///< number that the owner is told
    KernelName kernel = KernelName::other;
};

/// The priorities of streams: a free SM goes to the most urgent block.
enum class Priority : std::uint8_t { high, normal, low };

/// The thread-block scheduler of one GPU: blocks whose data is there wait, by priority and in the
/// order in which they were submitted, for SMs; each then draws on tensor cores and HBM together
/// with whatever else runs.
class BlockScheduler {
  public:
    explicit BlockScheduler(Card& card);
    BlockScheduler(const BlockScheduler&) = delete;

    void submit(const Block& block, Priority priority);
    /// A kernel that stays takes SMs as soon as running blocks leave them (hold), and gives them
    /// back (release).
    void hold(int sms, KernelName kernel);
    void release(int sms, KernelName kernel);
    int free() const { return free_; }           ///< SMs that are free
    double sm_time() const { return sm_time_; }  ///< picoseconds, summed over SMs, of ended blocks
    /// Has the log record who has which SMs from now on; it must outlive the run.
    void record(KernelLog& log) { log_ = &log; }
    KernelLog* kernel_log() const { return log_; }  ///< the log; null where nobody records

  private:
    /// A coroutine that runs one block after another; idle ones wait for the next.
    struct Worker {
        Block block;
        std::coroutine_handle<> idle;
    };
    struct NextBlock {
        BlockScheduler& scheduler;
        std::uint32_t worker;
        bool await_ready() const { return false; }
        void await_suspend(std::coroutine_handle<> caller);
        void await_resume() const {}
    };

    Process work(std::uint32_t worker);
    void assign();
    void finish(std::uint32_t worker, Ps begin);

    Card& card_;
    int free_;
    double sm_time_ = 0;
    KernelLog* log_ = nullptr;
    std::array<std::deque<Block>, 3> waiting_;  ///< waiting blocks of each priority
    std::deque<Worker> workers_;
    std::vector<Process> processes_;
    std::vector<std::uint32_t> idle_;
};

struct Card {
    Card(Endpoint& endpoint, const Gpu& gpu);
    Card(const Card&) = delete;  // its blocks refer to it

    Endpoint& endpoint;
    Gpu gpu;
    SharedRate tensor;  ///< FLOP/s
    SharedRate hbm;     ///< bytes/s
    Activity activity;
    BlockScheduler blocks;
};

/// Runs all tiles of a GEMM; returns when the last is stored. Tiles are started in the plan's
/// order. The plan must outlive the process.
Process run_gemm(Card& card, const GemmPlan& plan, KernelName kernel = KernelName::other,
                 Priority priority = Priority::normal);

/// Runs a memory-bound kernel on all SMs: its blocks take their time there and draw on HBM.
Process run_stream(Card& card, Traffic traffic, KernelName kernel = KernelName::other);
/// Runs a memory-bound kernel's thread blocks alone, as part of a kernel that runs already.
Process run_stream_blocks(Card& card, Traffic traffic, KernelName kernel, Priority priority);

/// Has the card busy for so long with something that is not modelled block by block.
Process run_for(Card& card, double seconds, KernelName kernel = KernelName::other);

/// A kernel on the card as long as this lives, for the timeline alone.
class Launched {
  public:
    Launched(Card& card, KernelName kernel) : card_(card) {
        if (KernelLog* log = card.blocks.kernel_log())
            launch_ = log->launched(kernel, card.endpoint.now());
    }
    ~Launched() {
        if (KernelLog* log = card_.blocks.kernel_log())
            log->ran_until(launch_, card_.endpoint.now());
    }
    Launched(const Launched&) = delete;

  private:
    Card& card_;
    std::size_t launch_ = 0;
};

}  // namespace moehub::sim
