#include "ops/linear/dense_step.h"

#include <atomic>
#include <cstdlib>
#include <new>

#include "ops/add/add.h"
#include "ops/linear/dense.h"
#include "ops/quantize/quantize.h"
#include "runtime/device/if_built.h"

namespace oxbow {
namespace {

// Channels below which a thread of its own is not worth it; rows between int8 sums and floats in scratch.
constexpr size_t kLeastChannels = 64;
constexpr size_t kTileRows = 32;
// Parts start at whole tiles of the libraries' kernels.
constexpr size_t kPartChannels = 16;
constexpr size_t kMaxParts = 32;

/// The layers of a step: all its channels, part after part.
struct Parts {
  size_t count = 0;
  DenseLayer* layers[kMaxParts] = {};
  ~Parts() {
    for (size_t i = 0; i < count; ++i) delete layers[i];
  }
  static void destroy(void* parts) { delete static_cast<Parts*>(parts); }
};

struct Params {
  DenseStep step;
  const DenseProvider* provider;
  Parts* parts;
  size_t part_channels;
  float y_scale;
  OwnedObject owned;
  ActivateKernel activate;
  AddKernel add;
  QuantizeKernel quantize;
};

size_t smaller(size_t a, size_t b) { return a < b ? a : b; }

const DenseProvider* provider_of(Backend backend) {
  switch (backend) {
#define OXB_PROCESSOR(NAME, number, name, constant)
#define OXB_LIBRARY(NAME, number, name, constant) \
  case Backend::constant:                         \
    return OXB_IF_BUILT(OXB_BUILD_##NAME, constant##Provider);
#define OXB_DEVICE(NAME, number, name, constant, driver, context)
#include "runtime/device/backends.inc"
    default:
      return nullptr;
  }
}

bool is_i8(const DenseStep& step) { return step.weight.type == DataType::kI8; }

/// The scale of a library's int8 result. Where nothing comes between it and a static output, that one's: then the
/// result is rounded once.
float result_scale(const DenseStep& step) {
  const bool direct =
      step.residual == nullptr && (step.activation.activation == Activation::kNone ||
                                   step.activation.activation == Activation::kRelu);
  return direct && step.y.static_scale != 0.0f && step.y.hadamard == 0 ? step.y.static_scale
                                                                       : step.output_scale;
}

bool can_serve(const DenseProvider& provider, const DenseStep& step) {
  if (!is_i8(step)) {
    return step.x.type == DataType::kF32 && step.weight.type == DataType::kF32;
  }
  // A library wants to know the scale of x when it is created.
  if (step.x.type != DataType::kI8 || step.x.static_scale == 0.0f) return false;
  return provider.i8_result == DenseI8Result::kI32 || result_scale(step) != 0.0f;
}

/// Bytes of the library's int8 results and, behind them, of float rows; for one tile.
struct Scratch {
  size_t codes = 0;
  size_t floats = 0;
};

bool scratch_of(const DenseProvider& provider, const DenseStep& step, Scratch* scratch) {
  const size_t rows = smaller(kTileRows, step.y.rows);
  const size_t code_bytes = provider.i8_result == DenseI8Result::kI8 ? 1 : 4;
  uint64_t codes = 0, floats = 0;
  if (is_i8(step) && !checked_mul(rows * code_bytes, step.y.width, &codes)) return false;
  if (step.y.type == DataType::kI8 && !checked_mul(rows * sizeof(float), step.y.width, &floats)) {
    return false;
  }
  if (codes > SIZE_MAX / 4 || floats > SIZE_MAX / 4) return false;
  *scratch = {round_up(static_cast<size_t>(codes), kTensorAlignment), static_cast<size_t>(floats)};
  return true;
}

/// Rows of the weight one after the other, from the blocks of the file. A channel with a scale of 0 is one of zeros.
void unpack(const Tensor& weight, int8_t* rows) {
  const auto* blocks = reinterpret_cast<const int8_t*>(weight.data);
  const size_t columns = round_up(weight.width, kBlockColumns);
  for (size_t n = 0; n < weight.rows; ++n) {
    const int8_t* block_row = blocks + n / kBlockRows * kBlockRows * columns;
    for (size_t k = 0; k < weight.width; ++k) {
      const int8_t code = block_row[k / kBlockColumns * kBlockRows * kBlockColumns +
                                    n % kBlockRows * kBlockColumns + k % kBlockColumns];
      rows[n * weight.width + k] = weight.scales[n] == 0.0f ? int8_t{0} : code;
    }
  }
}

/// Makes the layers; what was made so far is in `parts`, whatever is returned. `why` as for create().
bool make_parts(const Params& p, const int8_t* rows_i8, Parts* parts, const char** why) {
  const DenseStep& step = p.step;
  const size_t channels = step.weight.rows;
  for (size_t first = 0; first < channels; first += p.part_channels) {
    DenseSpec spec;
    spec.depth = step.weight.width;
    spec.channels = smaller(p.part_channels, channels - first);
    spec.max_rows = step.x.rows;
    spec.x_stride = step.x.stride() / (is_i8(step) ? 1 : sizeof(float));
    spec.y_stride = channels;
    if (is_i8(step)) {
      spec.weight_i8 = rows_i8 + first * spec.depth;
      spec.weight_scales = step.weight.scales + first;
    } else {
      spec.weight_f32 = step.weight.f32(first);
    }
    if (step.bias != nullptr) spec.bias = step.bias + first;
    spec.x_scale = step.x.static_scale;
    spec.y_scale = p.y_scale;
    DenseLayer* layer = p.provider->create(spec, why);
    if (layer == nullptr) return false;
    parts->layers[parts->count++] = layer;
  }
  return true;
}

/// Everything that a library makes for this step, owned by the session from its first byte on.
Status create_layers(BindContext& context, Params& p) {
  const DenseProvider& provider = *p.provider;
  const size_t before = provider.taken_bytes();
  const char* why = nullptr;
  p.parts = new (std::nothrow) Parts();
  bool made = p.parts != nullptr;
  if (made) {
    p.owned.object = p.parts;
    p.owned.destroy = Parts::destroy;
    p.owned.provider = provider.name;
    context.own(p.owned);
    if (is_i8(p.step)) {
      const Tensor& weight = p.step.weight;
      auto* rows = static_cast<int8_t*>(std::malloc(size_t{weight.rows} * weight.width));
      made = rows != nullptr;
      if (made) {
        unpack(weight, rows);
        made = make_parts(p, rows, p.parts, &why);
      }
      std::free(rows);
    } else {
      made = make_parts(p, nullptr, p.parts, &why);
    }
    // Other threads may have freed more meanwhile.
    const size_t after = provider.taken_bytes();
    p.owned.bytes = after > before ? after - before : 0;
  }
  if (made) return Status::kOk;
  if (why != nullptr) {
    return context.fail("%s cannot make this layer: %s; use another backend", provider.name, why);
  }
  (void)context.fail("no memory for a layer of %s", provider.name);
  return Status::kOutOfMemory;
}

/// Floats of one row's channels [first, first + count) from the library's results.
void to_floats(const Params& p, const std::byte* codes, size_t row, size_t first, size_t count,
               float* y) {
  const DenseStep& step = p.step;
  const size_t start = row * step.y.width + first;
  if (p.provider->i8_result == DenseI8Result::kI8) {
    const auto* from = reinterpret_cast<const int8_t*>(codes) + start;
    for (size_t i = 0; i < count; ++i) y[i] = static_cast<float>(from[i]) * p.y_scale;
    return;
  }
  // As our own int8 kernels do it, so that an exact library gives their bits.
  const auto* from = reinterpret_cast<const int32_t*>(codes) + start;
  for (size_t i = 0; i < count; ++i) {
    const float scale = step.x.static_scale * step.weight.scales[first + i];
    y[i] = static_cast<float>(from[i]) * scale;
    if (step.bias != nullptr) y[i] += step.bias[first + i];
  }
}

/// Part `part` of `rows` rows from `row` on. `y` is row `row` as floats.
bool run_part(const Params& p, size_t row, size_t rows, size_t part, std::byte* codes, float* y) {
  const DenseStep& step = p.step;
  const size_t width = step.y.width;
  const size_t first = part * p.part_channels;
  const size_t count = smaller(p.part_channels, width - first);
  const size_t code_bytes = p.provider->i8_result == DenseI8Result::kI8 ? 1 : 4;
  void* target = is_i8(step) ? static_cast<void*>(codes + first * code_bytes) : y + first;
  if (!p.parts->layers[part]->run(step.x.data + row * step.x.stride(), rows, target)) return false;
  for (size_t r = 0; r < rows; ++r) {
    float* values = y + r * width + first;
    if (is_i8(step)) to_floats(p, codes, r, first, count, values);
    if (step.activation.activation != Activation::kNone) {
      p.activate(step.activation, values, count, values);
    }
    if (step.residual != nullptr) {
      p.add(values, step.residual + (row + r) * width + first, count, values);
    }
  }
  return true;
}

Status run_dense(RunContext& context, const void* params) {
  const auto& p = *static_cast<const Params*>(params);
  Tensor y = p.step.y;
  const bool to_i8 = y.type == DataType::kI8;
  float* output = to_i8 ? nullptr : y.data != nullptr ? y.f32() : context.caller_output;
  Scratch scratch;
  (void)scratch_of(*p.provider, p.step, &scratch);
  auto* floats = reinterpret_cast<float*>(context.scratch + scratch.codes);
  const size_t rows = context.rows(p.step.x);
  // Floats that go straight to their place need no tiles.
  const size_t most = to_i8 || is_i8(p.step) ? kTileRows : rows;
  std::atomic<bool> good{true};
  for (size_t row = 0; row < rows && good; row += most) {
    const size_t tile = smaller(most, rows - row);
    float* target = to_i8 ? floats : output + row * y.width;
    parallel_for(context.pool, p.parts->count, [&](size_t part, size_t) {
      if (!run_part(p, row, tile, part, context.scratch, target)) good = false;
    });
    if (!to_i8) continue;
    parallel_for(context.pool, tile, [&](size_t r, size_t) {
      quantize_into(p.quantize, floats + r * y.width, y, row + r);
    });
  }
  if (good) return Status::kOk;
  return fail(context.error, Status::kInternal, "%s failed to compute '%.60s'", p.provider->name,
              y.name);
}

}  // namespace

Status bind_dense(BindContext& context, const DenseStep& step, RunFunction* run) {
  const DenseProvider* provider = provider_of(context.backend());
  if (provider == nullptr || !can_serve(*provider, step)) return Status::kOk;

  auto& p = context.params<Params>();
  p.step = step;
  p.provider = provider;
  p.y_scale = result_scale(step);
  const size_t channels = step.weight.rows;
  const size_t threads = provider->parallel ? smaller(context.threads(), kMaxParts) : 1;
  const size_t parts = smaller(threads, ceil_div(channels, kLeastChannels));
  p.part_channels = round_up(ceil_div(channels, parts), kPartChannels);
  p.activate = pick_activate_kernel(false);
  p.add = pick_add_kernel(false);
  p.quantize = pick_quantize_kernel(false);
  Scratch scratch;
  if (!scratch_of(*provider, step, &scratch)) {
    return context.fail("needs more scratch than there is address space");
  }
  // Scratch lies behind the activations, x among them, so what a library reads too much is still the arena's.
  const size_t bytes = scratch.codes + scratch.floats;
  context.request_scratch(bytes > provider->overread ? bytes : provider->overread);
  *run = run_dense;
  if (!context.placing()) {
    const size_t one = is_i8(step) ? 1 : sizeof(float);
    context.expect_library_bytes(channels * (step.weight.width * one + sizeof(float)));
    return Status::kOk;
  }
  if (const void* lender = context.lender_params(); lender != nullptr) {
    p.parts = static_cast<const Params*>(lender)->parts;
    return Status::kOk;
  }
  return create_layers(context, p);
}

}  // namespace oxbow
