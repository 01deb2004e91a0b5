// A user's program, run as the library's own are.
#include "layers/mail.hpp"
#include "layers/rows.hpp"
#include "systems/systems.hpp"

#include <moehub/error.hpp>
#include <moehub/program.hpp>

#include <algorithm>
#include <deque>
#include <utility>

#include <fmt/format.h>

namespace moehub {
namespace systems {
namespace {

constexpr Ps kLongest = 3'600'000'000'000'000;  ///< an hour
constexpr int kSendingSms = 16;                 ///< as moe-hub's

class OwnGpu final : public GpuProgram {
  public:
    OwnGpu(MoeLayer& layer, Mail& mail, GpuId gpu) : layer_(layer), mail_(mail), gpu_(gpu) {}

    int gpu() const override { return gpu_; }
    int gpus() const override { return static_cast<int>(layer_.gpus.count()); }
    const LayerInput& input() const override { return layer_.input; }
    Bytes row_bytes() const override { return layer_.row_bytes(); }
    int home_of(std::uint32_t token) const override {
        check_token(token);
        return layer_.home_of(token);
    }
    std::vector<Rows> rows_by_gpu() const override { return permuted(layer_, gpu_); }
    Ps now() const override { return layer_.endpoint(gpu_).now(); }

    Process route() override { return layer_.route(gpu_); }
    Process run_shared() override { return layer_.run_shared(gpu_); }
    Process run_experts(Rows& rows) override {
        for (const CarriedRow& row : rows) check_row(row);
        const std::vector<std::int64_t> counts = rows_by_expert(layer_, gpu_, {rows});
        co_await run_grouped_experts(layer_, gpu_, counts);
        compute(layer_, gpu_, rows);
    }
    Process add_up(Rows results) override {
        for (const CarriedRow& row : results) {
            if (home_of(row.token) == gpu()) continue;
            throw InputError(fmt::format("add_up: token {} is gpu {}'s, not gpu {}'s", row.token,
                                         home_of(row.token), gpu()));
        }
        take_back(layer_, gpu_, results);
        co_await layer_.scale(gpu_);
    }
    Process delay(Ps time) override {
        if (time < 0 || time > kLongest) {
            throw InputError(fmt::format("delay: found {} ps, allowed 0 to {}", time, kLongest));
        }
        co_await layer_.endpoint(gpu_).delay(time);
    }

    void send(int to, int channel, Rows rows, Bytes bytes) override {
        if (to < 0 || to >= gpus()) {
            throw InputError(fmt::format("send: found GPU {}, allowed 0 to {}", to, gpus() - 1));
        }
        if (bytes < static_cast<Bytes>(rows.size())) {
            throw InputError(fmt::format("send: found {} B for {} rows", bytes, rows.size()));
        }
        waiting_.push_back({static_cast<GpuId>(to), checked(channel), std::move(rows), bytes});
        if (!sending_ && waiting_.size() == 1)
            layer_.endpoint(gpu_).spawn("sending kernel", send_waiting());
    }
    Process received(int channel, std::int64_t messages) override {
        if (messages < 0) {
            throw InputError(fmt::format("received: found {}, allowed 0 and more", messages));
        }
        const Communicating communicating(layer_.card(gpu_));
        co_await mail_.arrived(gpu_, checked(channel), messages);
    }
    Rows take(int channel) override { return mail_.take(gpu_, checked(channel)); }

  private:
    /// What was sent meanwhile goes with the next kernel.
    Process send_waiting() {
        sending_ = true;
        while (!waiting_.empty()) {
            std::vector<Outgoing> messages = std::exchange(waiting_, {});
            co_await send_messages(layer_, mail_, gpu_, std::move(messages));
        }
        sending_ = false;
    }
    void check_token(std::uint32_t token) const {
        if (token < layer_.input.routing.tokens) return;
        throw InputError(fmt::format("token: found {}, allowed 0 to {}", token,
                                     layer_.input.routing.tokens - 1));
    }
    /// One that the router sent to an expert of this GPU.
    void check_row(const CarriedRow& row) const {
        check_token(row.token);
        const auto chosen = layer_.input.routing.chosen_by(0, row.token);
        const std::vector<int>& here = layer_.experts_of(gpu_);
        const bool right = row.choice < chosen.size() && chosen[row.choice] == row.expert &&
                           std::find(here.begin(), here.end(), int{row.expert}) != here.end() &&
                           (row.numbers != nullptr || !layer_.options.verify);
        if (right) return;
        throw InputError(fmt::format("run_experts: choice {} of token {} is not for expert {} here",
                                     row.choice, row.token, row.expert));
    }
    std::size_t checked(int channel) const {
        const int channels = layer_.system.own->channels;
        if (channel < 0 || channel >= channels) {
            throw InputError(
                fmt::format("channel: found {}, allowed 0 to {}", channel, channels - 1));
        }
        return static_cast<std::size_t>(channel);
    }

    MoeLayer& layer_;
    Mail& mail_;
    GpuId gpu_;
    std::vector<Outgoing> waiting_;  ///< for the next kernel that sends
    bool sending_ = false;
};

struct Own {
    explicit Own(MoeLayer& of)
        : layer(of), mail(of.gpus, "messages", static_cast<std::size_t>(of.system.own->channels)) {
        for (std::uint32_t gpu = 0; gpu < of.gpus.count(); ++gpu) {
            gpus.emplace_back(of, mail, static_cast<GpuId>(gpu));
        }
    }

    MoeLayer& layer;
    Mail mail;
    std::deque<OwnGpu> gpus;
};

Process run_layer(Own& own, GpuId gpu) {
    co_await own.layer.system.own->run(own.gpus[gpu]);
    own.layer.experts_ended(gpu);
    co_await own.layer.finish(gpu);
}

}  // namespace

LayerResult run_own(const Job& job) {
    return run_program<Own>(job, "own program", run_layer);
}

}  // namespace systems

SystemSpec own_system(std::string name, std::function<Process(GpuProgram&)> program, int channels) {
    if (!program) throw InputError("own system: found no program");
    if (channels < 1 || channels > 65536) {
        throw InputError(fmt::format("channels: found {}, allowed 1 to 65536", channels));
    }
    SystemSpec spec;
    spec.name = std::move(name);
    spec.title = "a program of one's own";
    spec.sending_sms = systems::kSendingSms;
    spec.own = std::make_shared<const OwnProgram>(OwnProgram{std::move(program), channels});
    return spec;
}

}  // namespace moehub
