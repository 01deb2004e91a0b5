/// A picture that is written as SVG, piece by piece. Units are pixels; y grows downwards.
#pragma once
#include "report/escape.hpp"
#include "report/profile_heat.hpp"

#include <string>
#include <string_view>

namespace moehub {

struct Box {
    double x = 0;
    double y = 0;
    double width = 0;
    double height = 0;
};

class Picture {
  public:
    enum class Anchor { start, middle, end };
    struct Style {
        Anchor anchor = Anchor::start;
        int size = 11;
        bool bold = false;
        std::string_view colour = "#333";
        bool upwards = false;  ///< turned by a quarter
    };

    void rectangle(const Box& box, std::string_view fill, const std::string& title = "");
    void text(double x, double y, std::string_view words, const Style& style);
    /// Stretched over the box; values from 0 to `cap`.
    void cells(const HeatMap& map, const Box& box, double cap);
    /// A bar of the colours, 0 to `cap`, with ticks; "≥" at its end where some are beyond.
    void colour_bar(const Box& box, double cap, bool beyond, std::string_view words);
    void frame(const Box& box);

    /// The whole, on white.
    std::string svg(double width, double height, std::string_view title) const;

  private:
    std::string body_;
};

}  // namespace moehub
