/// A memory-bound kernel takes
///
///     start + max(((read + written + read again) / SM rate + busy) / SMs,
///                 miss · (read / (HBM · read share) + written / (HBM · write share))):
///
/// its SMs move every byte, and HBM what L2 does not hold. Replayed alone, a kernel finds there
/// what the previous replay moved (`miss`); among other kernels it finds nothing (`miss` is 1).
///
/// A norm reads its row twice. Sixteen rows are underway on an SM; what of them is more than its L1
/// keeps comes from L2 again. A layer norm's mean and variance further take each row `norm_row`. A
/// quantisation keeps rows up to 2,048 elements in registers and reads wider ones twice.
///
/// A gather reads its table once; of the further reads of a row a share exp(-L2 kept / 2 tables)
/// finds it evicted: between two reads of one row about a table's worth of other lines is read and
/// as much written, at random.
///
/// The sort is PyTorch's: up to 4,096 keys one thread block sorts alone (its time hardly depends on
/// the keys); beyond, CUB's radix sort makes 8 passes of 8 bits over all SMs, each reading and
/// writing a key and an index of 8 bytes.
///
/// PyTorch's plain element-wise kernels compute the address of each element: their instructions
/// limit them (`plain_elements`), whatever an element's bytes.
///
/// A router's top-k and softmax are a few small kernels: start + tokens · (row + experts / rate).
#include "sim/gpu/memory_ops.hpp"

#include "base/portable_math.hpp"

#include <algorithm>

namespace moehub {
namespace {

/// Real kernels have more; these divide the work well enough where others hold some of the SMs.
constexpr int kBlocksOfAnSm = 4;
constexpr double kNotByBytes = 1e18;       ///< bytes/s of an SM whose instructions limit it
constexpr std::int64_t kBlockSort = 4096;  ///< most keys that one block sorts
constexpr double kSortPasses = 8;
constexpr double kSortItem = 16;             ///< bytes of a key and its index
constexpr double kNormRows = 16;             ///< rows underway on an SM: blocks of 128 threads
constexpr std::int64_t kInRegisters = 2048;  ///< elements of a row that a block keeps

/// What a kernel reaches by the way it reads.
struct Reach {
    Ps Kernels::*start;
    double Kernels::*load;   ///< bytes/s of one SM; null: its instructions limit it
    double Kernels::*read;   ///< share of the HBM's bandwidth
    double Kernels::*write;  ///< share of the HBM's bandwidth
};

/// What kernels reach, in the order of Access.
constexpr Reach kReaches[] = {
    {&Kernels::stream_start, &Kernels::stream_load, &Kernels::hbm_efficiency, &Kernels::hbm_write},
    {&Kernels::narrow_start, &Kernels::stream_load, &Kernels::hbm_narrow, &Kernels::hbm_write},
    {&Kernels::stream_start, &Kernels::copy_load, &Kernels::hbm_copy, &Kernels::hbm_copy},
    {&Kernels::stream_start, nullptr, &Kernels::hbm_copy, &Kernels::hbm_copy},
    {&Kernels::stream_start, &Kernels::norm_load, &Kernels::hbm_copy, &Kernels::hbm_copy},
    {&Kernels::stream_start, &Kernels::quantise_load, &Kernels::hbm_copy, &Kernels::hbm_copy},
    {&Kernels::stream_start, &Kernels::copy_load, &Kernels::hbm_mixed, &Kernels::hbm_mixed},
    {&Kernels::stream_start, &Kernels::cast_load, &Kernels::hbm_copy, &Kernels::hbm_copy},
    {&Kernels::stream_start, &Kernels::softmax_load, &Kernels::hbm_efficiency,
     &Kernels::hbm_efficiency},
};

double seconds(const Gpu& gpu, const Traffic& traffic, double miss) {
    const StreamPlan plan = plan_stream(gpu, traffic);
    const double on_sm = kBlocksOfAnSm * plan.work.load_bytes / plan.rates.load;
    const double from_hbm = plan.blocks * plan.work.hbm_bytes / plan.rates.hbm;
    return plan.start + std::max(on_sm, miss * from_hbm);
}

}  // namespace

StreamPlan plan_stream(const Gpu& gpu, const Traffic& traffic) {
    const Kernels& kernels = gpu.kernels;
    const Reach& reach = kReaches[static_cast<std::size_t>(traffic.access)];
    const double load = reach.load == nullptr ? kNotByBytes : kernels.*reach.load;
    StreamPlan plan;
    plan.start = to_seconds(kernels.*reach.start);
    plan.blocks = kBlocksOfAnSm * gpu.sms;
    plan.rates = {.load = load, .hbm = kernels.hbm_efficiency * gpu.hbm_bandwidth};
    const double moved = traffic.read + traffic.written + traffic.again;
    // Loads are in bytes that take as long: of a busy SM, or of long reads from HBM.
    plan.work.load_bytes = (moved + traffic.busy * load) / plan.blocks;
    plan.work.hbm_bytes =
        (traffic.read / kernels.*reach.read + traffic.written / kernels.*reach.write) *
        kernels.hbm_efficiency / plan.blocks;
    return plan;
}

double stream_seconds(const Gpu& gpu, const Traffic& traffic) {
    return seconds(gpu, traffic, 1);
}

double replayed_stream_seconds(const Gpu& gpu, const Traffic& traffic) {
    return seconds(gpu, traffic, 1 - l2_hit(gpu, traffic.read + traffic.written));
}

Traffic gather_traffic(const Gpu& gpu, const Gather& gather) {
    const double moved = static_cast<double>(gather.rows) * gather.width;
    const double table = static_cast<double>(gather.table_rows) * gather.width;
    const double kept = gpu.kernels.l2_resident * static_cast<double>(gpu.l2_capacity);
    const double evicted = portable_exp(-kept / (2 * table));
    return {.read = table + std::max(0.0, moved - table) * evicted, .written = moved};
}

Traffic sum_traffic(std::int64_t rows, std::int64_t fan_in, double width) {
    const double read = static_cast<double>(rows) * width;
    return {read, read / static_cast<double>(fan_in), Access::narrow};
}

Traffic activation_traffic(double elements) {
    return {.read = 4 * elements, .written = 2 * elements};
}

Traffic quantise_traffic(double elements, double block) {
    return {.read = 2 * elements, .written = elements + 4 * elements / block};
}

Traffic fused_activation_traffic(double elements) {
    Traffic traffic = activation_traffic(elements);
    traffic.access = Access::in_order;
    return traffic;
}

Traffic eager_activation_traffic(const Gpu& gpu, double elements) {
    const Traffic activation = plain_traffic(gpu, elements, 1);
    const Traffic product = plain_traffic(gpu, elements, 2);
    return {.read = activation.read + product.read,
            .written = activation.written + product.written,
            .access = Access::plain,
            .busy = activation.busy + product.busy};
}

Traffic vectorised_traffic(double elements, int in) {
    return {.read = in * kBf16 * elements, .written = kBf16 * elements, .access = Access::in_order};
}

Traffic plain_traffic(const Gpu& gpu, double elements, int in) {
    Traffic traffic = vectorised_traffic(elements, in);
    traffic.access = Access::plain;
    traffic.busy = elements / gpu.kernels.plain_elements;
    return traffic;
}

Traffic fill_traffic(double elements) {
    return {.written = kBf16 * elements};
}

Traffic norm_traffic(const Gpu& gpu, std::int64_t rows, std::int64_t width, Norm norm) {
    const auto lines = static_cast<double>(rows);
    const double row = kBf16 * static_cast<double>(width);
    const double kept = static_cast<double>(gpu.kernels.norm_l1) / (kNormRows * row);
    return {.read = lines * row,
            .written = lines * row,
            .access = Access::by_row,
            .again = lines * row * std::max(0.0, 1 - kept),
            .busy = norm == Norm::layer ? lines * to_seconds(gpu.kernels.norm_row) : 0};
}

Traffic residual_traffic(double elements, int tensors) {
    return vectorised_traffic(elements, tensors - 1);
}

Traffic quantise_rows_traffic(std::int64_t rows, std::int64_t width) {
    const auto lines = static_cast<double>(rows);
    const double elements = lines * static_cast<double>(width);
    return {.read = kBf16 * elements,
            .written = elements + 4 * lines,
            .access = Access::quantising,
            .again = width > kInRegisters ? kBf16 * elements : 0};
}

double route_seconds(const Gpu& gpu, std::int64_t tokens, std::int64_t experts) {
    const Kernels& kernels = gpu.kernels;
    const double row =
        to_seconds(kernels.route_row) + static_cast<double>(experts) / kernels.route_logits;
    return to_seconds(kernels.route_start) + static_cast<double>(tokens) * row;
}

double scatter_add_seconds(const Gpu& gpu, std::int64_t rows, double width) {
    return to_seconds(gpu.kernels.stream_start) +
           static_cast<double>(rows) * width / gpu.kernels.scatter_add;
}

double index_add_seconds(const Gpu& gpu, std::int64_t rows, double width) {
    return to_seconds(gpu.kernels.stream_start) +
           static_cast<double>(rows) * width / gpu.kernels.index_add;
}

double sort_seconds(const Gpu& gpu, std::int64_t keys) {
    const Kernels& kernels = gpu.kernels;
    const double bytes = kSortItem * static_cast<double>(keys);
    if (keys <= kBlockSort) return to_seconds(kernels.sort_block) + bytes / kernels.sort_block_rate;
    return kSortPasses * (to_seconds(kernels.sort_pass) +
                          2 * bytes / (kernels.hbm_efficiency * gpu.hbm_bandwidth));
}

}  // namespace moehub
