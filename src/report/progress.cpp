#include "report/progress.hpp"

#include "base/utf8.hpp"
#include "report/text_style.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <unistd.h>

namespace moehub {
namespace {

constexpr int kProgressWidth = 24;
constexpr auto kFirstDraw = std::chrono::milliseconds(300);  // a quick job shows no bar at all
constexpr auto kRedraw = std::chrono::milliseconds(100);

void write(std::FILE* stream, const std::string& text) {
    std::fwrite(text.data(), 1, text.size(), stream);
    std::fflush(stream);
}

/// A time as people wait: "12 s", "3 min 05 s", "2 h 10 min".
std::string waiting_words(double seconds) {
    const auto whole = static_cast<std::int64_t>(std::min(seconds + 0.5, 1e12));
    if (whole < 60) return fmt::format("{} s", whole);
    if (whole < 3600) return fmt::format("{} min {:02} s", whole / 60, whole % 60);
    return fmt::format("{} h {:02} min", whole / 3600, whole / 60 % 60);
}

}  // namespace

Work pieces_done(std::size_t done, std::size_t total, std::size_t before) {
    const double all = total == 0 ? 1 : static_cast<double>(total);
    return {static_cast<double>(done) / all, fmt::format("{}/{}", done, total),
            static_cast<double>(before) / all};
}

Progress::Progress(std::string label, std::FILE* stream)
    : label_(printable(label)), stream_(stream), begin_(Clock::now()) {
    if (isatty(fileno(stream)) == 0) return;
    artist_ = std::jthread([this](const std::stop_token& end) { keep_drawing(end); });
}

Progress::~Progress() {
    if (!artist_.joinable()) return;
    artist_.request_stop();
    artist_.join();
    if (drawn_) write(stream_, "\r\x1b[K");
}

double Progress::seconds() const {
    return std::chrono::duration<double>(Clock::now() - begin_).count();
}

void Progress::update(const Work& work) {
    if (!artist_.joinable()) return;
    const double share = std::clamp(work.share, 0.0, 1.0);
    const double own = share - work.before;
    const double left = own > 0 ? seconds() * (1 - share) / own : -1;
    const std::lock_guard lock(mutex_);
    state_ = {share, work.words, left, Clock::now()};
}

void Progress::keep_drawing(const std::stop_token& end) {
    std::unique_lock lock(mutex_);
    for (auto pause = kFirstDraw;
         !ended_.wait_for(lock, end, pause, [&] { return end.stop_requested(); }); pause = kRedraw)
        draw(state_);
}

void Progress::draw(const State& state) {
    drawn_ = true;
    const auto filled = bar(state.fraction, kProgressWidth);
    const std::string rest(kProgressWidth - display_width(filled), ' ');
    std::string words = state.words;
    if (!words.empty()) words += ", ";
    words += waiting_words(seconds());
    const double since = std::chrono::duration<double>(Clock::now() - state.at).count();
    if (state.left >= 0)
        words += fmt::format(", {} left", waiting_words(std::max(0.0, state.left - since)));
    write(stream_, fmt::format("\r{} {}{} {}\x1b[K", label_, filled, rest, words));
}

}  // namespace moehub
