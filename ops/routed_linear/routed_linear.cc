#include "ops/routed_linear/routed_linear.h"

#include <cstring>
#include <type_traits>

#include "ops/common/checks.h"
#include "ops/linear/linear.h"
#include "ops/linear/tasks.h"
#include "schema/model_generated.h"

namespace oxbow {
namespace {

/// Rows of one expert that are computed together.
constexpr size_t kTileRows = 24;

struct Params {
  Tensor x, routes, weight, bias, y;
  size_t experts;
  /// Rows of the weight from one expert to the next.
  size_t pitch;
  bool has_bias;
  LinearKernel<float, float> f32_f32;
  LinearKernel<float, int8_t> f32_i8;
  LinearKernel<int8_t, int8_t> i8_i8;
  // The scratch, in bytes from its start: where the rows of each expert begin, rows in the order of their experts,
  // tiles, then a part for each worker.
  size_t order_at, tiles_at, workers_at, worker_bytes;
};

/// Rows order[begin] to order[begin + height) are of one expert.
struct Tile {
  uint32_t expert, begin, height;
};

size_t most_tiles(size_t rows, size_t experts) {
  return ceil_div(rows, kTileRows) + (experts < rows ? experts : rows);
}

template <typename X, typename W>
LinearKernel<X, W> kernel_of(const Params& p) {
  if constexpr (std::is_same_v<X, int8_t>) {
    return p.i8_i8;
  } else if constexpr (std::is_same_v<W, int8_t>) {
    return p.f32_i8;
  } else {
    return p.f32_f32;
  }
}

/// Channels [channel, channel + channels) of a tile, in a worker's part of the scratch.
template <typename X, typename W>
void compute(const Params& p, const Tile& tile, const uint32_t* order, size_t channel,
             size_t channels, std::byte* scratch) {
  const size_t stride = p.x.stride(), width = p.y.width;
  auto* scales = reinterpret_cast<float*>(scratch + kTileRows * stride);
  float* out = scales + kTileRows;
  LinearSlice<X, W> slice;
  slice.rows = tile.height;
  slice.channels = channels < width - channel ? channels : width - channel;
  slice.depth = p.x.width;
  for (size_t r = 0; r < tile.height; ++r) {
    const size_t row = order[tile.begin + r];
    std::memcpy(scratch + r * stride, p.x.data + row * stride, stride);
    if constexpr (std::is_same_v<X, int8_t>) scales[r] = *p.x.row_scales(row);
  }
  slice.x = reinterpret_cast<const X*>(scratch);
  slice.x_stride = stride / sizeof(X);
  if constexpr (std::is_same_v<X, int8_t>) slice.x_scales = scales;
  const size_t first = tile.expert * p.pitch + channel;
  slice.weight = reinterpret_cast<const W*>(p.weight.data);
  if constexpr (std::is_same_v<W, int8_t>) {
    slice.weight += first * round_up(slice.depth, kBlockColumns);
    slice.weight_scales = p.weight.scales + first;
  } else {
    slice.weight += first * slice.depth;
  }
  if (p.has_bias) slice.bias = p.bias.f32(tile.expert) + channel;
  slice.y = out;
  slice.y_stride = slice.channels;
  kernel_of<X, W>(p)(slice);
  for (size_t r = 0; r < tile.height; ++r) {
    std::memcpy(Tensor(p.y).f32(order[tile.begin + r]) + channel, out + r * slice.channels,
                slice.channels * sizeof(float));
  }
}

/// Sorts rows by expert, in their own order within each, and cuts them into tiles.
Status make_tiles(const RunContext& context, const Params& p, size_t rows, uint32_t* begins,
                  uint32_t* order, Tile* tiles, size_t* count) {
  std::memset(begins, 0, (p.experts + 1) * sizeof(uint32_t));
  const int32_t* routes = p.routes.i32();
  for (size_t row = 0; row < rows; ++row) {
    if (routes[row] < 0 || static_cast<size_t>(routes[row]) >= p.experts) {
      return fail(context.error, Status::kInvalidArgument,
                  "'%s' has the expert %d in row %zu, expected 0 to %zu", p.routes.name,
                  routes[row], row, p.experts - 1);
    }
    ++begins[routes[row] + 1];
  }
  for (size_t e = 0; e < p.experts; ++e) begins[e + 1] += begins[e];
  *count = 0;
  for (size_t e = 0; e < p.experts; ++e) {
    for (uint32_t at = begins[e]; at < begins[e + 1]; at += kTileRows) {
      const uint32_t left = begins[e + 1] - at;
      tiles[(*count)++] = {static_cast<uint32_t>(e), at,
                           left < kTileRows ? left : static_cast<uint32_t>(kTileRows)};
    }
  }
  for (size_t row = 0; row < rows; ++row) {
    order[begins[routes[row]]++] = static_cast<uint32_t>(row);
  }
  return Status::kOk;
}

template <typename X, typename W>
Status run_routed_linear(RunContext& context, const void* params) {
  const auto& p = *static_cast<const Params*>(params);
  const size_t rows = context.rows(p.x);
  if (rows == 0) return Status::kOk;
  auto* begins = reinterpret_cast<uint32_t*>(context.scratch);
  auto* order = reinterpret_cast<uint32_t*>(context.scratch + p.order_at);
  auto* tiles = reinterpret_cast<Tile*>(context.scratch + p.tiles_at);
  size_t count = 0;
  OXB_TRY(make_tiles(context, p, rows, begins, order, tiles, &count));
  const size_t tasks = ceil_div(p.y.width, kTaskChannels);
  parallel_for(context.pool, count * tasks, [&](size_t item, size_t worker) {
    compute<X, W>(p, tiles[item % count], order, item / count * kTaskChannels, kTaskChannels,
                  context.scratch + p.workers_at + worker * p.worker_bytes);
  });
  return Status::kOk;
}

template <typename X, typename W>
LinearKernel<X, W> pick_kernel(bool reference_only) {
#define OXB_KERNEL(x, w, isa, fn)                               \
  if constexpr (std::is_same_v<x, X> && std::is_same_v<w, W>) { \
    if (may_use(isa, reference_only)) return fn;                \
  }
#include "ops/linear/kernels.inc"
#undef OXB_KERNEL
  return nullptr;
}

Status request_scratch(BindContext& context, Params& p) {
  // Rows and experts are below 2^31 and rows of x below 2^32 bytes: sums of a few products with small factors.
  uint64_t bytes = 0;
  const auto take = [&bytes](uint64_t count) {
    const uint64_t at = bytes;
    bytes = (at + count + kTensorAlignment - 1) / kTensorAlignment * kTensorAlignment;
    return static_cast<size_t>(at);
  };
  take((uint64_t{p.experts} + 1) * sizeof(uint32_t));
  p.order_at = take(uint64_t{p.x.rows} * sizeof(uint32_t));
  p.tiles_at = take(uint64_t{most_tiles(p.x.rows, p.experts)} * sizeof(Tile));
  p.workers_at = static_cast<size_t>(bytes);
  const uint64_t channels = p.y.width < kTaskChannels ? p.y.width : kTaskChannels;
  p.worker_bytes =
      round_up(kTileRows * (p.x.stride() + sizeof(float) * (1 + channels)), kTensorAlignment);
  uint64_t workers = 0;
  if (!checked_mul(context.threads(), p.worker_bytes, &workers) ||
      !checked_add(bytes, workers, &bytes) || bytes > SIZE_MAX / 2) {
    return context.fail("scratch for %zu threads does not fit", context.threads());
  }
  context.request_scratch(static_cast<size_t>(bytes));
  return Status::kOk;
}

size_t has_bias(const schema::Step& step) {
  return step.options_as_RoutedLinearOptions()->has_bias();
}

Status check_experts(BindContext& context) {
  if (context.step().options_as_RoutedLinearOptions()->experts() != 0) return Status::kOk;
  return context.fail("has 0 experts, expected at least 1");
}

uint64_t experts(const StepView& view) {
  return view.step().options_as_RoutedLinearOptions()->experts();
}
uint64_t width_of_y(const StepView& view) { return view.output().width; }
/// The rows of each expert end with a whole block.
uint64_t rows_of_experts(const StepView& view) {
  return experts(view) * round_up(width_of_y(view), uint64_t{kBlockRows});
}

}  // namespace

constexpr OpSignature kRoutedLinearSignature = {
    .options = schema::OpOptions::RoutedLinearOptions,
    .check_options = check_experts,
    .by_row = true,
    .inputs = {{.name = "x", .types = kF32 | kI8OneScale, .turns = true},
               {.name = "routes",
                .role = Role::kIds,
                .types = kI32,
                .width = Width::exactly(1),
                .rows = Rows::of(0)},
               {.name = "weight",
                .role = Role::kWeight,
                .types = kF32 | kI8Blocks,
                .width = Width::of(0),
                .rows = Rows::told(rows_of_experts)},
               {.name = "bias",
                .role = Role::kWeight,
                .width = Width::told(width_of_y),
                .rows = Rows::told(experts),
                .count = has_bias}},
    .outputs = {{.name = "y", .rows = Rows::of(0)}},
};

Status bind_routed_linear(BindContext& context, RunFunction* run) {
  OXB_TRY(check_signature(context, kRoutedLinearSignature));
  const auto* options = context.step().options_as_RoutedLinearOptions();
  auto& p = context.params<Params>();
  p.x = context.input(0);
  p.routes = context.input(1);
  p.weight = context.input(2);
  p.y = context.output(0);
  p.experts = options->experts();
  p.pitch = round_up(p.y.width, kBlockRows);
  p.has_bias = options->has_bias();
  if (p.has_bias) p.bias = context.input(3);
  const bool i8 = p.x.type == DataType::kI8;
  if (i8 && (p.weight.type != DataType::kI8 || p.x.width > kMaxI8Depth)) {
    return context.fail("tensor '%s' is %s, expected I8 in blocks at most %u wide since '%s' is I8",
                        p.weight.name, describe(p.weight).text, kMaxI8Depth, p.x.name);
  }
  OXB_TRY(request_scratch(context, p));
  p.f32_f32 = pick_kernel<float, float>(context.reference_only());
  p.f32_i8 = pick_kernel<float, int8_t>(context.reference_only());
  p.i8_i8 = pick_kernel<int8_t, int8_t>(context.reference_only());
  *run = i8                               ? run_routed_linear<int8_t, int8_t>
         : p.weight.type == DataType::kI8 ? run_routed_linear<float, int8_t>
                                          : run_routed_linear<float, float>;
  return Status::kOk;
}

}  // namespace oxbow
