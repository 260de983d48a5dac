#include "ops/linear/linear.h"

#include <type_traits>

#include "ops/activate/activate.h"
#include "ops/add/add.h"
#include "ops/common/checks.h"
#include "ops/common/left_out.h"
#include "ops/linear/dense_step.h"
#include "ops/linear/formula.h"
#include "ops/linear/tasks.h"
#include "ops/quantize/quantize.h"
#include "runtime/base/quantize.h"
#include "runtime/device/npu/npu_op.h"
#include "schema/model_generated.h"

namespace oxbow {
namespace {

// An I8 output needs whole float rows before it can choose a scale, so it is made one row tile at a time
// in scratch, which then does not grow with the segment. With many tiles each thread makes its own, and all meet once in
// a step; with few they share the channels of each.
constexpr size_t kQuantisedRows = 24;
/// So many tiles for each thread leave the threads that end first little to wait for.
constexpr size_t kTilesToShare = 2;

bool has_own_tiles(size_t rows, size_t threads) {
  return threads > 1 && ceil_div(rows, kQuantisedRows) >= kTilesToShare * threads;
}

struct Params;

/// Rows [row, row + rows) of channels [channel, channel + channels) before activation and residual; at most as many channels
/// as there are. `y` is row `row`.
using Product = void (*)(const Params& p, size_t row, size_t rows, size_t channel, size_t channels,
                         float* y);

struct Params {
  Tensor x, weight, y;
  const float* bias;
  const float* residual;
  ActivateParams activation;
  Product product;
  /// A LinearKernel of the types that `product` knows.
  void (*kernel)();
  ActivateKernel activate;
  AddKernel add;
  QuantizeKernel quantize;
  /// Of x W^T + bias as int8 codes; 0: none.
  float output_scale;
  /// Of finish_linear only.
  const NpuRows* given;
};

size_t smaller(size_t a, size_t b) { return a < b ? a : b; }

/// How many channels a task has. A channel's result is the same in every task, so this may depend
/// on the number of threads.
size_t task_channels(const RunContext& context, size_t rows, size_t width) {
  if (rows > kFewRows) return kTaskChannels;
  const size_t threads = context.pool == nullptr ? 1 : context.pool->threads();
  return round_up(ceil_div(width, threads == 1 ? 1 : 2 * threads), kFewRowsChannels);
}

template <typename X, typename W>
void product(const Params& p, size_t row, size_t rows, size_t channel, size_t channels, float* y) {
  LinearSlice<X, W> slice;
  slice.rows = rows;
  slice.channels = channels;
  slice.depth = p.x.width;
  slice.x = reinterpret_cast<const X*>(p.x.data + row * p.x.stride());
  slice.x_stride = p.x.stride() / sizeof(X);
  slice.weight =
      reinterpret_cast<const W*>(p.weight.data) + weights_before<W>(channel, slice.depth);
  if (p.weight.scales != nullptr) slice.weight_scales = p.weight.scales + channel;
  if constexpr (std::is_same_v<X, int8_t>) {
    slice.x_scales = p.x.row_scales(row);
    slice.x_groups = p.x.scale_groups;
  }
  if (p.bias != nullptr) slice.bias = p.bias + channel;
  slice.y = y + channel;
  slice.y_stride = p.weight.rows;
  reinterpret_cast<LinearKernel<X, W>>(p.kernel)(slice);
}

/// The same from sums or codes that came from elsewhere. As the kernels do it, so that exact sums give their bits.
void given_product(const Params& p, size_t row, size_t rows, size_t channel, size_t channels,
                   float* y) {
  const size_t width = p.weight.rows;
  for (size_t r = 0; r < rows; ++r) {
    const size_t start = (row + r) * width + channel;
    float* part = y + r * width + channel;
    if (p.given->codes != nullptr) {
      for (size_t i = 0; i < channels; ++i) {
        part[i] = static_cast<float>(p.given->codes[start + i]) * p.output_scale;
      }
      continue;
    }
    const float x_scale = *p.x.row_scales(row + r);
    for (size_t i = 0; i < channels; ++i) {
      part[i] =
          static_cast<float>(p.given->sums[start + i]) * (x_scale * p.weight.scales[channel + i]) +
          (p.bias == nullptr ? 0.0f : p.bias[channel + i]);
    }
  }
}

/// Rows [row, row + rows) of channels [channel, channel + channels), with activation and residual.
/// `y` is row `row`.
void compute(const Params& p, size_t row, size_t rows, size_t channel, size_t channels, float* y) {
  const size_t width = p.weight.rows;
  channels = smaller(channels, width - channel);
  p.product(p, row, rows, channel, channels, y);
  for (size_t r = 0; r < rows; ++r) {
    float* part = y + r * width + channel;
    if (p.activation.activation != Activation::kNone) {
      p.activate(p.activation, part, channels, part);
    }
    if (p.residual != nullptr) {
      p.add(part, p.residual + (row + r) * width + channel, channels, part);
    }
  }
}

Status run_to_f32(RunContext& context, const void* params) {
  const auto& p = *static_cast<const Params*>(params);
  Tensor output = p.y;
  float* y = output.data != nullptr ? output.f32() : context.caller_output;
  const size_t rows = context.rows(p.x);
  const size_t width = p.weight.rows;
  const size_t channels = task_channels(context, rows, width);
  const size_t tasks = ceil_div(width, channels);
  // All rows with some channels before the next ones: their weights then stay in the caches.
  const RowTiles tiles(rows, kTaskRows);
  parallel_for(context.pool, tiles.count * tasks, [&](size_t item, size_t) {
    const size_t tile = item % tiles.count, row = tiles.begin(tile);
    compute(p, row, tiles.height(tile), item / tiles.count * channels, channels, y + row * width);
  });
  return Status::kOk;
}

Status run_to_i8(RunContext& context, const void* params) {
  const auto& p = *static_cast<const Params*>(params);
  Tensor y = p.y;
  auto* scratch = reinterpret_cast<float*>(context.scratch);
  const size_t rows = context.rows(p.x);
  const RowTiles tiles(rows, kQuantisedRows);
  if (has_own_tiles(rows, context.pool == nullptr ? 1 : context.pool->threads())) {
    parallel_for(context.pool, tiles.count, [&](size_t tile, size_t worker) {
      const size_t row = tiles.begin(tile), height = tiles.height(tile);
      float* own = scratch + worker * kQuantisedRows * y.width;
      for (size_t channel = 0; channel < y.width; channel += kTaskChannels) {
        compute(p, row, height, channel, kTaskChannels, own);
      }
      for (size_t r = 0; r < height; ++r) quantize_into(p.quantize, own + r * y.width, y, row + r);
    });
    return Status::kOk;
  }
  for (size_t tile = 0; tile < tiles.count; ++tile) {
    const size_t row = tiles.begin(tile), height = tiles.height(tile);
    const size_t channels = task_channels(context, height, y.width);
    parallel_for(context.pool, ceil_div(y.width, channels), [&](size_t task, size_t) {
      compute(p, row, height, task * channels, channels, scratch);
    });
    parallel_for(context.pool, height, [&](size_t r, size_t) {
      quantize_into(p.quantize, scratch + r * y.width, y, row + r);
    });
  }
  return Status::kOk;
}

template <typename X, typename W>
void choose(Params& p, bool reference_only) {
  const auto pick = [=]() -> LinearKernel<X, W> {
#define OXB_KERNEL(x, w, isa, fn)                               \
  if constexpr (std::is_same_v<x, X> && std::is_same_v<w, W>) { \
    if (may_use(isa, reference_only)) return fn;                \
  }
#include "ops/linear/kernels.inc"
#undef OXB_KERNEL
    return nullptr;
  };
  p.product = product<X, W>;
  p.kernel = reinterpret_cast<void (*)()>(pick());
}

Status check_x_and_weight(BindContext& context, const Tensor& x, const Tensor& weight) {
  const bool is_float = weight.type == DataType::kF32 || weight.type == DataType::kF16 ||
                        weight.type == DataType::kBF16;
  if (x.type != DataType::kI8) {
    if (is_float || weight.type == DataType::kI8) return Status::kOk;
    return context.fail("tensor '%s' is %s, expected I8 since '%s' is %s", x.name, describe(x).text,
                        weight.name, type_name(weight.type));
  }
  if (is_float) {
    return context.fail("tensor '%s' is %s, expected I8 in blocks, I4 or ternary since '%s' is I8",
                        weight.name, describe(weight).text, x.name);
  }
  const bool has_groups = weight.type == DataType::kI4 || weight.type == DataType::kI4Min;
  if (x.scale_groups != 1 && (!has_groups || x.width != x.scale_groups * kI4BlockColumns)) {
    return context.fail("tensor '%s' has %u scales a row, expected one scale a row%s", x.name,
                        x.scale_groups, has_groups ? ", or one for each 32 columns" : "");
  }
  if (x.width > kMaxI8Depth) {
    return context.fail(
        "tensor '%s' is %s, expected at most %u wide so that int32 sums do not overflow", x.name,
        describe(x).text, kMaxI8Depth);
  }
  return Status::kOk;
}

/// A view of the output that may be the caller's only when it can be: as floats.
Tensor output_of(BindContext& context) {
  const Tensor y = context.output_or_caller(0);
  return y.type == DataType::kF32 ? y : context.output(0);
}

size_t has_bias(const schema::Step& step) { return step.options_as_LinearOptions()->has_bias(); }
size_t has_residual(const schema::Step& step) {
  return step.options_as_LinearOptions()->has_residual();
}

}  // namespace

constexpr OpSignature kLinearSignature = {
    .options = schema::OpOptions::LinearOptions,
    .by_row = true,
    .inputs = {{.name = "x", .types = kF32 | kI8, .turns = true},
               {.name = "weight",
                .role = Role::kWeight,
                .types = kF32 | kI8Blocks | kF16 | kBF16 | kI4 | kI4Min | kTernary,
                .width = Width::of(0),
                .rows = Rows::fixed()},
               {.name = "bias",
                .role = Role::kWeight,
                .width = Width::rows_of(1),
                .rows = Rows::one(),
                .count = has_bias},
               {.name = "residual",
                .width = Width::rows_of(1),
                .rows = Rows::of(0),
                .count = has_residual}},
    .outputs = {{.name = "y",
                 .types = kF32 | kI8,
                 .width = Width::rows_of(1),
                 .rows = Rows::of(0),
                 .turns = true,
                 .to_caller = true}},
};

Status bind_linear(BindContext& context, RunFunction* run) {
  OXB_TRY(check_signature(context, kLinearSignature));
  const auto* options = context.step().options_as_LinearOptions();
  ActivateParams activation;
  OXB_TRY(check_activation(context, static_cast<uint32_t>(options->activation()), options->limit(),
                           &activation));
  const Tensor x = context.input(0);
  const Tensor weight = context.input(1);
  const Tensor y = output_of(context);
  OXB_TRY(check_x_and_weight(context, x, weight));
  if (y.hadamard != 0 && y.type == DataType::kF32) {
    return context.fail("tensor '%s' is F32, expected I8 since it is turned", y.name);
  }
  auto& p = context.params<Params>();
  p.x = x;
  p.weight = weight;
  p.y = y;
  p.activation = activation;
  if (options->has_bias()) {
    const Tensor bias = context.input(2);
    p.bias = bias.f32();
  }
  if (options->has_residual()) {
    const Tensor residual = context.input(options->has_bias() ? 3 : 2);
    p.residual = residual.f32();
  }
  const flatbuffers::Optional<float> output_scale = options->output_scale();
  if (output_scale.has_value() && !is_static_scale(*output_scale)) {
    return context.fail("the output scale is %g, expected a positive number",
                        double{*output_scale});
  }
  p.output_scale = output_scale.value_or(0.0f);
  *run = nullptr;
  OXB_TRY(bind_dense(
      context, {x, weight, y, p.bias, p.residual, activation, output_scale.value_or(0.0f)}, run));
  if (*run != nullptr) return Status::kOk;

  const bool reference_only = context.reference_only();
  const bool i8_rows = x.type == DataType::kI8;
  switch (weight.type) {
    case DataType::kF16:
      choose<float, F16>(p, reference_only);
      break;
    case DataType::kBF16:
      choose<float, BF16>(p, reference_only);
      break;
    case DataType::kI4:
      choose<int8_t, I4Block>(p, reference_only);
      break;
    case DataType::kI4Min:
      choose<int8_t, I4MinBlock>(p, reference_only);
      break;
    case DataType::kTernary:
      choose<int8_t, TernaryBlock>(p, reference_only);
      break;
    case DataType::kI8:
      i8_rows ? choose<int8_t, int8_t>(p, reference_only)
              : choose<float, int8_t>(p, reference_only);
      break;
    default:
      choose<float, float>(p, reference_only);
      break;
  }
  if (p.kernel == nullptr) return refuse_left_out(context, "low_bits");
  p.activate = pick_activate_kernel(reference_only);
  p.add = pick_add_kernel(reference_only);
  p.quantize = pick_quantize_kernel(reference_only);

  const bool to_i8 = y.type == DataType::kI8;
  if (to_i8) {
    const size_t tiles = has_own_tiles(y.rows, context.threads()) ? context.threads() : 1;
    uint64_t bytes = 0;
    if (!checked_mul(smaller(kQuantisedRows, y.rows) * sizeof(float), y.width, &bytes) ||
        !checked_mul(bytes, tiles, &bytes) || bytes > SIZE_MAX / 2) {
      return context.fail("needs more scratch than there is address space");
    }
    context.request_scratch(bytes);
  }
  *run = to_i8 ? run_to_i8 : run_to_f32;
  return Status::kOk;
}

Status finish_linear(RunContext& context, const void* params, const NpuRows& rows) {
  Params p = *static_cast<const Params*>(params);
  RunContext part = context;
  p.given = &rows;
  p.product = given_product;
  p.x.rows_symbol = -1;
  p.x.rows = static_cast<uint32_t>(rows.rows);
  p.x.scales += rows.first * p.x.scale_groups;
  if (p.residual != nullptr) p.residual += rows.first * p.weight.rows;
  if (p.y.data != nullptr) {
    p.y.data += rows.first * p.y.stride();
    p.y.scales += rows.first * p.y.scale_groups;
  } else if (context.caller_output != nullptr) {
    part.caller_output += rows.first * p.weight.rows;
  }
  return p.y.type == DataType::kI8 ? run_to_i8(part, &p) : run_to_f32(part, &p);
}

void formula_linear(const void* params, const NpuCodes& codes, const int8_t* x, size_t rows,
                    int8_t* y) {
  const auto& p = *static_cast<const Params*>(params);
  FormulaLayer layer;
  layer.depth = p.x.width;
  layer.channels = p.weight.rows;
  layer.weight = reinterpret_cast<const int8_t*>(p.weight.data);
  layer.weight_scales = p.weight.scales;
  layer.bias = p.bias;
  layer.x_scale = p.x.static_scale;
  layer.output_scale = p.output_scale;
  layer.y_scale = codes.is_last ? 0.0f : p.y.static_scale;
  layer.activation = p.activation;
  layer.rounding = codes.in_integers ? FormulaRounding::kInteger : FormulaRounding::kFloat;
  formula_layer(layer, x, rows, y);
}

}  // namespace oxbow
