/// The kinds of models that `moehub model` times beside those with experts.
#pragma once
#include "request/model_arguments.hpp"

namespace moehub {

/// A model without experts.
void dense_model_command(const ModelArguments& arguments);
/// `--decode` and `--prefill`.
void serve_model_command(const ModelArguments& arguments);

}  // namespace moehub
