/// What a simulated layer gives, as Python sees it.
#pragma once
#include <moehub/layer.hpp>

namespace moehub::python {

struct SimulatedLayer {
    SystemSpec system;
    LayerResult result;
    int gpus = 0;
};

}  // namespace moehub::python
