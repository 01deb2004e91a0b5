/// A memory-bound kernel takes
///
///     start + max((read + written) / (SMs · stream_load),
///                 miss · (read / (HBM · read share) + written / (HBM · write share))):
///
/// its SMs move every byte, and HBM what L2 does not hold from the previous replay (`miss`).
///
/// A gather reads its table once; of the further reads of a row a share exp(-L2 kept / 2 tables)
/// finds it evicted: between two reads of one row about a table's worth of other lines is read and
/// as much written, at random.
///
/// The sort is PyTorch's: up to 4,096 keys one thread block sorts alone (its time hardly depends on
/// the keys); beyond, CUB's radix sort makes 8 passes of 8 bits over all SMs, each reading and
/// writing a key and an index of 8 bytes.
///
/// A router's top-k and softmax are a few small kernels: start + tokens · (row + experts / rate).
#include "sim/gpu/memory_ops.hpp"

#include "sim/gpu/tile.hpp"

#include <algorithm>
#include <cmath>

namespace moehub {
namespace {

constexpr std::int64_t kBlockSort = 4096;  ///< keys
constexpr double kSortPasses = 8;
constexpr double kSortItem = 16;  ///< bytes of a key and its index

}  // namespace

double stream_seconds(const Gpu& gpu, const Traffic& traffic) {
    const Kernels& kernels = gpu.kernels;
    const bool narrow = traffic.access == Access::narrow;
    const double share = narrow ? kernels.hbm_narrow : kernels.hbm_efficiency;
    const double bytes = traffic.read + traffic.written;
    const double hbm = (traffic.read / share + traffic.written / kernels.hbm_write) *
                       (1 - l2_hit(gpu, bytes)) / gpu.hbm_bandwidth;
    const Ps start = narrow ? kernels.narrow_start : kernels.stream_start;
    return to_seconds(start) + std::max(bytes / (gpu.sms * kernels.stream_load), hbm);
}

Traffic gather_traffic(const Gpu& gpu, const Gather& gather) {
    const double moved = static_cast<double>(gather.rows) * gather.width;
    const double table = static_cast<double>(gather.table_rows) * gather.width;
    const double kept = gpu.kernels.l2_resident * static_cast<double>(gpu.l2_capacity);
    const double evicted = std::exp(-kept / (2 * table));
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

double sort_seconds(const Gpu& gpu, std::int64_t keys) {
    const Kernels& kernels = gpu.kernels;
    const double bytes = kSortItem * static_cast<double>(keys);
    if (keys <= kBlockSort) return to_seconds(kernels.sort_block) + bytes / kernels.sort_block_rate;
    return kSortPasses * (to_seconds(kernels.sort_pass) +
                          2 * bytes / (kernels.hbm_efficiency * gpu.hbm_bandwidth));
}

}  // namespace moehub
