#include "ops/common/checks.h"

#include <cstdio>

#include "ops/common/signature.h"
#include "schema/model_generated.h"

namespace oxbow {

const char* type_name(DataType type) {
  for (const Storage& storage : kStorages) {
    if (storage.type == type) return storage.words;
  }
  return "unknown type";
}

TensorText describe(const Tensor& tensor) {
  char groups[32] = "";
  if (tensor.scale_groups != 0) {
    std::snprintf(groups, sizeof(groups), " with %u scales a row", tensor.scale_groups);
  }
  TensorText result;
  std::snprintf(result.text, sizeof(result.text), "%s%s%s [%s%u, %u]%s", type_name(tensor.type),
                tensor.layout == Layout::kRowMajor ? "" : " in blocks",
                tensor.ring >= 0 ? " in a ring" : "", tensor.rows_symbol >= 0 ? "at most " : "",
                tensor.rows, tensor.width, groups);
  return result;
}

Status check_counts(BindContext& context, size_t inputs, size_t outputs) {
  if (context.input_count() == inputs && context.output_count() == outputs) return Status::kOk;
  return context.fail("has %zu inputs and %zu outputs, expected %zu and %zu", context.input_count(),
                      context.output_count(), inputs, outputs);
}

Status check_type(BindContext& context, const Tensor& tensor, DataType type) {
  if (tensor.type != type) {
    return context.fail("tensor '%s' is %s, expected %s", tensor.name, describe(tensor).text,
                        type_name(type));
  }
  if (tensor.layout == Layout::kRowMajor && tensor.ring < 0) return Status::kOk;
  return context.fail("tensor '%s' is %s, expected plain rows", tensor.name, describe(tensor).text);
}

Status check_width(BindContext& context, const Tensor& tensor, size_t width) {
  if (tensor.width == width) return Status::kOk;
  return context.fail("tensor '%s' is %s, expected a width of %zu", tensor.name,
                      describe(tensor).text, width);
}

Status check_same_rows(BindContext& context, const Tensor& a, const Tensor& b) {
  if (a.rows == b.rows && a.rows_symbol == b.rows_symbol) return Status::kOk;
  return context.fail(
      "tensors '%s', %s with row symbol %d, and '%s', %s with row symbol %d: expected equal rows",
      a.name, describe(a).text, a.rows_symbol, b.name, describe(b).text, b.rows_symbol);
}

Status check_room(BindContext& context, const Tensor& tensor) {
  if (tensor.rows_symbol < 0 || context.symbol_max(tensor.rows_symbol) <= tensor.rows) {
    return Status::kOk;
  }
  return context.fail("tensor '%s' has room for %u rows, up to %u may come", tensor.name,
                      tensor.rows, context.symbol_max(tensor.rows_symbol));
}

Status check_in_place(BindContext& context, size_t state, size_t output) {
  const auto& inputs = *context.step().inputs();
  const auto& outputs = *context.step().outputs();
  const uint32_t index = inputs.Get(static_cast<uint32_t>(state));
  for (uint32_t i = 0; i < inputs.size(); ++i) {
    if (i != state && inputs.Get(i) == index) {
      return context.fail("tensor '%s' is the state and another input", context.input(i).name);
    }
  }
  if (outputs.Get(static_cast<uint32_t>(output)) != index) {
    return context.fail("writes '%s', expected it to be the state it reads, '%s'",
                        context.output(output).name, context.input(state).name);
  }
  return Status::kOk;
}

Status fail_options(BindContext& context, const char* expected) {
  return context.fail("has no %s", expected);
}

}  // namespace oxbow
