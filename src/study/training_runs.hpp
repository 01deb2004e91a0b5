/// Rows of published training runs as they are read: for validate and for rank_runs.
#pragma once
#include "base/csv.hpp"

#include <moehub/training_runs.hpp>

#include <string_view>

namespace moehub {

/// Columns of the file.
constexpr std::string_view kTrainingRunColumns =
    "model,machine,gpus,precision,global_batch,micro_batch,sequence,tp,pp,vpp,cp,ep,etp,sharding,"
    "dispatcher,routing,overlap,recompute,tokens_per_s_per_gpu,tflops_per_gpu,mfu,step_s,source,"
    "note";

/// Throws InputError "file:line: …".
PublishedRun parse_training_run(const CsvRow& row);

/// "a;b" as {"a", "b"}; empty parts are left out.
std::vector<std::string> parts_of_list(std::string_view list);

}  // namespace moehub
