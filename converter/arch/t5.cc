// T5 and its kin (v1.1, Flan).

#include "converter/blocks/t5.h"

namespace oxbow::convert {

void import_t5(const Checkpoint& checkpoint, const ImportOptions& options, Graph& graph) {
  import_t5_model(checkpoint, options, {}, graph);
}

}  // namespace oxbow::convert
