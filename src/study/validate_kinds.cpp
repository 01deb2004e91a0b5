#include "study/validate_kinds.hpp"

#include "base/input_error.hpp"
#include "base/quantity.hpp"
#include "base/utf8.hpp"
#include "study/training_runs.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace moehub {
namespace {

std::vector<std::string> split(std::string_view header) {
    std::vector<std::string> columns;
    for (std::size_t at = 0; at <= header.size();) {
        const auto comma = std::min(header.find(',', at), header.size());
        columns.emplace_back(header.substr(at, comma - at));
        at = comma + 1;
    }
    return columns;
}

/// A column's name without its mark.
std::string named(const std::string& column) {
    return column.substr(0, column.find('*'));
}

std::vector<std::string> columns_of(const FileKind& kind) {
    std::vector<std::string> columns;
    for (const std::string& one : split(kind.header)) columns.push_back(named(one));
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

Shape shape_of(const CsvRow& row, const FileKind& kind) {
    Shape shape;
    for (const std::string& column : split(kind.header))
        if (column.ends_with('*')) shape.emplace_back(named(column), row.field(named(column)));
    return shape;
}

double value_in(const CsvRow& row, std::string_view column) {
    return row.has(column) ? row.positive(column) : 0;
}

Measurement timed(const CsvRow& row, std::string name, std::string_view column, Shape more) {
    return {std::move(name), std::move(more), value_in(row, column), "us"};
}

void read_extents(const CsvRow& row, std::int64_t least, std::int64_t most,
                  const Extents& extents) {
    for (const auto& [column, value] : extents)
        if (row.has(column)) *value = row.integer(column, least, most);
}

void check_heads(const CsvRow& row, std::int64_t heads, std::int64_t kv_heads) {
    if (heads > 0 && kv_heads > 0 && heads % kv_heads != 0)
        row.reject("kv_heads", fmt::format("a divisor of the row's heads, {}", heads));
}

Machine PredictContext::machine_or_skip(const std::string& name, int gpus) const {
    try {
        return machine(name, gpus);
    } catch (const InputError& error) {
        throw RowSkipped(error.what(), name);
    }
}

std::vector<FileKind> file_kinds() {
    constexpr MeasuredOn kCard = MeasuredOn::card;
    constexpr MeasuredOn kNamed = MeasuredOn::named_card;
    return {
        {"operators", "op*,groups*,rows*,max_rows*,k*,n*,skew*,us", operator_cases, kCard},
        {"collectives", "machine*,gpus*,op*,algorithm*,bytes*,us,busbw_GBps,source*",
         collective_cases},
        {"cluster_collectives", "machine*,gpus*,op*,algorithm*,bytes*,us,busbw_GBps,source*,note",
         cluster_collective_cases},
        {"nccl", "machine*,gpus*,op*,dtype*,bytes*,us", nccl_cases},
        {"moe_comm",
         "system*,machine*,gpus*,tokens_per_gpu*,hidden*,experts*,top_k*,routing*,dispatch_bytes_"
         "per_element*,combine_bytes_per_element*,phase*,us",
         moe_comm_cases},
        {"cluster_comm",
         "system,machine,gpus,gpus_per_node,tokens_per_gpu,hidden,experts,top_k,top_groups,"
         "dispatch_bytes_per_element,combine_bytes_per_element,phase,us,GBps,GBps_meaning,sms,"
         "source,note",
         cluster_comm_cases},
        {"deepep_ll",
         "machine*,gpus*,nodes,tokens_per_gpu*,hidden*,top_k*,experts*,dispatch_us,combine_us",
         deepep_ll_cases},
        {"deepep_normal",
         "machine*,gpus*,nodes,tokens_per_gpu*,hidden*,top_k*,experts*,sms*,dispatch_us,combine_us",
         deepep_normal_cases},
        {"layers", "op*,dtype*,batch*,heads*,kv_heads*,seq*,head_dim*,groups*,rows*,k*,n*,us",
         layer_cases, kCard},
        {"eager_phases",
         "model*,tokens*,rows*,route_us,plan_us,permute_us,gemm1_us,activation_us,gemm2_us,combine_"
         "us",
         eager_cases, kCard},
        {"copies", "warps*,blocks*,rows*,width*,copy_us,fill_us,copy_GBps,fill_GBps", copy_cases,
         kCard},
        {"beside_copy",
         "rows*,k*,n*,gemms,copy_blocks*,gemm_alone_us,gemm_us,copy_covers_all,copy_GBps_whole",
         beside_copy_cases, kCard},
        {"training_ops", "op*,elements*,rows*,us", training_op_cases, kCard},
        {"long_attention", "op*,batch*,heads*,kv_heads*,seq*,head_dim*,fwd_us,fwd_bwd_us",
         long_attention_cases, kCard},
        {"whole_layers", "model*,tokens*,max_rows*,eager_us,graph_us,eager_forward_backward_us",
         whole_layer_cases, kCard},
        {"gemm", "gpu*,dtype*,m*,n*,k*,us", kernel_cases<parse_gemm>, kNamed},
        {"attention",
         "gpu*,dtype*,kv_dtype*,batch*,tokens*,context*,heads*,kv_heads*,head_dim*,window*,us",
         kernel_cases<parse_attention>, kNamed},
        {"mla", "gpu*,engine*,dtype*,kv_dtype*,batch*,tokens*,context*,heads*,us",
         kernel_cases<parse_mla>, kNamed},
        {"moe",
         "gpu*,engine,kernel*,dtype*,tokens*,hidden*,expert_ffn*,top_k*,experts*,tp*,ep*,"
         "distribution*,us",
         kernel_cases<parse_moe>, kNamed},
        {"served",
         "source,model,accel,gpus*,gpus_per_node,phase,precision,ep,dp_attention,tp,batch_per_gpu*,"
         "context_tokens*,input_len,output_len,tokens_per_s_per_gpu,tokens_per_s_per_node,tpot_ms,"
         "ttft_ms,overlap*,dispatcher,redundant_experts,mtp,note",
         served_cases},
        {"served_parts",
         "source,model,accel,ep,phase,tokens_per_gpu*,context_tokens,operator,us,note",
         served_part_cases},
        {"serving",
         "engine*,version,model*,gpu*,gemm,experts*,mode*,input*,output*,requests_per_worker*,tp*,"
         "attention_dp*,moe_tp*,moe_ep*,tpot_ms,ttft_ms",
         serving_cases},
        {"training", kTrainingRunColumns, training_run_cases},
    };
}

FileKind file_kind_of(const CsvTable& table) {
    const auto kinds = file_kinds();
    std::string nearest;
    std::size_t fewest = table.columns().size();  // a kind without a shared column is not near
    std::string known;
    for (const auto& kind : kinds) {
        const auto columns = columns_of(kind);
        const auto missing = minus(columns, table.columns());
        const auto unknown = minus(table.columns(), columns);
        if (missing.empty() && unknown.empty()) return kind;
        if (unknown.size() < table.columns().size() && missing.size() + unknown.size() <= fewest) {
            fewest = missing.size() + unknown.size();
            nearest = fmt::format(" (nearest: {}, {})", kind.name, difference(missing, unknown));
        }
        known += fmt::format("{}{}", known.empty() ? "" : ", ", kind.name);
    }
    throw input_error("{}:{}: unknown header{}, allowed: the columns of {}",
                      printable(table.file()), table.header_line(), nearest, known);
}

Cases parse_cases(const CsvTable& table, const FileKind& kind) {
    Cases cases;
    for (std::size_t i = 0; i < table.size(); ++i)
        for (MeasuredCase& one : kind.parse(table[i])) {
            Shape shape = shape_of(table[i], kind);
            for (auto& column : one.measurement.shape) shape.push_back(std::move(column));
            one.measurement.shape = std::move(shape);
            one.line = table[i].line();
            cases.push_back(std::move(one));
        }
    return cases;
}

}  // namespace moehub
