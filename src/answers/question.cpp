#include "answers/question.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace moehub {

std::function<void(std::size_t, std::size_t)> Asker::pieces(std::string what) const {
    return [this, what = std::move(what)](std::size_t done, std::size_t total) {
        if (stop.stop_requested()) throw Ended();
        if (progress) progress(what, pieces_done(done, total));
    };
}

void Asker::require_form(unsigned form) const {
    const auto words = [this](unsigned forms) {
        std::vector<std::string> list;
        for (std::size_t i = 0; i < form_words.size(); ++i)
            if ((forms >> i & 1u) != 0) list.push_back(form_words[i]);
        return fmt::format("{}", fmt::join(list, " or "));
    };
    for (const Option& option : options)
        if ((option.rules.forms & form) == 0 && is_on(options, said, key_of(option)))
            throw InputError(fmt::format("{}: found with {}, allowed: with {}", name_of(option),
                                         words(form), words(option.rules.forms)));
}

}  // namespace moehub
