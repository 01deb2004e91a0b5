#include "cli/completion_values.hpp"

#include "cli/command.hpp"
#include "cli/completion.hpp"
#include "cli/output.hpp"

#include <moehub/presets.hpp>

#include <memory>

namespace moehub {

bool is_flag(const Option& option) {
    return option.target.kind == ValueKind::flag;
}

OptionValues values_of(const Option& option) {
    const Target& target = option.target;
    const KindWords& words = words_of(target.kind);
    OptionValues values{target.choices, words.files, target.commas};
    if (!words.presets.empty()) values.words = preset_names(words.presets);
    if (target.keys && key_of(option) != "set")  // of nouns there are hundreds
        for (const std::string& key : target.keys()) values.words.push_back(key + "=");
    return values;
}

Command completion_command(const Program& program) {
    using Writer = std::string (*)(const Program&);
    const auto writer = std::make_shared<Writer>(bash_completion);
    Target shell = to(*writer, Named<Writer>{{"bash", bash_completion},
                                             {"zsh", zsh_completion},
                                             {"fish", fish_completion}});
    shell.usual.clear();
    const Options options{{"shell", std::move(shell), "bash, zsh or fish", {.required = true}}};
    return {"completion",
            "Print what a shell needs to complete commands, options and their values",
            "for bash, zsh and fish",
            "moehub completion bash > ~/.local/share/bash-completion/completions/moehub",
            options,
            [options, writer, &program](const Said& said, const std::string&) {
                fill(options, said);
                put((*writer)(program), "");
            }};
}

}  // namespace moehub
