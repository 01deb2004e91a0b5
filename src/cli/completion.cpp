#include "cli/completion.hpp"

#include "cli/commands.hpp"
#include "cli/output.hpp"
#include "request/values.hpp"

#include <memory>

namespace moehub {

Command completion_command(const Program& program) {
    const auto shell = std::make_shared<std::string>();
    return {
        "completion",
        "Print what a shell needs to complete commands, options and their values",
        {{"shell",
          shell.get(),
          "bash, zsh or fish",
          "SHELL",
          {.required = true},
          {"bash", "zsh", "fish"}}},
        "Example:\n  moehub completion bash > ~/.local/share/bash-completion/completions/moehub",
        [shell, &program] {
            using Writer = std::string (*)(const Program&);
            std::optional<Writer> writer;
            if (*shell == "bash") writer = bash_completion;
            if (*shell == "zsh") writer = zsh_completion;
            if (*shell == "fish") writer = fish_completion;
            put(named("completion", *shell, writer, {"bash", "zsh", "fish"})(program), "");
        },
    };
}

}  // namespace moehub
