#include "host/exact_rows.h"

#include <algorithm>

#include "ops/traits.h"

namespace oxbow {

bool takes_exact_rows(const schema::ModelT& model, const schema::EntryPointT& entry) {
  const int32_t symbol = model.tensors[entry.tokens]->rows_symbol;
  return std::any_of(entry.steps.begin(), entry.steps.end(), [&](const auto& step) {
    return op_traits(step->op).needs_all_rows &&
           model.tensors[step->inputs.at(0)]->rows_symbol == symbol;
  });
}

}  // namespace oxbow
