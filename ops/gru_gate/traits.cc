#include "ops/traits.h"

#include "ops/gru_gate/gru_gate.h"

namespace oxbow {

extern const OpTraits gru_gate_traits;
const OpTraits gru_gate_traits = {
    .code = schema::OpCode::GruGate,
    .signature = &kGruGateSignature,
};

}  // namespace oxbow
