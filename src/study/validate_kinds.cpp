#include "study/validate_kinds.hpp"

#include "base/quantity.hpp"
#include "base/utf8.hpp"
#include "study/training_runs.hpp"
#include "study/validate_cluster.hpp"
#include "study/validate_cluster_comm.hpp"
#include "study/validate_copies.hpp"
#include "study/validate_deepep.hpp"
#include "study/validate_kernels.hpp"
#include "study/validate_layers.hpp"
#include "study/validate_nccl.hpp"
#include "study/validate_rows.hpp"
#include "study/validate_served.hpp"
#include "study/validate_serving.hpp"
#include "study/validate_training.hpp"
#include "study/validate_training_runs.hpp"
#include "study/validate_whole_layers.hpp"

#include <moehub/error.hpp>

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace moehub {
namespace {

/// Ties a parse function to its predict function; the type of the row stays between the two.
template <class Case>
FileKind file_kind(std::string_view name, std::string_view header,
                   std::vector<Case> (*parse)(const CsvRow&),
                   Prediction (*predict)(const Case&, const PredictContext&),
                   MeasuredOn on = MeasuredOn::machine) {
    const auto parse_row = [parse, predict](const CsvRow& row) {
        std::vector<MeasuredCase> cases;
        for (Case& parsed : parse(row)) {
            Measurement measurement = parsed.measurement;
            cases.push_back({row.line(), std::move(measurement),
                             [predict, what = std::move(parsed)](const PredictContext& context) {
                                 return predict(what, context);
                             }});
        }
        return cases;
    };
    return {name, header, parse_row, on};
}

std::vector<std::string> split(std::string_view header) {
    std::vector<std::string> columns;
    for (std::size_t at = 0; at <= header.size();) {
        const auto comma = std::min(header.find(',', at), header.size());
        columns.emplace_back(header.substr(at, comma - at));
        at = comma + 1;
    }
    return columns;
}

std::vector<std::string> minus(const std::vector<std::string>& all,
                               const std::vector<std::string>& taken) {
    std::vector<std::string> left;
    std::copy_if(all.begin(), all.end(), std::back_inserter(left), [&](const std::string& one) {
        return std::find(taken.begin(), taken.end(), one) == taken.end();
    });
    return left;
}

/// "missing us; unknown time" for the difference to a header.
std::string difference(const std::vector<std::string>& missing,
                       const std::vector<std::string>& unknown) {
    std::string text;
    if (!missing.empty()) text += fmt::format("missing {}", fmt::join(missing, ", "));
    if (!unknown.empty())
        text += fmt::format("{}unknown {}", text.empty() ? "" : "; ",
                            quoted(fmt::format("{}", fmt::join(unknown, ","))));
    return text;
}

}  // namespace

Shape shape_of(const CsvRow& row, std::initializer_list<std::string_view> columns) {
    Shape shape;
    for (const auto column : columns) shape.emplace_back(column, row.field(column));
    return shape;
}

double value_in(const CsvRow& row, std::string_view column) {
    return row.has(column) ? row.positive(column) : 0;
}

std::vector<FileKind> file_kinds() {
    return {
        file_kind("operators", "op,groups,rows,max_rows,k,n,skew,us", parse_operator,
                  predict_operator, MeasuredOn::card),
        file_kind("collectives", "machine,gpus,op,algorithm,bytes,us,busbw_GBps,source",
                  parse_collective, predict_collective),
        file_kind("cluster_collectives",
                  "machine,gpus,op,algorithm,bytes,us,busbw_GBps,source,note",
                  parse_cluster_collective, predict_cluster_collective),
        file_kind("nccl", "machine,gpus,op,dtype,bytes,us", parse_nccl, predict_nccl),
        file_kind("moe_comm",
                  "system,machine,gpus,tokens_per_gpu,hidden,experts,top_k,routing,"
                  "dispatch_bytes_per_element,combine_bytes_per_element,phase,us",
                  parse_moe_comm, predict_moe_comm),
        file_kind(
            "cluster_comm",
            "system,machine,gpus,gpus_per_node,tokens_per_gpu,hidden,experts,top_k,top_groups,"
            "dispatch_bytes_per_element,combine_bytes_per_element,phase,us,GBps,GBps_meaning,"
            "sms,source,note",
            parse_cluster_comm, predict_cluster_comm),
        file_kind("deepep_ll",
                  "machine,gpus,nodes,tokens_per_gpu,hidden,top_k,experts,dispatch_us,combine_us",
                  parse_deepep_ll, predict_deepep),
        file_kind("deepep_normal",
                  "machine,gpus,nodes,tokens_per_gpu,hidden,top_k,experts,sms,dispatch_us,"
                  "combine_us",
                  parse_deepep_normal, predict_deepep),
        file_kind("layers", "op,dtype,batch,heads,kv_heads,seq,head_dim,groups,rows,k,n,us",
                  parse_layer, predict_layer_case, MeasuredOn::card),
        file_kind("eager_phases",
                  "model,tokens,rows,route_us,plan_us,permute_us,gemm1_us,activation_us,gemm2_us,"
                  "combine_us",
                  parse_eager, predict_eager_case, MeasuredOn::card),
        file_kind("copies", "warps,blocks,rows,width,copy_us,fill_us,copy_GBps,fill_GBps",
                  parse_copy, predict_copy, MeasuredOn::card),
        file_kind("beside_copy",
                  "rows,k,n,gemms,copy_blocks,gemm_alone_us,gemm_us,copy_covers_all,"
                  "copy_GBps_whole",
                  parse_beside_copy, predict_beside_copy, MeasuredOn::card),
        file_kind("training_ops", "op,elements,rows,us", parse_training, predict_training_case,
                  MeasuredOn::card),
        file_kind("long_attention", "op,batch,heads,kv_heads,seq,head_dim,fwd_us,fwd_bwd_us",
                  parse_long_attention, predict_layer_case, MeasuredOn::card),
        file_kind("whole_layers",
                  "model,tokens,max_rows,eager_us,graph_us,eager_forward_backward_us",
                  parse_whole_layer, predict_whole_layer, MeasuredOn::card),
        file_kind("gemm", "gpu,dtype,m,n,k,us", parse_gemm, predict_kernel_case,
                  MeasuredOn::named_card),
        file_kind("attention",
                  "gpu,dtype,kv_dtype,batch,tokens,context,heads,kv_heads,head_dim,window,us",
                  parse_attention, predict_kernel_case, MeasuredOn::named_card),
        file_kind("mla", "gpu,engine,dtype,kv_dtype,batch,tokens,context,heads,us", parse_mla,
                  predict_kernel_case, MeasuredOn::named_card),
        file_kind("moe",
                  "gpu,engine,kernel,dtype,tokens,hidden,expert_ffn,top_k,experts,tp,ep,"
                  "distribution,us",
                  parse_moe, predict_kernel_case, MeasuredOn::named_card),
        file_kind("served",
                  "source,model,accel,gpus,gpus_per_node,phase,precision,ep,dp_attention,tp,"
                  "batch_per_gpu,context_tokens,input_len,output_len,tokens_per_s_per_gpu,"
                  "tokens_per_s_per_node,tpot_ms,ttft_ms,overlap,dispatcher,redundant_experts,mtp,"
                  "note",
                  parse_served, predict_served),
        file_kind("served_parts",
                  "source,model,accel,ep,phase,tokens_per_gpu,context_tokens,operator,us,note",
                  parse_served_parts, predict_served),
        file_kind("serving",
                  "engine,version,model,gpu,gemm,experts,mode,input,output,requests_per_worker,tp,"
                  "attention_dp,moe_tp,moe_ep,tpot_ms,ttft_ms",
                  parse_serving, predict_serving),
        file_kind("training", kTrainingRunColumns, parse_training_case, predict_training_run),
    };
}

FileKind file_kind_of(const CsvTable& table) {
    const auto kinds = file_kinds();
    std::string nearest;
    std::size_t fewest = table.columns().size();  // a kind without a shared column is not near
    std::string known;
    for (const auto& kind : kinds) {
        const auto columns = split(kind.header);
        const auto missing = minus(columns, table.columns());
        const auto unknown = minus(table.columns(), columns);
        if (missing.empty() && unknown.empty()) return kind;
        if (unknown.size() < table.columns().size() && missing.size() + unknown.size() <= fewest) {
            fewest = missing.size() + unknown.size();
            nearest = fmt::format(" (nearest: {}, {})", kind.name, difference(missing, unknown));
        }
        known += fmt::format("{}{}", known.empty() ? "" : ", ", kind.name);
    }
    throw InputError(fmt::format("{}:{}: unknown header{}, allowed: the columns of {}",
                                 printable(table.file()), table.header_line(), nearest, known));
}

std::vector<MeasuredCase> parse_cases(const CsvTable& table, const FileKind& kind) {
    std::vector<MeasuredCase> cases;
    for (std::size_t i = 0; i < table.size(); ++i)
        for (auto& one : kind.parse(table[i])) cases.push_back(std::move(one));
    return cases;
}

}  // namespace moehub
