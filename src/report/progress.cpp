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
