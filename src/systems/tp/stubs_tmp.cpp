#include "systems/tp/tp.hpp"
#include <stdexcept>
namespace moehub::systems {
#define STUB(n) LayerResult n(const layers::TpJob&) { throw std::logic_error("stub"); }
STUB(run_coconet) STUB(run_coconet_nvls) STUB(run_fuselib) STUB(run_fuselib_nvls) STUB(run_t3) STUB(run_t3_nvls) STUB(run_ladm)
}
