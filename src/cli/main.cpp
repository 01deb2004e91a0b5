// The program: parse the command line, call the library, print. Exit codes: 0 done, 2 bad input
// (one line on stderr), 3 a defect of moehub.
#include "base/utf8.hpp"
#include "cli/collective.hpp"
#include "cli/compare.hpp"
#include "cli/lines.hpp"
#include "cli/list.hpp"
#include "cli/mistakes.hpp"
#include "cli/model.hpp"
#include "cli/output.hpp"
#include "cli/place.hpp"
#include "cli/profile.hpp"
#include "cli/reproduce.hpp"
#include "cli/run.hpp"
#include "cli/show.hpp"
#include "cli/validate.hpp"

#include <moehub/error.hpp>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <exception>
#include <new>
#include <sstream>
#include <string>
#include <system_error>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace {

constexpr int kDone = 0;
constexpr int kBadInput = 2;
constexpr int kDefect = 3;

constexpr const char* kVersion = "moehub 0.1.0";  // as in CMakeLists.txt; a test compares them

constexpr const char* kOverview =
    R"(moehub simulates Mixture-of-Experts layers on multi-GPU machines, packet by packet.

  moehub compare               a MoE layer under several systems, side by side
  moehub run                   one of them, with what its hardware units counted
  moehub model                 a whole model under several systems, end to end
  moehub lines                 the systems, and how long their programs are
  moehub list                  what there is: machines, GPUs, models
  moehub show dgx-h100         everything known about one of them
  moehub collective            time, bandwidth and traffic of one collective
  moehub validate FILE.csv     the model against measured times
  moehub reproduce             a paper's published numbers beside the simulator's
  moehub profile FILE          what recorded routing is like
  moehub place --profile FILE  experts on GPUs from recorded routing, in the files servers load

Start with:
  moehub compare
  moehub COMMAND --help
)";

int complain(std::string_view what, int code) {
    fmt::print(stderr, "moehub: {}\n", moehub::printable(what));
    return code;
}

/// Text of --help or --version.
std::string requested_text(const CLI::App& app, const CLI::Success& request) {
    std::ostringstream text;
    app.exit(request, text, text);
    return text.str();
}

int run(CLI::App& app, int argc, char** argv) {
    try {
        app.parse(argc, argv);
        if (app.get_subcommands().empty()) moehub::put(kOverview, "");
    } catch (const CLI::Success& request) {
        moehub::put(requested_text(app, request), "");
    }
    moehub::put("", "");  // what was printed but not yet written
    return kDone;
}

int guarded_run(int argc, char** argv) {
    CLI::App app("moehub: Mixture-of-Experts on multi-GPU machines, simulated packet by packet",
                 "moehub");
    app.set_version_flag("--version", kVersion, "print the version");
    app.require_subcommand(0, 1);
    app.footer("Example:\n  moehub compare --systems ideal,megatron-te,moe-hub");
    moehub::add_compare(app);
    moehub::add_run(app);
    moehub::add_model(app);
    moehub::add_lines(app);
    moehub::add_list(app);
    moehub::add_show(app);
    moehub::add_collective(app);
    moehub::add_validate(app);
    moehub::add_reproduce(app);
    moehub::add_profile(app);
    moehub::add_place(app);
    try {
        return run(app, argc, argv);
    } catch (const CLI::ParseError& error) {
        return complain(moehub::explain(app, error), kBadInput);
    }
}

}  // namespace

int main(int argc, char** argv) {
    std::signal(SIGPIPE, SIG_IGN);  // a reader that leaves (| head) shows as EPIPE below
    try {
        return guarded_run(argc, argv);
    } catch (const moehub::InputError& error) {
        return complain(error.what(), kBadInput);
    } catch (const std::system_error& error) {
        if (error.code() == std::errc::broken_pipe) return kDone;
        if (error.code() == std::errc::no_space_on_device)
            return complain(fmt::format("output: {}", error.code().message()), kBadInput);
        return complain(fmt::format("internal error: {}", error.what()), kDefect);
    } catch (const std::bad_alloc&) {
        return complain("not enough memory: ask for fewer GPUs, tokens or bytes", kBadInput);
    } catch (const std::exception& error) {
        return complain(fmt::format("internal error: {}", error.what()), kDefect);
    }
}
