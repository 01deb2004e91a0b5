/// MoE layers of a group of neighbouring GPUs, simulated under a system and without communication.
#pragma once
#include "plan/group_collective.hpp"

#include <moehub/routing.hpp>

#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string>
#include <unordered_map>

namespace moehub {

/// Values that are made once, whoever asks first; any number of threads may ask.
template <class Key, class Value, class Hash, class Equal = std::equal_to<Key>>
class OnceMap {
  public:
    /// The key's value. The first to ask makes it, those who ask meanwhile wait. What `make` throws
    /// is remembered and thrown to all.
    template <class Make>
    Value& get(const Key& key, const Make& make) {
        Entry& entry = entry_of(key);
        std::call_once(entry.made, [&] {
            try {
                entry.value.emplace(make());
            } catch (...) {
                entry.error = std::current_exception();
            }
        });
        if (entry.error) std::rethrow_exception(entry.error);
        return *entry.value;
    }

  private:
    struct Entry {
        std::once_flag made;
        std::optional<Value> value;
        std::exception_ptr error;
    };

    Entry& entry_of(const Key& key) {
        {
            const std::shared_lock lock(mutex_);
            const auto found = entries_.find(key);
            if (found != entries_.end()) return *found->second;
        }
        const std::unique_lock lock(mutex_);
        std::unique_ptr<Entry>& entry = entries_[key];
        if (!entry) entry = std::make_unique<Entry>();
        return *entry;
    }

    std::shared_mutex mutex_;
    std::unordered_map<Key, std::unique_ptr<Entry>, Hash, Equal> entries_;
};

struct MoeCaseHash {
    std::size_t operator()(const MoeCase& one) const;
};
struct SameMoeCase {
    bool operator()(const MoeCase& a, const MoeCase& b) const;
};

/// Times by tokens of a GPU: simulated at two counts, straight lines through them. Any number of
/// threads may ask.
class ExchangeTimes {
  public:
    /// `routing` as TrainingRun::routing.
    ExchangeTimes(Machine machine, Model model, RoutingSpec routing);

    /// As Communication::moe.
    MoeCommunication at(const MoeCase& one);
    MoeCommunication exact(const MoeCase& one);

  private:
    /// Two counts of tokens, and what was simulated at them.
    struct Line {
        std::int64_t few = 0;
        std::int64_t many = 0;
        MoeCommunication at_few;
        MoeCommunication at_many;
    };

    std::int64_t affordable(const MoeCase& one, std::int64_t rows) const;
    Line line_of(const MoeCase& one);
    /// Each of these is simulated once.
    MoeCommunication simulated(const MoeCase& one);
    double ideal(const MoeCase& one);
    static MoeCommunication along(const Line& line, std::int64_t tokens);

    Machine machine_;
    Model model_;
    RoutingSpec routing_;
    OnceMap<MoeCase, Line, MoeCaseHash, SameMoeCase> lines_;  ///< tokens 0
    OnceMap<MoeCase, MoeCommunication, MoeCaseHash, SameMoeCase> simulated_;
    OnceMap<MoeCase, double, MoeCaseHash, SameMoeCase> ideals_;  ///< no system
};

}  // namespace moehub
