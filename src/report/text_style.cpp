#include "report/text_style.hpp"

#include "base/utf8.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>

#include <unistd.h>

namespace moehub {
namespace {

constexpr std::size_t kLeastBeside = 16;  ///< columns that are left beside an indentation

/// Without escape sequences (ESC [ … letter).
std::string visible(std::string_view text) {
    std::string out;
    for (std::size_t at = 0; at < text.size(); ++at) {
        if (text[at] != '\x1b') {
            out += text[at];
            continue;
        }
        while (at < text.size() && (text[at] == '\x1b' || text[at] == '[' || text[at] < '@')) ++at;
    }
    return out;
}

std::size_t visible_width(std::string_view text) {
    return text.find('\x1b') == text.npos ? display_width(text) : display_width(visible(text));
}

/// Where the piece of a word that is too long ends: behind its last comma that fits, or where it
/// stops fitting.
std::size_t piece_end(std::string_view word, std::size_t width) {
    std::size_t end = 0;
    std::size_t comma = 0;
    for (std::size_t columns = 0; end < word.size();) {
        const std::size_t size = character_size(word, end);
        columns += display_width(word.substr(end, size));
        if (columns > width && end > 0) break;
        end += size;
        if (word[end - 1] == ',') comma = end;
    }
    return end < word.size() && comma > 0 ? comma : end;
}

/// A number and its unit's sign stay together.
std::size_t word_end(std::string_view text, std::size_t begin) {
    std::size_t end = std::min(text.find(' ', begin), text.size());
    while (text.substr(end, 2) == " %") end = std::min(text.find(' ', end + 1), text.size());
    return end;
}

/// Behind the last gap of two blanks or more that leaves enough room; without one where words
/// begin.
std::size_t indentation(std::string_view line, std::size_t width) {
    const std::size_t words = std::min(line.find_first_not_of(' '), line.size());
    const bool listed = line.substr(words, 2) == "- " || line.substr(words).starts_with("– ");
    std::size_t indent = listed ? words + 2 : words;
    for (std::size_t at = words; (at = line.find("  ", at)) != line.npos;) {
        at = std::min(line.find_first_not_of(' ', at), line.size());
        const std::size_t columns = visible_width(line.substr(0, at));
        if (5 * columns <= 3 * width) indent = columns;
    }
    return indent + kLeastBeside <= width ? indent : 0;
}

/// Columns, not a sentence.
bool has_gaps(std::string_view line) {
    const std::size_t words = std::min(line.find_first_not_of(' '), line.size());
    return line.find("  ", words) != line.npos;
}

bool goes_on(std::string_view line, std::string_view next) {
    const bool ended =
        line.empty() || std::string_view(".:!?").find(line.back()) != std::string_view::npos;
    return !ended && !has_gaps(line) && !has_gaps(next) && !next.empty() && next.front() >= 'a' &&
           next.front() <= 'z';
}

/// The first of `lines` and those that its sentence takes along; returns how many.
std::size_t add_sentence(std::string& out, const std::vector<std::string_view>& lines,
                         std::size_t first, std::size_t width) {
    std::string sentence(lines[first]);
    std::size_t taken = 1;
    while (first + taken < lines.size() &&
           goes_on(lines[first + taken - 1], lines[first + taken])) {
        sentence += " " + std::string(lines[first + taken]);
        ++taken;
    }
    const std::size_t indent = indentation(sentence, width);
    std::string_view rest = sentence;
    std::string head;
    if (indent > 0) {  // what stands before the indentation keeps its blanks
        std::size_t bytes = 0;
        while (visible_width(rest.substr(0, bytes)) < indent) bytes += character_size(rest, bytes);
        head = rest.substr(0, bytes);
        rest.remove_prefix(bytes);
    }
    for (const std::string& line : broken(rest, width - indent)) {
        out += head + line + "\n";
        head.assign(indent, ' ');
    }
    return taken;
}

}  // namespace

std::size_t character_size(std::string_view text, std::size_t at) {
    std::size_t end = at + 1;
    while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) ++end;
    return end - at;
}

bool wants_colour(std::FILE* stream) {
    const char* const no_color = std::getenv("NO_COLOR");
    return (no_color == nullptr || *no_color == '\0') && isatty(fileno(stream)) != 0;
}

int TextStyle::bar_width(int most, std::size_t taken) const {
    return std::max<int>(kLeastBar, std::min(most, width - static_cast<int>(taken)));
}

std::vector<std::string> broken(std::string_view text, std::size_t width) {
    std::vector<std::string> lines{""};
    std::size_t columns = 0;
    for (std::size_t begin = 0; begin < text.size();) {
        const std::size_t end = word_end(text, begin);
        std::string_view word = text.substr(begin, end - begin);
        begin = end + 1;
        const std::size_t gap = lines.back().empty() ? 0 : 1;
        if (columns + gap + visible_width(word) <= width) {
            lines.back().append(gap, ' ').append(word);
            columns += gap + visible_width(word);
            continue;
        }
        if (!lines.back().empty()) lines.emplace_back();
        while (visible_width(word) > width) {
            const std::size_t piece = piece_end(word, width);
            lines.back() = word.substr(0, piece);
            lines.emplace_back();
            word.remove_prefix(piece);
        }
        lines.back() = word;
        columns = visible_width(word);
    }
    return lines;
}

std::string fitted(std::string_view text, int width) {
    const auto columns = static_cast<std::size_t>(std::max(width, 1));
    std::vector<std::string_view> lines;
    for (std::size_t begin = 0; begin < text.size();) {
        const std::size_t end = std::min(text.find('\n', begin), text.size());
        lines.push_back(text.substr(begin, end - begin));
        begin = end + 1;
    }
    std::string out;
    for (std::size_t i = 0; i < lines.size();) {
        if (visible_width(lines[i]) > columns) {
            i += add_sentence(out, lines, i, columns);
            continue;
        }
        out.append(lines[i++]).append("\n");
    }
    return out;
}

std::string bar(double fraction, int width) {
    constexpr std::array<std::string_view, 8> kEighths{"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
    const double share = std::isfinite(fraction) ? std::clamp(fraction, 0.0, 1.0) : 0.0;
    const auto eighths = static_cast<std::size_t>(std::lround(share * 8 * std::max(width, 0)));
    std::string out;
    for (std::size_t i = 0; i < eighths / 8; ++i) out += "█";
    return out.append(kEighths[eighths % 8]);
}

std::string stacked_bar(std::span<const BarPart> parts, double full, int width) {
    std::string out;
    if (!(full > 0) || !std::isfinite(full)) return out;
    double sum = 0;
    long column = 0;
    for (const BarPart& part : parts) {
        if (part.value > 0) sum += part.value;
        const double share = std::min(sum / full, 1.0);
        for (const long end = std::lround(share * std::max(width, 0)); column < end; ++column)
            out += part.mark;
    }
    return out;
}

std::string shortened_bar(std::string_view bar, std::size_t width, std::size_t full) {
    constexpr std::string_view kMark = "│";
    std::vector<std::string_view> marks;
    for (std::size_t begin = 0; begin < bar.size(); begin += marks.back().size())
        marks.push_back(bar.substr(begin, character_size(bar, begin)));
    std::string out;
    for (std::size_t column = 0; column * full < marks.size() * width; ++column) {
        const std::size_t begin = column * full / width;
        const std::size_t end =
            std::min(marks.size(), std::max(begin + 1, (column + 1) * full / width));
        std::string_view mark = marks[(begin + end - 1) / 2];
        for (std::size_t i = begin; i < end; ++i)
            if (marks[i] == kMark) mark = kMark;
        out += mark;
    }
    return out;
}

}  // namespace moehub
