#include "layers/moe_layer.hpp"

#include "sim/gpu/gemm.hpp"
#include "sim/hub/aau.hpp"

#include <moehub/error.hpp>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numeric>
#include <utility>

#include <fmt/format.h>

namespace moehub::layers {

namespace {

constexpr std::int64_t kMostRows = 0xffffffff;
constexpr int kWidest = 1 << 20;  ///< elements of a row
/// Sums in another order differ by rounding of doubles; anything above is a wrong number.
constexpr double kLargestRounding = 1e-9;
constexpr Bytes kScaled = 128;  ///< elements of FP8 with one scale (DeepSeek-V3 technical report)
constexpr Bytes kScale = 4;     ///< bytes of one

std::int64_t most_experts_of_a_rank(const Placement& placement) {
    std::size_t most = 1;
    for (const auto& experts : experts_by_rank(placement)) most = std::max(most, experts.size());
    return static_cast<std::int64_t>(most);
}

/// One for each line of a row.
int numbers_of_row(const LayerInput& in, const LayerOptions& options, Bytes line) {
    return options.verify ? static_cast<int>((2 * in.model.hidden + line - 1) / line) : 0;
}

GpusOptions gpus_options(const Job& job) {
    constexpr sim::Queueing kQueueing[] = {sim::Queueing::per_peer, sim::Queueing::shared_fifo,
                                           sim::Queueing::rpm};
    GpusOptions made;
    made.grain = job.options.grain;
    made.queueing = kQueueing[static_cast<std::size_t>(job.system.stores)];
    made.packet = job.system.packet;
    const Bytes line = sim::line_bytes(job.input.machine, made.queueing, made.packet);
    made.hub = {.page_pool = job.options.page_pool,
                .numbers = static_cast<std::size_t>(numbers_of_row(job.input, job.options, line)),
                .units = job.system.hub};
    made.host_lead = job.host_lead.value_or(0);
    made.scheme = job.scheme;
    made.fault = job.fault;
    made.record = job.options.timeline.record;
    return made;
}

}  // namespace

void check_input(const LayerInput& in, const LayerOptions& options) {
    const auto fail = [](const std::string& what) { throw InputError(what); };
    if (in.model.hidden < 1 || in.model.hidden > kWidest || in.model.expert_ffn < 1 ||
        in.model.expert_ffn > kWidest) {
        fail(fmt::format("model {}: found hidden {} and expert_ffn {}, allowed 1 to {}",
                         in.model.name, in.model.hidden, in.model.expert_ffn, kWidest));
    }
    check(in.routing);
    if (options.region_rows < 0 || options.page_rows < 0 || options.page_pool < 0) {
        fail(
            fmt::format("found {} region rows, {} page rows and a pool of {} B, allowed 0 and more",
                        options.region_rows, options.page_rows, options.page_pool));
    }
    if (in.model.experts < 1) fail(fmt::format("{} has no experts", in.model.name));
    if (in.routing.experts != in.model.experts || in.routing.top_k != in.model.top_k) {
        fail(fmt::format("routing: found top-{} of {} experts, {} has top-{} of {}",
                         in.routing.top_k, in.routing.experts, in.model.name, in.model.top_k,
                         in.model.experts));
    }
    if (options.tensor_parallel < 1 || in.machine.gpus() % options.tensor_parallel != 0) {
        fail(fmt::format("tensor parallel: found {}, allowed are divisors of the {} GPUs",
                         options.tensor_parallel, in.machine.gpus()));
    }
    if (in.model.expert_ffn % options.tensor_parallel != 0) {
        fail(fmt::format("tensor parallel: found {}, which does not divide the experts' width {}",
                         options.tensor_parallel, in.model.expert_ffn));
    }
    if (in.placement.ranks * options.tensor_parallel != in.machine.gpus()) {
        fail(fmt::format("placement: found {} ranks of {} GPUs, the machine has {} GPUs",
                         in.placement.ranks, options.tensor_parallel, in.machine.gpus()));
    }
    check(in.placement, in.model.experts);
    if (in.routing.tokens < in.machine.gpus()) {
        fail(fmt::format("tokens: found {}, at least one for each of the {} GPUs is needed",
                         in.routing.tokens, in.machine.gpus()));
    }
    const std::int64_t most = kMostRows / in.model.top_k / most_experts_of_a_rank(in.placement);
    if (in.routing.tokens > most) {
        fail(fmt::format("tokens: found {}, allowed at most {}: row ids have 32 bits",
                         in.routing.tokens, most));
    }
}

MoeLayer::MoeLayer(const Job& job)
    : input(job.input),
      system(job.system),
      options(job.options),
      gpus(input.machine, gpus_options(job)),
      books(input, options.tensor_parallel,
            numbers_of_row(input, options, gpus.fabric.link().payload)),
      experts_(experts_by_rank(input.placement)),
      gradients_(gpus.add_counter("gradients of the weights")) {
    for (const GpuId gpu : gpus.all())
        hosts_.emplace_back(gpus, gpu, system.host, gpus.host_lead());
    make_rows();
    if (sim::Recorder* recorder = gpus.recorder()) follow_rows(recorder->rows);
}

MoeLayer::~MoeLayer() = default;

Bytes MoeLayer::dispatch_bytes() const {
    const Bytes scales = (input.model.hidden + kScaled - 1) / kScaled * kScale;
    return bytes_of_row(system.dispatch_element) + (dispatches_fp8() ? scales : 0);
}

std::uint32_t MoeLayer::first_token(GpuId gpu) const {
    return static_cast<std::uint32_t>(input.routing.tokens * gpu / gpus.count());
}

GpuId MoeLayer::home_of(std::uint32_t token) const {
    auto gpu = static_cast<GpuId>(std::int64_t{token} * gpus.count() / input.routing.tokens);
    while (token >= first_token(gpu + 1)) ++gpu;
    return gpu;
}

/// Rows for the first expert of every rank come first, so that each GPU has work early and no GPU
/// is sent everything at once; the id says so: (position of the expert on its rank, token, choice).
void MoeLayer::make_rows() {
    std::vector<std::uint32_t> position(static_cast<std::size_t>(input.model.experts));
    for (const auto& experts : experts_) {
        for (std::size_t i = 0; i < experts.size(); ++i) {
            const auto expert = static_cast<std::size_t>(experts[i]);
            if (input.placement.hosts[expert].front() == &experts - experts_.data())
                position[expert] = static_cast<std::uint32_t>(i);
        }
    }
    const auto tokens_in_all = static_cast<std::uint32_t>(input.routing.tokens);
    rows_.resize(gpus.count());
    rows_on_.resize(experts_.size() * static_cast<std::size_t>(input.model.experts));
    for (const GpuId gpu : gpus.all()) {
        for (std::uint32_t token = first_token(gpu); token < first_token(gpu + 1); ++token) {
            const auto chosen = input.routing.chosen_by(0, token);
            for (std::uint16_t choice = 0; choice < chosen.size(); ++choice) {
                const std::uint32_t id =
                    (position[chosen[choice]] * tokens_in_all + token) * top_k() + choice;
                rows_[gpu].push_back({id, token, chosen[choice], choice});
            }
        }
        std::sort(rows_[gpu].begin(), rows_[gpu].end(),
                  [](const Row& a, const Row& b) { return a.id < b.id; });
        choose_copies(gpu);
    }
}

/// Evenly spread: every n-th row, where n has no divisor in common with top-k, so that no choice is
/// left out.
void MoeLayer::follow_rows(sim::RowLog& log) const {
    const std::int64_t most = options.timeline.followed_rows;
    if (most < 1) return;
    std::int64_t every = (rows() - 1) / most + 1;
    while (std::gcd(every, std::int64_t{top_k()}) != 1) ++every;
    log.follow(every, top_k());
    for (const GpuId gpu : gpus.all()) {
        std::vector<Row> followed;
        for (const Row& row : rows_[gpu])
            if (log.follows(row.token, row.choice)) followed.push_back(row);
        std::sort(followed.begin(), followed.end(), [](const Row& a, const Row& b) {
            return std::pair(a.token, a.choice) < std::pair(b.token, b.choice);
        });
        for (const Row& row : followed)
            log.add({row.token, row.choice, row.expert, gpu, gpu_of(row.rank, 0)});
    }
}

/// As the hub does when a row is sent: by its own table of replicas.
void MoeLayer::choose_copies(GpuId gpu) {
    sim::ReplicaTable replicas(options.replicas, gpu);
    for (const auto& hosts : input.placement.hosts)
        replicas.add(std::vector<std::uint32_t>(hosts.begin(), hosts.end()));
    for (Row& row : rows_[gpu]) {
        row.rank = static_cast<std::uint16_t>(replicas.choose(row.expert));
        ++rows_on_[row.rank * static_cast<std::size_t>(input.model.experts) + row.expert];
    }
}

std::int64_t MoeLayer::rows_on(GpuId gpu) const {
    std::int64_t rows_here = 0;
    for (const int expert : experts_of(gpu)) rows_here += rows_on(rank_of(gpu), expert);
    return rows_here;
}

std::int64_t MoeLayer::tiling_rows(int expert) const {
    const std::size_t copies = input.placement.hosts[static_cast<std::size_t>(expert)].size();
    const double mean =
        static_cast<double>(rows()) / input.model.experts / static_cast<double>(copies);
    return std::llround(std::ceil(mean) + 2 * std::sqrt(mean));
}

void MoeLayer::deliver_all_locally() {
    for (const auto& rows_of_gpu : rows_) {
        for (const Row& row : rows_of_gpu) {
            for (int shard = 0; shard < shards(); ++shard) {
                books.delivered(row.token, row.choice, shard);
                books.returned(row.token, row.choice, shard,
                               books.result(row.expert, shard, books.input(row.token)));
            }
        }
    }
}

void MoeLayer::experts_ended(GpuId gpu) {
    endpoint(gpu).spawn("gradients of the weights", weight_gradients(gpu));
}

Process MoeLayer::finish(GpuId gpu) {
    co_await gradients(gpu);
    gpus.ended(gpu);
}

LayerResult MoeLayer::result() const {
    books.check();
    LayerResult made = gpus.measured();
    made.system = system.name;
    made.rows = rows();
    made.verified = options.verify;
    made.largest_error = books.largest_error();
    if (options.verify && !(made.largest_error <= kLargestRounding)) {
        throw std::logic_error(
            fmt::format("outputs of {} differ from the reference layer's by {:.2g}", system.name,
                        made.largest_error));
    }
    return made;
}

LayerResult run_with_host(const Job& job, const std::function<LayerResult(MoeLayer&)>& run_layer) {
    constexpr Ps kFarAhead = 1'000'000 * kUs;
    constexpr int kMostRounds = 12;
    constexpr Ps kNear = 200;  // leads that differ by a 200th of the layer's time are the same
    const bool backward = job.options.pass == Pass::backward;
    if (job.system.host == HostMode::graph || backward || job.host_lead) {
        MoeLayer layer(job);
        return run_layer(layer);
    }
    Job next = job;
    next.host_lead = kFarAhead;
    for (int round = 0;; ++round) {
        MoeLayer layer(next);
        LayerResult result = run_layer(layer);
        const Gpus& gpus = layer.gpus;
        const Ps gained = gpus.host_lead_gained();
        const bool kept = gained >= (gpus.host_waits() ? gpus.host_lead_needed() : kFarAhead);
        if (round == 0 && kept) return result;
        const bool same = std::abs(gained - *next.host_lead) <= result.time / kNear;
        if (round > 0 && (gpus.host_waits() || same || round == kMostRounds)) return result;
        if (job.options.another_round) job.options.another_round();
        next.host_lead = gpus.host_waits() ? std::min(gained, result.time)
                         : round == 0      ? 0
                                           : gained;
    }
}

}  // namespace moehub::layers
