// Do several ranks simulate every point once, whoever is lost on the way?
#include "own_folder.hpp"
#include "study/sweep/run.hpp"

#include <moehub/error.hpp>

#include <atomic>
#include <map>
#include <mutex>
#include <thread>

#include <gtest/gtest.h>

namespace moehub::sweep_ranks_test {
namespace {

using namespace std::chrono_literals;

/// Mailboxes of all ranks.
struct Post {
    std::mutex mutex;
    std::map<int, std::vector<RankMessage>> boxes;
};

class InMemory : public Transport {
  public:
    InMemory(Post& post, int rank, int size) : post_(post), rank_(rank), size_(size) {}
    int rank() const override { return rank_; }
    int size() const override { return size_; }
    void send(int to, std::string bytes) override {
        const std::lock_guard lock(post_.mutex);
        post_.boxes[to].push_back({rank_, std::move(bytes)});
    }
    std::optional<RankMessage> receive() override {
        const std::lock_guard lock(post_.mutex);
        auto& box = post_.boxes[rank_];
        if (box.empty()) return std::nullopt;
        RankMessage message = std::move(box.front());
        box.erase(box.begin());
        return message;
    }
    void finish(bool) override {}

  private:
    Post& post_;
    int rank_;
    int size_;
};

/// A rank that answers nothing any more, as a dead one.
class FallsSilent : public InMemory {
  public:
    using InMemory::InMemory;
    void send(int to, std::string bytes) override {
        if (++sent_ <= 3) InMemory::send(to, std::move(bytes));
    }

  private:
    int sent_ = 0;
};

class SweepRanks : public ::testing::Test {
  protected:
    SweepRanks() {
        study_.measures = {{"time_us"}};
        options_.signature = "same";
        options_.run.threads = 1;
        options_.alive = 20ms;
        options_.silence = 400ms;
        options_.patience = 5s;
    }

    SweepOutcome simulate(const SweepPoint& point) {
        ++simulated_;
        std::this_thread::sleep_for(1ms);
        if (point.number == 5) return {"five is too much", {}};
        if (point.number == 7) throw InputError("seven is gone");
        SweepOutcome outcome;
        outcome.values = {static_cast<double>(point.number)};
        return outcome;
    }

    SweepStore store() {
        return SweepStore(folder_.file("a.sqlite"), study_,
                          {"test", definition_of(study_), "", {}});
    }

    void expect_all_but_seven(const SweepStore& store) {
        for (std::size_t i = 0; i < store.outcomes().size(); ++i) {
            const auto& outcome = store.outcomes()[i];
            if (i == 7) {
                EXPECT_FALSE(outcome.has_value());
            } else if (i == 5) {
                EXPECT_EQ(outcome->refused, "five is too much");
            } else {
                ASSERT_TRUE(outcome.has_value()) << i;
                EXPECT_EQ(outcome->values.front(), static_cast<double>(i));
            }
        }
    }

    Study study_ =
        parse_study("systems = [\"a\"]\n[grid]\nx = {from = 1, to = 120, step = 1}", "s");
    RankOptions options_;
    std::atomic<int> simulated_ = 0;
    SimulatePoint simulate_ = [this](const SweepPoint& point) { return simulate(point); };
    Post post_;

  private:
    OwnFolder folder_;
};

TEST_F(SweepRanks, threads_of_all_ranks_simulate_every_point_once) {
    options_.run.threads = 2;
    InMemory first(post_, 0, 3);
    std::vector<std::jthread> others;
    for (int rank = 1; rank < 3; ++rank)
        others.emplace_back([this, rank] {
            InMemory transport(post_, rank, 3);
            EXPECT_TRUE(follow_rank(transport, study_, simulate_, options_));
        });
    SweepStore saved = store();
    const RankReport report = lead_ranks(first, study_, simulate_, saved, options_);
    end_ranks(first, false);
    others.clear();
    EXPECT_EQ(simulated_, 120);
    EXPECT_TRUE(report.lost.empty());
    ASSERT_EQ(report.failures.size(), 1u);
    EXPECT_EQ(report.failures.front().what, "seven is gone");
    expect_all_but_seven(saved);
}

TEST_F(SweepRanks, points_of_a_lost_rank_go_to_others) {
    InMemory first(post_, 0, 2);
    RankOptions impatient = options_;
    impatient.patience = 1500ms;
    std::jthread other([this, impatient] {
        FallsSilent transport(post_, 1, 2);
        follow_rank(transport, study_, simulate_, impatient);
    });
    SweepStore saved = store();
    const RankReport report = lead_ranks(first, study_, simulate_, saved, options_);
    EXPECT_EQ(report.lost, std::vector<int>{1});
    expect_all_but_seven(saved);
    end_ranks(first, true);
}

TEST_F(SweepRanks, a_rank_with_another_study_simulates_nothing) {
    InMemory first(post_, 0, 2);
    RankOptions another = options_;
    another.signature = "another";
    std::atomic<int> strange = 0;
    std::jthread other([&] {
        InMemory transport(post_, 1, 2);
        const SimulatePoint count = [&](const SweepPoint&) {
            ++strange;
            return SweepOutcome{};
        };
        follow_rank(transport, study_, count, another);
    });
    SweepStore saved = store();
    const RankReport report = lead_ranks(first, study_, simulate_, saved, options_);
    end_ranks(first, false);
    other.join();
    EXPECT_EQ(report.strangers, std::vector<int>{1});
    EXPECT_EQ(strange, 0);
    expect_all_but_seven(saved);
}

TEST_F(SweepRanks, a_rank_whose_first_is_gone_ends_too) {
    InMemory transport(post_, 1, 2);
    options_.patience = 100ms;
    EXPECT_THROW(follow_rank(transport, study_, simulate_, options_), std::runtime_error);
}

}  // namespace
}  // namespace moehub::sweep_ranks_test
