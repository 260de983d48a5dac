#include "ops/adaptive_softmax/adaptive_softmax.h"

#include <cstring>

#include "ops/common/checks.h"

namespace oxbow {
namespace {

struct Params {
  Tensor head, y;
  Tensor clusters[kMaxClusters];
  size_t count;
  AdaptiveSoftmaxKernel kernel;
};

Status run_adaptive_softmax(RunContext& context, const void* params) {
  const auto& p = *static_cast<const Params*>(params);
  Tensor output = p.y;
  float* first = output.data != nullptr ? output.f32() : context.caller_output;
  const size_t words = p.head.width - p.count;
  parallel_for(context.pool, context.rows(p.head), [&](size_t row, size_t) {
    float* y = first + row * output.width;
    // The head's last columns go where the clusters' words will be: each has at least one.
    p.kernel(p.head.f32(row), p.head.width, 0.0f, y);
    y += words;
    float bases[kMaxClusters];
    std::memcpy(bases, y, p.count * sizeof(float));
    for (size_t i = 0; i < p.count; ++i) {
      p.kernel(p.clusters[i].f32(row), p.clusters[i].width, bases[i], y);
      y += p.clusters[i].width;
    }
  });
  return Status::kOk;
}

AdaptiveSoftmaxKernel pick_kernel(bool reference_only) {
#define OXB_KERNEL(isa, fn) \
  if (may_use(isa, reference_only)) return fn;
#include "ops/adaptive_softmax/kernels.inc"
#undef OXB_KERNEL
  return nullptr;
}

}  // namespace

Status bind_adaptive_softmax(BindContext& context, RunFunction* run) {
  const size_t inputs = context.input_count();
  if (inputs == 0 || inputs > 1 + kMaxClusters || context.output_count() != 1) {
    return context.fail("has %zu inputs and %zu outputs, expected 1 to %zu and 1", inputs,
                        context.output_count(), 1 + kMaxClusters);
  }
  auto& p = context.params<Params>();
  p.head = context.input(0);
  p.y = context.output_or_caller(0);
  p.count = inputs - 1;
  p.kernel = pick_kernel(context.reference_only());
  OXB_TRY(check_f32(context, p.head));
  OXB_TRY(check_f32(context, p.y));
  OXB_TRY(check_same_rows(context, p.head, p.y));
  if (p.head.width <= p.count) {
    return context.fail("tensor '%s' is %s, expected words besides its %zu clusters", p.head.name,
                        describe(p.head).text, p.count);
  }
  uint64_t words = p.head.width - p.count;
  for (size_t i = 0; i < p.count; ++i) {
    p.clusters[i] = context.input(1 + i);
    OXB_TRY(check_f32(context, p.clusters[i]));
    OXB_TRY(check_same_rows(context, p.head, p.clusters[i]));
    if (p.clusters[i].width == 0) {
      return context.fail("tensor '%s' is %s, expected words", p.clusters[i].name,
                          describe(p.clusters[i]).text);
    }
    words += p.clusters[i].width;
  }
  if (p.y.width != words) {
    return context.fail("tensor '%s' is %s, expected a width of %llu", p.y.name, describe(p.y).text,
                        static_cast<unsigned long long>(words));
  }
  *run = run_adaptive_softmax;
  return Status::kOk;
}

}  // namespace oxbow
