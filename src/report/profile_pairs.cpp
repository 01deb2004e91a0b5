#include "report/profile_colour.hpp"
#include "report/profile_drawing.hpp"
#include "report/profile_order.hpp"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

namespace moehub {
namespace {

constexpr int kMostCells = 128;  ///< each way
constexpr double kSide = 360;
constexpr double kHead = 58;
constexpr double kFoot = 62;
constexpr double kBetween = 56;

struct Orders {
    std::vector<int> rows;
    std::vector<int> columns;
};

struct Matrix {
    std::string heading;
    std::string down;
    std::string across;
    std::vector<double> values;  ///< in the orders
    Orders orders;
};

void draw(Picture& picture, const Matrix& matrix, const PairDrawing& where) {
    const HeatMap map = heat_map(matrix.values, static_cast<int>(matrix.orders.columns.size()),
                                 {kMostCells, kMostCells}, MergeCells::mean);
    const double cap = colour_cap(map.values, 3);
    const Box box{where.x, where.y + kHead, kSide, kSide};
    picture.cells(map, box, cap);
    picture.text(box.x, box.y - 26, matrix.heading, {.size = 13, .bold = true});
    picture.text(box.x, box.y - 9, matrix.across + " →", {});
    picture.text(box.x - 8, box.y, "← " + matrix.down,
                 {.anchor = Picture::Anchor::end, .upwards = true});
    const bool beyond = *std::max_element(map.values.begin(), map.values.end()) > cap;
    picture.colour_bar({box.x, box.y + kSide + 14, 180, 9}, cap, beyond, "times chance");
}

}  // namespace

double draw_pairs(Picture& picture, const ProfileReport& report, const PairDrawing& where) {
    const PairMatrices& pairs = report.pairs;
    if (pairs.lift.empty() && pairs.next.empty()) return 0;
    const auto& layers = report.profiles.front().layers;
    const auto layer = static_cast<std::size_t>(report.pictured_layer());
    std::vector<int> order(static_cast<std::size_t>(pairs.experts));
    std::iota(order.begin(), order.end(), 0);
    if (!pairs.lift.empty()) order = chained(pairs.lift, pairs.experts);
    PairDrawing at = where;
    if (!pairs.lift.empty()) {
        draw(picture,
             {fmt::format("Layer {}: chosen together", layers[layer].number),
              "expert",
              "expert",
              reordered(pairs.lift, order, order),
              {order, order}},
             at);
        at.x += kSide + kBetween;
    }
    if (!pairs.next.empty()) {
        const std::vector<int> columns = along_diagonal(pairs.next, order);
        draw(picture,
             {fmt::format("From layer {} to layer {}", layers[layer].number,
                          layers[layer + 1].number),
              fmt::format("expert of layer {}", layers[layer].number),
              fmt::format("expert of layer {}", layers[layer + 1].number),
              reordered(pairs.next, order, columns),
              {order, columns}},
             at);
    }
    picture.text(where.x, where.y + kHead + kSide + kFoot - 10,
                 fmt::format("Experts are ordered such that those chosen together are "
                             "neighbours.{}",
                             report.profiles.size() > 1 ? " Of the first profile." : ""),
                 {.size = 10, .colour = "#666"});
    return kHead + kSide + kFoot;
}

}  // namespace moehub
