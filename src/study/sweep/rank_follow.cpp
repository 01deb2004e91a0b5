#include "study/sweep/rank_workers.hpp"
#include "study/sweep/ranks.hpp"

#include <stdexcept>

namespace moehub {

bool follow_rank(Transport& transport, const Study& study, const SimulatePoint& simulate,
                 const RankOptions& options) {
    using Clock = std::chrono::steady_clock;
    using Kind = SweepMessage::Kind;
    constexpr auto kLook = std::chrono::milliseconds(1);
    RankWorkers workers(study, simulate, options.run.threads);
    // One more than are simulated at a time: nobody waits for rank 0.
    transport.send(0, to_bytes({Kind::ready, workers.threads() + 1, options.signature}));
    auto heard = Clock::now();
    auto next_sign = heard + options.alive;
    while (true) {
        while (auto message = workers.next(kLook)) transport.send(0, to_bytes(*message));
        while (const auto received = transport.receive()) {
            heard = Clock::now();
            const SweepMessage message = from_bytes(received->bytes);
            if (message.kind == Kind::end) return message.number == 0;
            for (const std::uint64_t point : message.points) workers.add(point);
        }
        if (Clock::now() >= next_sign) {
            transport.send(0, to_bytes({}));
            next_sign = Clock::now() + options.alive;
        }
        if (Clock::now() - heard > options.patience)
            throw std::runtime_error("rank 0 does not answer any more; what it has saved stays");
    }
}

}  // namespace moehub
