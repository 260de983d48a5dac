#include "ops/convolution/convolution.h"

#include <algorithm>
#include <cstring>

#include "ops/common/checks.h"
#include "runtime/base/math.h"
#include "schema/model_generated.h"

namespace oxbow {
namespace {

struct Params {
  Tensor x, taps, memory, y;
  ConvolutionParams sizes;
  ConvolutionKernel kernel;
  size_t left;
  bool dynamic, softmax, has_memory;
  /// Null: none.
  const float* bias;
  /// In floats. Scratch is the memory's rows in float, oldest first, then taps after softmax: once if
  /// they are weights, else a row for each thread.
  size_t memory_floats, taps_floats;
};

void softmax_taps(const float* taps, const ConvolutionParams& sizes, float* out) {
  for (size_t head = 0; head < sizes.heads; ++head, taps += sizes.taps, out += sizes.taps) {
    const float most = max_f32(sizes.taps, -__builtin_inff(), [=](size_t a) { return taps[a]; });
    for (size_t a = 0; a < sizes.taps; ++a) out[a] = exp_f32(taps[a] - most);
    const float sum = sum_f32(sizes.taps, [=](size_t a) { return out[a]; });
    for (size_t a = 0; a < sizes.taps; ++a) out[a] /= sum;
  }
}

void load_row(const Tensor& memory, size_t slot, float* out) {
  if (memory.type == DataType::kF32) {
    std::memcpy(out, memory.f32(slot), memory.stride());
    return;
  }
  const size_t group = memory.width / memory.scale_groups;
  const int8_t* codes = memory.i8(slot);
  const float* scales = memory.row_scales(slot);
  for (size_t g = 0; g < memory.scale_groups; ++g) {
    for (size_t i = g * group; i < (g + 1) * group; ++i) {
      out[i] = static_cast<float>(codes[i]) * scales[g];
    }
  }
}

Status run_convolution(RunContext& context, const void* params) {
  const auto& p = *static_cast<const Params*>(params);
  Tensor y = p.y;
  const size_t width = p.sizes.width;
  const size_t rows = context.rows(p.x);
  auto* past = reinterpret_cast<float*>(context.scratch);
  float* scratch_taps = past + p.memory_floats;

  size_t held = 0;
  if (p.has_memory) {
    const RingPosition& ring = context.rings[p.memory.ring];
    held = ring.count;
    for (size_t r = 0; r < held; ++r) {
      load_row(p.memory, ring_slot(ring, p.memory.rows, 0, r), past + r * width);
    }
  }
  if (p.softmax && !p.dynamic) softmax_taps(p.taps.f32(), p.sizes, scratch_taps);

  parallel_for(context.pool, rows, [&](size_t row, size_t worker) {
    const float* taps = p.dynamic ? p.taps.f32(row) : p.taps.f32();
    if (p.softmax && p.dynamic) {
      float* own = scratch_taps + worker * p.taps_floats;
      softmax_taps(taps, p.sizes, own);
      taps = own;
    } else if (p.softmax) {
      taps = scratch_taps;
    }
    // In the line [ left rows before the run | the run ] the taps are [row, row + count). The held
    // rows are the newest of the left ones.
    const size_t begin = std::max(row, p.left - held);
    const size_t end = std::min(row + p.sizes.taps, p.left + rows);
    const size_t middle = std::clamp(p.left, begin, std::max(begin, end));
    float* out = y.f32(row);
    if (p.bias == nullptr) {
      std::memset(out, 0, y.stride());
    } else {
      std::memcpy(out, p.bias, y.stride());
    }
    if (begin < middle) {
      p.kernel(past + (begin - (p.left - held)) * width, middle - begin, taps + (begin - row),
               p.sizes, out);
    }
    if (middle < end) {
      p.kernel(p.x.f32(middle - p.left), end - middle, taps + (middle - row), p.sizes, out);
    }
  });
  return Status::kOk;
}

ConvolutionKernel pick_kernel(bool reference_only) {
#define OXB_KERNEL(isa, fn) \
  if (may_use(isa, reference_only)) return fn;
#include "ops/convolution/kernels.inc"
#undef OXB_KERNEL
  return nullptr;
}

const schema::ConvolutionOptions& options_of(const StepView& view) {
  return *view.step().options_as_ConvolutionOptions();
}

Status check_sizes(BindContext& context) {
  const auto& options = *context.step().options_as_ConvolutionOptions();
  if (options.heads() == 0 || options.taps() == 0) {
    return context.fail("has %u heads of %u taps, expected at least 1 of each", options.heads(),
                        options.taps());
  }
  // So that a row plus this fits into a size_t of 32 bits.
  if (options.left() > INT32_MAX) return context.fail("reaches back %u rows", options.left());
  return Status::kOk;
}

/// A matrix, or a row of its own for each row of x.
Place place_of_taps(const StepView& view, size_t) {
  const auto& options = options_of(view);
  if (options.dynamic()) {
    return {.width = Width::exactly(uint64_t{options.heads()} * options.taps()),
            .rows = Rows::of(0)};
  }
  return {.role = Role::kWeight,
          .width = Width::exactly(options.taps()),
          .rows = Rows::exactly(options.heads())};
}

uint64_t left(const StepView& view) { return options_of(view).left(); }

size_t has_memory(const schema::Step& step) {
  return step.options_as_ConvolutionOptions()->has_memory();
}

size_t has_bias(const schema::Step& step) {
  return step.options_as_ConvolutionOptions()->has_bias();
}

}  // namespace

constexpr OpSignature kConvolutionSignature = {
    .options = schema::OpOptions::ConvolutionOptions,
    .check_options = check_sizes,
    .inputs = {{.name = "x"},
               {.name = "taps", .role = Role::kWeight, .each = place_of_taps},
               {.name = "memory",
                .role = Role::kState,
                .types = kF32 | kI8,
                .width = Width::of(0),
                .rows = Rows::ring(left),
                .count = has_memory},
               {.name = "bias",
                .role = Role::kWeight,
                .width = Width::of(0),
                .rows = Rows::one(),
                .count = has_bias}},
    .outputs = {{.name = "y", .width = Width::of(0), .rows = Rows::of(0)}},
};

Status bind_convolution(BindContext& context, RunFunction* run) {
  OXB_TRY(check_signature(context, kConvolutionSignature));
  const auto* options = context.step().options_as_ConvolutionOptions();
  auto& p = context.params<Params>();
  p.x = context.input(0);
  p.taps = context.input(1);
  p.y = context.output(0);
  if (p.x.width % options->heads() != 0) {
    return context.fail("has %u heads, expected a divisor of %u", options->heads(), p.x.width);
  }
  p.has_memory = options->has_memory();
  if (p.has_memory) p.memory = context.input(2);
  p.bias = nullptr;
  if (options->has_bias()) {
    p.bias = context.input(p.has_memory ? 3 : 2).f32();
  }
  p.sizes = {p.x.width, options->heads(), options->taps()};
  p.kernel = pick_kernel(context.reference_only());
  p.left = options->left();
  p.dynamic = options->dynamic();
  p.softmax = options->softmax();

  // Whole cache lines for each part, so that no two threads share one.
  constexpr uint64_t kLine = kTensorAlignment / sizeof(float);
  uint64_t memory_floats = 0, taps_floats = 0, all_taps = 0, floats = 0, bytes = 0;
  bool fits = true;
  if (p.has_memory) {
    fits = checked_align(uint64_t{p.x.width} * options->left(), kLine, &memory_floats);
  }
  if (p.softmax) {
    fits = fits &&
           checked_align(uint64_t{options->heads()} * options->taps(), kLine, &taps_floats) &&
           checked_mul(taps_floats, p.dynamic ? context.threads() : 1, &all_taps);
  }
  fits = fits && checked_add(memory_floats, all_taps, &floats) &&
         checked_mul(floats, sizeof(float), &bytes) && bytes <= SIZE_MAX / 2;
  if (!fits) return context.fail("needs more scratch than there is address space");
  p.memory_floats = static_cast<size_t>(memory_floats);
  p.taps_floats = static_cast<size_t>(taps_floats);
  context.request_scratch(static_cast<size_t>(bytes));
  *run = run_convolution;
  return Status::kOk;
}

}  // namespace oxbow
