/// Which published rows of TensorRT-LLM's fused MoE ran untuned.
///
/// The program that measured them keeps tuned tactics in files named by number format, hidden size,
/// FFN of a card and experts of a card, and loads the first whose name *starts* so: the file of one
/// expert is found by 16, too. Where other cases (another top-k, tp or ep) share the beginning,
/// their tactics may be loaded, none fits, and an untuned one runs. The rule looks at shapes alone,
/// those of all cards and formats together: the published rows here are a sample of what was
/// measured everywhere.
#pragma once
#include <moehub/kernel_calls.hpp>

#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>

namespace moehub::fit {

class TunerFiles {
  public:
    void add(const MoeCall& call) { cases_[prefix(call)].insert(key(call)); }

    bool collide(const MoeCall& call) const {
        if (call.format == NumberFormat::fp8_block) return false;  // not tuned
        const auto found = cases_.find(prefix(call));
        if (found == cases_.end()) return false;
        const Key own = key(call);
        for (const Key& other : found->second)
            if (other[0].starts_with(own[0]) && other != own) return true;
        return false;
    }

  private:
    using Key = std::array<std::string, 4>;

    static std::pair<std::int64_t, std::int64_t> prefix(const MoeCall& call) {
        return {call.hidden, call.expert_ffn / call.tp};
    }

    static Key key(const MoeCall& call) {
        return {std::to_string(call.experts / call.ep), std::to_string(call.top_k),
                std::to_string(call.tp), std::to_string(call.ep)};
    }

    std::map<std::pair<std::int64_t, std::int64_t>, std::set<Key>> cases_;
};

}  // namespace moehub::fit
