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

constexpr OpSignature kAdaptiveSoftmaxSignature = {
    .by_row = true,
    .inputs = {{.name = "head"},
               {.name = "cluster", .rows = Rows::of(0), .least = 0, .most = kMaxClusters}},
    .outputs = {{.name = "y", .rows = Rows::of(0), .to_caller = true}},
};

Status bind_adaptive_softmax(BindContext& context, RunFunction* run) {
  OXB_TRY(check_signature(context, kAdaptiveSoftmaxSignature));
  auto& p = context.params<Params>();
  p.head = context.input(0);
  p.y = context.output_or_caller(0);
  p.count = context.input_count() - 1;
  p.kernel = pick_kernel(context.reference_only());
  if (p.head.width <= p.count) {
    return context.fail("tensor '%s' is %s, expected words besides its %zu clusters", p.head.name,
                        describe(p.head).text, p.count);
  }
  uint64_t words = p.head.width - p.count;
  for (size_t i = 0; i < p.count; ++i) {
    p.clusters[i] = context.input(1 + i);
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
