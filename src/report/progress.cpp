#include "report/progress.hpp"

#include "base/utf8.hpp"
#include "report/table.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <unistd.h>

namespace moehub {
namespace {

constexpr int kBarWidth = 24;
constexpr auto kFirstDraw = std::chrono::milliseconds(300);  // a quick job shows no bar at all
constexpr auto kRedraw = std::chrono::milliseconds(100);

void write(std::FILE* stream, const std::string& text) {
    std::fwrite(text.data(), 1, text.size(), stream);
    std::fflush(stream);
}

/// As people wait: "12 s", "3 min 05 s", "2 h 10 min".
std::string time_left(double seconds) {
    const auto whole = static_cast<std::int64_t>(std::min(seconds + 0.5, 1e12));
    if (whole < 60) return fmt::format("{} s", whole);
    if (whole < 3600) return fmt::format("{} min {:02} s", whole / 60, whole % 60);
    return fmt::format("{} h {:02} min", whole / 3600, whole / 60 % 60);
}

}  // namespace

Progress::Progress(std::string label, std::FILE* stream)
    : label_(printable(label)),
      stream_(isatty(fileno(stream)) != 0 ? stream : nullptr),
      begin_(Clock::now()),
      next_(begin_ + kFirstDraw) {}

Progress::~Progress() {
    if (drawn_) write(stream_, "\r\x1b[K");
}

void Progress::update(std::size_t done, std::size_t total) {
    if (total == 0) return;
    draw(static_cast<double>(done) / static_cast<double>(total), fmt::format("{}/{}", done, total));
}

void Progress::update_rate(std::size_t before, std::size_t done, std::size_t total) {
    const double seconds = std::chrono::duration<double>(Clock::now() - begin_).count();
    if (total == 0 || done <= before || seconds <= 0) return;
    const double rate = static_cast<double>(done - before) / seconds;
    draw(static_cast<double>(done) / static_cast<double>(total),
         fmt::format("{}/{} {}/s, {} left", done, total, significant(rate),
                     time_left(static_cast<double>(total - done) / rate)));
}

void Progress::update_share(double done) {
    draw(done, fmt::format("{:.0f} % {:.0f} s", 100 * std::clamp(done, 0.0, 1.0),
                           std::chrono::duration<double>(Clock::now() - begin_).count()));
}

void Progress::draw(double fraction, const std::string& words) {
    if (stream_ == nullptr || Clock::now() < next_) return;
    next_ = Clock::now() + kRedraw;
    drawn_ = true;
    const auto filled = bar(fraction, kBarWidth);
    const std::string rest(kBarWidth - display_width(filled), ' ');
    write(stream_, fmt::format("\r{} {}{} {}\x1b[K", label_, filled, rest, words));
}

}  // namespace moehub
