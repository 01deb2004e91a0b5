#include "sim/gpu/kernel_log.hpp"

#include <algorithm>

namespace moehub::sim {

const char* name_of(KernelName kernel) {
    static constexpr std::array<const char*, kKernelNames> kNames = {
        "other",    "router",       "quantise",       "counts",     "addresses",  "reorder",
        "dispatch", "relay",        "convert",        "expert up",  "activation", "expert down",
        "combine",  "weighted sum", "shared experts", "gradients",  "first GEMM", "exchange",
        "reduce",   "norm",         "gather",         "second GEMM"};
    return kNames[static_cast<std::size_t>(kernel)];
}

std::size_t KernelLog::launched(KernelName kernel, Ps now) {
    spans_.push_back({kernel, now, now});
    return spans_.size() - 1;
}

void KernelLog::change(KernelName kernel, int sms, Ps now) {
    Use& use = of(kernel);
    if (use.sms > 0) use.time.spread(use.since, now, use.sms);
    use.sms += sms;
    use.since = now;
}

void KernelLog::give(KernelName kernel, int sms, Ps now) {
    change(kernel, -sms, now);
    freed(sms, now);
}

void KernelLog::freed(int sms, Ps now) {
    for (; sms > 0 && !owed_.empty();) {
        Owed& first = owed_.front();
        const int given = std::min(sms, first.sms);
        change(first.kernel, given, now);
        sms -= given;
        first.sms -= given;
        if (first.sms == 0) owed_.erase(owed_.begin());
    }
}

void KernelLog::hold(KernelName kernel, int sms, int free, Ps now) {
    Use& use = of(kernel);
    if (use.held == 0) use.launch = launched(kernel, now);
    use.held += sms;
    const int got = std::clamp(free, 0, sms);
    change(kernel, got, now);
    if (got < sms) owed_.push_back({kernel, sms - got});
}

/// A kernel gives up its SMs: what it was still owed it never had.
void KernelLog::release(KernelName kernel, int sms, Ps now) {
    Use& use = of(kernel);
    use.held -= sms;
    ran_until(use.launch, now);
    int had = sms;
    for (Owed& owed : owed_) {
        if (owed.kernel != kernel) continue;
        const int never = std::min(had, owed.sms);
        owed.sms -= never;
        had -= never;
    }
    std::erase_if(owed_, [](const Owed& owed) { return owed.sms == 0; });
    give(kernel, had, now);
}

std::vector<KernelLog::Span> KernelLog::spans(Ps gap) const {
    std::vector<Span> sorted = spans_;
    std::stable_sort(sorted.begin(), sorted.end(),
                     [](const Span& a, const Span& b) { return a.begin < b.begin; });
    std::vector<Span> joined;
    std::array<std::size_t, kKernelNames> last;
    last.fill(spans_.size());
    for (const Span& span : sorted) {
        std::size_t& before = last[static_cast<std::size_t>(span.kernel)];
        if (before < joined.size() && span.begin <= joined[before].end + gap) {
            joined[before].end = std::max(joined[before].end, span.end);
            continue;
        }
        before = joined.size();
        joined.push_back(span);
    }
    std::erase_if(joined, [](const Span& span) { return span.begin == span.end; });
    return joined;
}

}  // namespace moehub::sim
