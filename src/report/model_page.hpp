/// Pages of whole models, simulated layer by layer or served step by step.
#pragma once
#include "report/model_report.hpp"
#include "report/page.hpp"
#include "report/served_report.hpp"

namespace moehub {

/// Document and command of each page are the caller's to fill in.
Page model_page(const ModelCase& model);
Page model_page(const DenseCase& model);
Page served_page(const ServedCase& what);
Page served_page(const SizesCase& sizes);

}  // namespace moehub
