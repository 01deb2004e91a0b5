#include "study/sweep/run.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
#include <optional>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

namespace moehub {

namespace {

/// The threads of one rank that simulate: points go in, what became of them comes out. The thread
/// that owns this object speaks with other ranks meanwhile.
class RankWorkers {
  public:
    RankWorkers(const Study& study, const SimulatePoint& simulate, int threads)
        : study_(study), simulate_(simulate) {
        const unsigned cores = std::max(1u, std::thread::hardware_concurrency());
        const unsigned count = threads > 0 ? static_cast<unsigned>(threads) : cores;
        for (unsigned i = 0; i < count; ++i) threads_.emplace_back([this] { work(); });
    }
    /// Ends the threads, after the points that they are at.
    ~RankWorkers() {
        const std::lock_guard lock(mutex_);
        ending_ = true;
        added_.notify_all();
    }

    std::size_t threads() const { return threads_.size(); }

    void add(std::size_t point) {
        const std::lock_guard lock(mutex_);
        points_.push_back(point);
        ++underway_;
        added_.notify_one();
    }

    /// Points that were added and have not come out.
    std::size_t underway() const {
        const std::lock_guard lock(mutex_);
        return underway_;
    }

    /// The next result or failure, waited for only a moment.
    std::optional<SweepMessage> next() {
        std::unique_lock lock(mutex_);
        done_.wait_for(lock, std::chrono::milliseconds(1), [this] { return !messages_.empty(); });
        if (messages_.empty()) return std::nullopt;
        SweepMessage message = std::move(messages_.front());
        messages_.pop_front();
        --underway_;
        return message;
    }

  private:
    void work() {
        std::unique_lock lock(mutex_);
        while (true) {
            added_.wait(lock, [this] { return ending_ || !points_.empty(); });
            if (ending_) return;
            SweepMessage message{SweepMessage::Kind::result, points_.front()};
            points_.pop_front();
            lock.unlock();
            try {
                message.outcome = simulate_(point_of(study_, message.number));
            } catch (const std::exception& error) {
                message.kind = SweepMessage::Kind::failure;
                message.text = error.what();
            }
            lock.lock();
            messages_.push_back(std::move(message));
            done_.notify_one();
        }
    }

    const Study& study_;
    const SimulatePoint& simulate_;
    mutable std::mutex mutex_;
    std::condition_variable added_;
    std::condition_variable done_;
    std::deque<std::size_t> points_;
    std::deque<SweepMessage> messages_;
    std::size_t underway_ = 0;
    bool ending_ = false;
    std::vector<std::jthread> threads_;
};

using Clock = std::chrono::steady_clock;
using Kind = SweepMessage::Kind;

class Lead {
  public:
    Lead(Transport& transport, const Study& study, SweepStore& store, const RankOptions& options)
        : transport_(transport),
          study_(study),
          store_(store),
          options_(options),
          others_(static_cast<std::size_t>(transport.size())) {
        const auto missing = store.missing();
        pending_.assign(missing.begin(), missing.end());
        left_ = missing.size();
        total_ = store.points();
        for (Other& other : others_) other.heard = Clock::now();
        next_sign_ = Clock::now() + options.alive;
    }

    RankReport run(RankWorkers& workers) {
        while (left_ > 0) {
            while (!pending_.empty() && workers.underway() <= workers.threads())
                workers.add(take_pending());
            while (const auto message = workers.next()) settle(*message);
            while (const auto received = transport_.receive()) take(*received);
            give_up_silent();
            show_life_sometimes();
        }
        return std::move(report_);
    }

  private:
    struct Other {
        Clock::time_point heard;
        std::set<std::size_t> points;  ///< points that the rank simulates
        bool ready = false;
        bool lost = false;
    };

    std::size_t take_pending() {
        const std::size_t point = pending_.front();
        pending_.pop_front();
        return point;
    }

    Other& other(int rank) { return others_[static_cast<std::size_t>(rank)]; }

    void take(const RankMessage& received) {
        Other& sender = other(received.from);
        if (sender.lost) return;  // the rank was slow, not dead; others have its points now
        sender.heard = Clock::now();
        const SweepMessage message = from_bytes(received.bytes);
        if (message.kind == Kind::ready) {
            if (message.text != options_.signature) return refuse(received.from);
            sender.ready = true;
            return give(received.from, message.number);
        }
        if (message.kind != Kind::result && message.kind != Kind::failure) return;
        sender.points.erase(message.number);
        settle(message);
        give(received.from, 1);
    }

    void refuse(int rank) {
        report_.strangers.push_back(rank);
        other(rank).lost = true;
        transport_.send(rank, to_bytes({Kind::end}));
    }

    void give(int rank, std::size_t count) {
        SweepMessage message{Kind::points};
        for (; count > 0 && !pending_.empty(); --count) {
            message.points.push_back(take_pending());
            other(rank).points.insert(message.points.back());
        }
        if (!message.points.empty()) transport_.send(rank, to_bytes(message));
    }

    void settle(const SweepMessage& message) {
        --left_;
        if (message.kind == Kind::failure) {
            report_.failures.push_back({message.number, message.text});
            return;
        }
        store_.save(point_of(study_, message.number), message.outcome);
        if (options_.run.progress) options_.run.progress(store_.saved(), total_);
    }

    void give_up_silent() {
        for (int rank = 1; rank < transport_.size(); ++rank) {
            Other& one = other(rank);
            if (one.lost || Clock::now() - one.heard <= options_.silence) continue;
            one.lost = true;
            report_.lost.push_back(rank);
            pending_.insert(pending_.begin(), one.points.begin(), one.points.end());
            one.points.clear();
            share_out();
        }
    }

    /// Gives points of a lost rank to ranks that had run out of work.
    void share_out() {
        for (int rank = 1; rank < transport_.size() && !pending_.empty(); ++rank)
            if (other(rank).ready && !other(rank).lost && other(rank).points.empty()) give(rank, 2);
    }

    void show_life_sometimes() {
        if (Clock::now() < next_sign_) return;
        next_sign_ = Clock::now() + options_.alive;
        for (int rank = 1; rank < transport_.size(); ++rank)
            if (!other(rank).lost) transport_.send(rank, to_bytes({}));
    }

    Transport& transport_;
    const Study& study_;
    SweepStore& store_;
    const RankOptions& options_;
    std::vector<Other> others_;  ///< other ranks by number; the first is not used
    std::deque<std::size_t> pending_;
    std::size_t left_ = 0;  ///< points that have not come back
    std::size_t total_ = 0;
    Clock::time_point next_sign_;
    RankReport report_;
};

void put(std::string& bytes, std::uint64_t number) {
    char raw[sizeof number];
    std::memcpy(raw, &number, sizeof number);
    bytes.append(raw, sizeof number);
}

void put(std::string& bytes, std::string_view text) {
    put(bytes, text.size());
    bytes.append(text);
}

template <class Value>
void put(std::string& bytes, const std::vector<Value>& values) {
    static_assert(sizeof(Value) == 8);
    put(bytes, values.size());
    if (!values.empty())
        bytes.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(Value));
}

class Reader {
  public:
    explicit Reader(std::string_view bytes) : rest_(bytes) {}

    std::string_view take(std::uint64_t size) {
        if (size > rest_.size()) throw std::runtime_error("a message of another rank is cut off");
        const std::string_view taken = rest_.substr(0, size);
        rest_.remove_prefix(size);
        return taken;
    }
    std::uint64_t number() {
        std::uint64_t number = 0;
        std::memcpy(&number, take(sizeof number).data(), sizeof number);
        return number;
    }
    std::string text() { return std::string(take(number())); }
    template <class Value>
    std::vector<Value> values() {
        const std::uint64_t count = number();
        if (count > rest_.size() / sizeof(Value)) take(rest_.size() + 1);
        std::vector<Value> values(count);
        const std::string_view taken = take(count * sizeof(Value));
        if (count > 0) std::memcpy(values.data(), taken.data(), taken.size());
        return values;
    }

  private:
    std::string_view rest_;
};

}  // namespace

void show_life(Transport& transport) {
    if (transport.rank() > 0) return transport.send(0, to_bytes({}));
    for (int rank = 1; rank < transport.size(); ++rank) transport.send(rank, to_bytes({}));
}

void end_ranks(Transport& transport, bool lost) {
    for (int rank = 1; rank < transport.size(); ++rank)
        transport.send(rank, to_bytes({Kind::end, lost ? 1u : 0u}));
    transport.finish(!lost);
}

RankReport lead_ranks(Transport& transport, const Study& study, const SimulatePoint& simulate,
                      SweepStore& store, const RankOptions& options) {
    RankWorkers workers(study, simulate, options.run.threads);
    RankReport report = Lead(transport, study, store, options).run(workers);
    std::sort(report.failures.begin(), report.failures.end(),
              [](const auto& a, const auto& b) { return a.point < b.point; });
    return report;
}

bool follow_rank(Transport& transport, const Study& study, const SimulatePoint& simulate,
                 const RankOptions& options) {
    RankWorkers workers(study, simulate, options.run.threads);
    // One more than are simulated at a time: nobody waits for rank 0.
    transport.send(0, to_bytes({Kind::ready, workers.threads() + 1, options.signature}));
    auto heard = Clock::now();
    auto next_sign = heard + options.alive;
    while (true) {
        while (auto message = workers.next()) transport.send(0, to_bytes(*message));
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

std::string to_bytes(const SweepMessage& message) {
    std::string bytes(1, static_cast<char>(message.kind));
    put(bytes, message.number);
    put(bytes, std::string_view(message.text));
    put(bytes, std::string_view(message.outcome.refused));
    put(bytes, message.outcome.values);
    put(bytes, message.points);
    return bytes;
}

SweepMessage from_bytes(std::string_view bytes) {
    Reader reader(bytes);
    SweepMessage message;
    message.kind = static_cast<SweepMessage::Kind>(reader.take(1).front());
    message.number = reader.number();
    message.text = reader.text();
    message.outcome.refused = reader.text();
    message.outcome.values = reader.values<double>();
    message.points = reader.values<std::uint64_t>();
    return message;
}

}  // namespace moehub
