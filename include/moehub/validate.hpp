/// Validation: predict every row of a file of measurements and say how far off the model is.
///
/// A file is known by its header (column order does not matter):
///   operators    op,groups,rows,max_rows,k,n,skew,us                      validation/h200/ops.csv
///   layers       op,dtype,batch,…,k,n,us                               validation/h200/layers.csv
///   eager_phases model,tokens,rows,route_us,…,combine_us         validation/h200/eager_phases.csv
///   whole_layers model,tokens,max_rows,eager_us,graph_us,…       validation/h200/whole_layers.csv
///   training_ops op,elements,us,rows                             validation/h200/training_ops.csv
///   long_attention op,batch,heads,…,fwd_us,fwd_bwd_us           validation/h200/long_attention.csv
///   copies       warps,blocks,rows,width,copy_us,fill_us,…   validation/h200/copies_by_blocks.csv
///   beside_copy  rows,k,n,gemms,copy_blocks,…,gemm_us,…      validation/h200/gemm_beside_copy.csv
///   collectives  machine,gpus,op,algorithm,bytes,us,busbw_GBps,source published_collectives.csv
///   gemm         gpu,dtype,m,n,k,us                                  validation/kernels/gemm.csv
///   attention    gpu,dtype,kv_dtype,batch,…,window,us   …/attention_prefill.csv, …_decode.csv
///   mla          gpu,engine,dtype,kv_dtype,…,heads,us         …/mla_prefill.csv, …_decode.csv
///   moe          gpu,engine,kernel,dtype,tokens,…,distribution,us         …/moe.csv
///   nccl         machine,gpus,op,dtype,bytes,us                validation/kernels/collectives.csv
///   moe_comm     system,machine,gpus,tokens_per_gpu,…,phase,us            published_moe_comm.csv
///   cluster_comm system,machine,gpus,gpus_per_node,…,GBps_meaning,…  published_cluster_comm.csv
///   deepep_ll    machine,gpus,nodes,tokens_per_gpu,…,dispatch_us,combine_us validation/kernels
///   deepep_normal the same with the SMs given: sms                          validation/kernels
///   serving      engine,version,model,gpu,gemm,experts,mode,…
///   validation/published_serving_requests.csv
///   training     model,machine,gpus,precision,…,mfu,step_s,source,note
///   validation/published_training.csv; <moehub/training_runs.hpp> says how its cells are read
///
/// A row of eager_phases holds seven measurements, one for each phase of a layer: seven cases. One
/// of whole_layers holds three: eager, as a CUDA graph, forward and backward. One of deepep_ll or
/// deepep_normal holds two. One of training is compared by tokens/s, or else TFLOP/s, MFU in
/// percent or seconds of a step, whichever is given first.
///
/// The error of a row is predicted / measured − 1, a fraction, in the unit of the measurement:
/// a row that gives a time is compared as time (above 0: predicted slower), a row that gives only
/// a bus bandwidth is compared as nccl-tests' bus bandwidth (above 0: predicted faster).
#pragma once
#include <moehub/presets.hpp>
#include <moehub/units.hpp>

#include <cstddef>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace moehub {

struct ValidateOptions {
    std::string gpu = "h200-sxm";  ///< preset or file; the card of rows that name none
    Ps above = 0;                  ///< times shorter than this are left out
    /// What changes every machine that rows name ("link.latency=1 us"); of files whose rows are of
    /// cards alone "gpu.KEY=VALUE".
    Overrides settings = {};
    /// Called after each row with (rows done, rows in all), from the calling thread. May be empty.
    std::function<void(std::size_t, std::size_t)> progress;
};

struct ValidationRow {
    int line = 0;                                            ///< line in the file, from 1
    std::string name;                                        ///< name of its line in the summary
    std::vector<std::pair<std::string, std::string>> shape;  ///< columns that are not measurements
    std::string unit;                                        ///< "us" or "GB/s"
    double measured = 0;
    double predicted = 0;
    double error = 0;  ///< predicted / measured - 1
};

/// Absolute errors of the rows of one name, as fractions. Quantiles interpolate between rows.
struct ValidationSummary {
    std::string name;
    std::size_t rows = 0;
    double median = 0;
    double mean = 0;
    double p90 = 0;
    double max = 0;
};

/// Rows that could not be predicted, and why.
struct ValidationSkipped {
    std::string name;
    std::size_t rows = 0;
    std::string why;
};

struct Validation {
    std::string kind;                        ///< kind of the file: "operators", …
    std::vector<ValidationSummary> summary;  ///< summaries in order of first appearance
    std::vector<ValidationSkipped> skipped;
    std::vector<ValidationRow> rows;  ///< predicted rows, in the order of the file
};

/// Throws InputError ("file:line: …") when the file cannot be read, its header is not known or a
/// row does not parse; nothing is predicted before every row has parsed.
Validation validate(const std::string& path, const ValidateOptions& options = {});

}  // namespace moehub
