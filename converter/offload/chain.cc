#include "converter/offload/chain.h"

#include <algorithm>

#include "ops/linear/formula.h"
#include "runtime/base/tensor.h"
#include "runtime/model/plan_check.h"

namespace oxbow::convert {
namespace {

/// With a scale for its rows and one for int8 results.
bool is_static(const schema::ModelT& model, const schema::StepT& step) {
  const auto* options = step.options.AsLinearOptions();
  if (options == nullptr || !options->output_scale.has_value()) return false;
  const schema::TensorT& x = *model.tensors[step.inputs[0]];
  const schema::TensorT& weight = *model.tensors[step.inputs[1]];
  return x.type == schema::DataType::I8 && x.static_scale.has_value() &&
         weight.type == schema::DataType::I8;
}

/// What every kind of accelerator has, or a table can say.
bool is_common(schema::Activation activation) {
  using schema::Activation;
  return activation == Activation::None || activation == Activation::Relu ||
         activation == Activation::Gelu || activation == Activation::GeluTanh;
}

/// By steps and by the caller.
std::vector<uint32_t> count_readers(const schema::ModelT& model) {
  std::vector<uint32_t> readers(model.tensors.size());
  for (const auto& entry : model.entry_points) {
    ++readers[entry->logits];
    for (const uint32_t tensor : entry->kept) ++readers[tensor];
    for (const uint32_t tensor : entry->outputs) ++readers[tensor];
    for (const auto& step : entry->steps) {
      for (const uint32_t tensor : step->inputs) ++readers[tensor];
    }
  }
  return readers;
}

std::vector<float> read_floats(const DataRegion& data, uint64_t offset, size_t count) {
  std::vector<float> values(count);
  data.read(offset, std::as_writable_bytes(std::span(values)));
  return values;
}

}  // namespace

std::vector<StepRange> find_chains(const schema::ModelT& model) {
  const std::vector<uint32_t> readers = count_readers(model);
  // Its codes are the rows of the next one, and nothing else.
  const auto leads = [&](const schema::StepT& step, const schema::StepT& next) {
    const auto* options = step.options.AsLinearOptions();
    const schema::TensorT& y = *model.tensors[step.outputs[0]];
    return is_static(model, next) && next.inputs[0] == step.outputs[0] &&
           readers[step.outputs[0]] == 1 && y.type == schema::DataType::I8 && y.hadamard == 0 &&
           !options->has_residual && is_common(options->activation);
  };
  std::vector<StepRange> ranges;
  for (uint32_t e = 0; e < model.entry_points.size(); ++e) {
    const auto& steps = model.entry_points[e]->steps;
    for (uint32_t s = 0; s < steps.size(); ++s) {
      if (!is_static(model, *steps[s])) continue;
      StepRange range = {e, s, 1, model.tensors[steps[s]->inputs[0]]->rows, true};
      while (range.steps < kMaxOffloadSteps && s + 1 < steps.size() &&
             leads(*steps[s], *steps[s + 1])) {
        ++s;
        ++range.steps;
      }
      ranges.push_back(range);
    }
  }
  return ranges;
}

Chain read_chain(const schema::ModelT& model, const StepRange& range, const DataRegion& data) {
  Chain chain;
  for (uint32_t s = range.step; s < range.step + range.steps; ++s) {
    const schema::StepT& step = *model.entry_points[range.entry]->steps[s];
    const auto* options = step.options.AsLinearOptions();
    const schema::TensorT& weight = *model.tensors[step.inputs[1]];
    FormulaLayer formula;
    formula.x_scale = *model.tensors[step.inputs[0]]->static_scale;
    formula.output_scale = *options->output_scale;
    formula.activation = {static_cast<Activation>(options->activation), options->limit};
    if (s + 1 != range.step + range.steps) {
      formula.y_scale = *model.tensors[step.outputs[0]]->static_scale;
    }
    ChainLayer layer;
    layer.weight = read_codes(weight, data);
    const size_t channels = layer.weight.channels;
    layer.weight_scales = read_floats(
        data,
        weight.offset + element_bytes(DataType::kI8, Layout::kBlock8x4, weight.rows, weight.width),
        channels);
    std::vector<float> biases(channels);
    if (options->has_bias) {
      biases = read_floats(data, model.tensors[step.inputs[2]]->offset, channels);
    }
    layer.x_scale = formula.x_scale;
    layer.sum_scale = layer.y_scale = formula.sum_scale();
    layer.least = formula.least();
    for (size_t n = 0; n < channels; ++n) {
      const float scale = layer.weight_scales[n];
      layer.factors.push_back(formula_factor(layer.x_scale, scale, layer.sum_scale));
      layer.biases.push_back(options->has_bias ? formula_bias(biases[n], layer.x_scale, scale,
                                                              layer.sum_scale, layer.weight.depth)
                                               : 0);
      if (scale == 0.0f) {
        std::fill_n(layer.weight.codes.begin() + static_cast<ptrdiff_t>(n * layer.weight.depth),
                    layer.weight.depth, int8_t{0});
      }
    }
    if (formula.has_table()) {
      layer.activation = options->activation;
      layer.y_scale = formula.y_scale;
      layer.table.resize(kFormulaTable);
      formula_table(formula.activation, formula.output_scale, formula.y_scale, layer.table.data());
    }
    chain.push_back(std::move(layer));
  }
  return chain;
}

}  // namespace oxbow::convert
