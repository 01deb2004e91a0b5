/// Cells of papers' figures made up by hand, and what figures make of them.
#pragma once
#include "study/reproduce_paper.hpp"

#include <deque>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace moehub {

/// Makes cells up; references stay.
class ByHand {
  public:
    using Fill = std::function<void(const CellKey&, ReproducedCell&)>;
    explicit ByHand(Fill fill) : fill_(std::move(fill)) {}

    Lookup lookup() {
        return [this](const CellKey& key) -> const ReproducedCell& {
            ReproducedCell& cell = cells_.emplace_back(ReproducedCell{key});
            fill_(key, cell);
            return cell;
        };
    }

  private:
    Fill fill_;
    std::deque<ReproducedCell> cells_;
};

/// Times in µs by system, the same in every cell; a system without one refuses.
inline ByHand with_times(std::map<std::string, double> times) {
    return ByHand([times = std::move(times)](const CellKey& key, ReproducedCell& cell) {
        const auto known = times.find(key.system);
        if (known == times.end()) {
            cell.refusal = key.system + " cannot run this: by hand";
            return;
        }
        cell.time = static_cast<Ps>(known->second * 1e6);
        cell.first_gemm = cell.time / 2;
        cell.model_time = cell.time + 100'000'000;
    });
}

/// The figure of that name.
inline FigureResult make_figure(const std::vector<PaperFigure>& figures, const std::string& name,
                                const Lookup& cell) {
    for (const PaperFigure& figure : figures)
        if (figure.name == name) return figure.make(cell);
    throw std::logic_error("no figure " + name);
}

inline const PublishedNumber& number(const FigureResult& result, std::string_view what) {
    for (const PublishedNumber& one : result.numbers)
        if (one.what == what) return one;
    throw std::logic_error("no such number");
}

inline const PublishedClaim& claim(const FigureResult& result, std::string_view what) {
    for (const PublishedClaim& one : result.claims)
        if (one.what == what) return one;
    throw std::logic_error("no such claim");
}

}  // namespace moehub
