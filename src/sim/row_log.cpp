#include "sim/recorder.hpp"

#include <algorithm>
#include <string_view>

namespace moehub::sim {
namespace {

constexpr Bytes kLeastRow = 64;  ///< bytes; what is shorter only says of a row that it is there

}  // namespace

void RowLog::follow(std::int64_t every, std::uint32_t per_token) {
    every_ = every;
    per_token_ = per_token;
}

void RowLog::step(std::uint32_t token, std::uint32_t choice, const FollowedRow::Step& step) {
    if (follows(token, choice)) rows_[index(token, choice)].steps.push_back(step);
}

void RowLog::computed(std::uint32_t token, std::uint32_t choice, GpuId gpu, Ps now) {
    if (!follows(token, choice)) return;
    FollowedRow& row = rows_[index(token, choice)];
    row.steps.push_back({"computed", gpu, now});
    row.with_result.push_back(gpu);
}

bool RowLog::has_result(const FollowedRow& row, GpuId gpu) const {
    return std::find(row.with_result.begin(), row.with_result.end(), gpu) != row.with_result.end();
}

void RowLog::note(const Carried& carried, const char* of_row, const char* of_result,
                  const FollowedRow::Step& step) {
    if (carried.notice) return;
    rows_[carried.row].steps.push_back({carried.result ? of_result : of_row, step.where, step.at});
}

void RowLog::posted(TransferId id, const Transfer& transfer, std::span<const CarriedRow> rows,
                    Ps now) {
    Carrier carrier;
    for (const Carried& load : loads_) {
        const bool in = load.result == (transfer.kind == EventKind::load);  // at the expert's GPU
        const GpuId there = in ? transfer.dst : transfer.src;
        if (transfer.multicast() || there == rows_[load.row].to) carrier.rows.push_back(load);
    }
    const bool notice = transfer.bytes < kLeastRow * static_cast<Bytes>(rows.size());
    for (const CarriedRow& row : rows) {
        if (!follows(row.token, row.choice)) continue;
        const std::size_t at = index(row.token, row.choice);
        carrier.rows.push_back({at, has_result(rows_[at], transfer.src), notice});
    }
    if (carrier.rows.empty()) return;
    carrier.bytes = transfer.bytes;
    carrier.copied = transfer.multicast();
    carrier.load = transfer.kind == EventKind::load;
    const bool asks = carrier.load;
    for (const Carried& row : carrier.rows)
        note(row, asks ? "asked for" : "stored", asks ? "result asked for" : "result stored",
             {nullptr, transfer.src, now});
    carriers_.emplace(id, std::move(carrier));
}

void RowLog::found(TransferId id, const Transfer& transfer, std::span<const CarriedRow> rows,
                   Ps now) {
    if (carriers_.contains(id)) return;
    Carrier carrier;
    for (const CarriedRow& row : rows) {
        if (!follows(row.token, row.choice)) continue;
        const std::size_t at = index(row.token, row.choice);
        carrier.rows.push_back({at, has_result(rows_[at], transfer.dst)});
        note(carrier.rows.back(), "loaded", "result loaded", {nullptr, transfer.dst, now});
    }
    if (carrier.rows.empty()) return;
    carrier.bytes = transfer.bytes;
    carrier.load = true;
    carriers_.emplace(id, std::move(carrier));
}

/// Finds what carries a row; acknowledgements and requests that ask for it do not.
RowLog::Carrier* RowLog::carrier_of(const Train& train) {
    if (train.kind == EventKind::ack || train.kind == EventKind::load || carriers_.empty())
        return nullptr;
    const auto found = carriers_.find(train.transfer);
    if (found == carriers_.end()) return nullptr;
    const bool others = found->second.copied && found->second.load &&
                        train.src != rows_[found->second.rows.front().row].to;
    return others ? nullptr : &found->second;
}

void RowLog::departed(const Train& train, GpuId gpu, Ps at) {
    Carrier* const carrier = carrier_of(train);
    if (carrier == nullptr) return;
    carrier->left += train.bytes;
    if (carrier->left != carrier->bytes) return;
    for (const Carried& row : carrier->rows)
        note(row, "left the hub", "result left the hub", {nullptr, gpu, at});
}

void RowLog::entered(const Train& train, ComponentId at_switch, Ps at) {
    Carrier* const carrier = carrier_of(train);
    if (carrier == nullptr) return;
    carrier->entered += train.bytes;
    if (carrier->entered % carrier->bytes != 0) return;
    for (const Carried& row : carrier->rows)
        note(row, "at the switch", "result at the switch", {nullptr, at_switch, at});
}

void RowLog::in_memory(TransferId id, GpuId gpu, Ps at) {
    const auto found = carriers_.find(id);
    if (found == carriers_.end()) return;
    const Carrier& carrier = found->second;
    for (const Carried& row : carrier.rows) {
        if (carrier.copied && !carrier.load && gpu != rows_[row.row].to) continue;
        note(row, "in memory", "result in memory", {nullptr, gpu, at});
        if (row.result && !row.notice) rows_[row.row].with_result.push_back(gpu);
    }
}

void RowLog::taken(std::span<const CarriedRow> rows, GpuId gpu, Ps now) {
    for (const CarriedRow& row : rows) {
        if (!follows(row.token, row.choice)) continue;
        const std::size_t at = index(row.token, row.choice);
        FollowedRow& followed = rows_[at];
        const bool result = has_result(followed, gpu);
        const bool notice = !result && !followed.with_result.empty() && gpu != followed.to;
        const char* const what = result ? "result taken" : notice ? "told" : "taken";
        const bool again = !followed.steps.empty() && followed.steps.back().where == gpu &&
                           std::string_view(followed.steps.back().what) == what;
        if (!again) followed.steps.push_back({what, gpu, now});
    }
}

}  // namespace moehub::sim
