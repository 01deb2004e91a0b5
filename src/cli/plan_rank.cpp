#include "cli/plan_rank.hpp"

#include "cli/output.hpp"
#include "report/document.hpp"
#include "report/progress.hpp"
#include "report/rank_report.hpp"
#include "report/table.hpp"

#include <moehub/error.hpp>

#include <fmt/format.h>

namespace moehub {

void rank_runs_command(const RankRequest& request) {
    require_writable({output_file("-o", request.output), html_file(request.html)});
    RunRanking ranking;
    {
        Progress progress("timing runs");
        ranking = rank_runs(request.file, [&progress](std::size_t done, std::size_t total) {
            progress.update(done, total);
        });
    }
    if (ranking.groups.empty() && !ranking.left_out.empty())
        throw InputError(fmt::format("{}:{}: {}", request.file, ranking.left_out.front().line,
                                     ranking.left_out.front().why));
    if (ranking.groups.empty())
        throw InputError(fmt::format("{}: fewer than {} runs of any model, nothing to rank",
                                     request.file, kFewestRanked));
    const auto document = [&] { return document_text("plan", rank_json(ranking)); };
    if (request.html.asked()) put_page(request.html, ranking_page(ranking), document());
    const TextStyle style = style_for(request.output);
    put(request.json ? document() : fitted(ranking_text(ranking, style), style.width),
        request.output);
}

}  // namespace moehub
