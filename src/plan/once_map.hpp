/// Values that are made once, whoever asks first; any number of threads may ask.
#pragma once
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <unordered_map>

namespace moehub {

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

}  // namespace moehub
