#include "ops/scan/scan.h"

#include "ops/common/checks.h"
#include "schema/model_generated.h"

namespace oxbow {
namespace {

constexpr bool same(schema::ScanRule a, ScanRule b) {
  return static_cast<int>(a) == static_cast<int>(b);
}
static_assert(same(schema::ScanRule::WeightedAverage, ScanRule::kWeightedAverage));
static_assert(same(schema::ScanRule::Selective, ScanRule::kSelective));
static_assert(same(schema::ScanRule::GatedLinear, ScanRule::kGatedLinear));
static_assert(same(schema::ScanRule::ExponentialGates, ScanRule::kExponentialGates));
static_assert(same(schema::ScanRule::MAX, ScanRule::kExponentialGates));

/// What an input is: the schema's [T, C], [T, N], [1, C], [N, C], and the bonus of a window.
enum class Shape : uint8_t { kRows, kDepthRows, kVector, kMatrix, kBonus };

struct Rule {
  size_t inputs;
  Shape in[kScanInputs];
  size_t outputs;
  size_t states;
  Shape state;
};

// By ScanRule.
constexpr Rule kRules[] = {
    {4, {Shape::kRows, Shape::kRows, Shape::kVector, Shape::kVector}, 1, 3, Shape::kVector},
    {6,
     {Shape::kRows, Shape::kRows, Shape::kDepthRows, Shape::kDepthRows, Shape::kMatrix,
      Shape::kVector},
     1,
     1,
     Shape::kMatrix},
    {4, {Shape::kRows, Shape::kRows, Shape::kRows, Shape::kVector}, 1, 1, Shape::kVector},
    {2, {Shape::kRows, Shape::kRows}, 3, 1, Shape::kVector},
};

struct Params {
  Tensor x;
  /// Pointers and sizes; what changes from run to run is filled in there.
  ScanArgs args;
  ScanKernel kernel;
  /// Of the past; -1: there is none.
  int32_t ring;
};

Status run_scan(RunContext& context, const void* params) {
  const auto& p = *static_cast<const Params*>(params);
  ScanArgs args = p.args;
  args.rows = context.rows(p.x);
  if (args.rows == 0) return Status::kOk;
  args.starts = context.position == 0;
  args.position = context.position;
  if (p.ring >= 0) args.ring = context.rings[p.ring];
  const size_t width = args.width;
  parallel_for(context.pool, ceil_div(width, kScanBlock), [&](size_t block, size_t) {
    const size_t begin = block * kScanBlock;
    p.kernel(args, begin, width - begin < kScanBlock ? width : begin + kScanBlock);
  });
  return Status::kOk;
}

ScanKernel pick_kernel(bool reference_only) {
#define OXB_KERNEL(isa, fn) \
  if (may_use(isa, reference_only)) return fn;
#include "ops/scan/kernels.inc"
#undef OXB_KERNEL
  return nullptr;
}

Status check_rows(BindContext& context, const Tensor& tensor, size_t rows) {
  if (tensor.rows_symbol < 0 && tensor.rows == rows && rows != 0) return Status::kOk;
  return context.fail("tensor '%s' is %s, expected %zu rows in every run", tensor.name,
                      describe(tensor).text, rows == 0 ? size_t{1} : rows);
}

Status check_shape(BindContext& context, const Tensor& tensor, Shape shape, const Tensor& x,
                   const Params& p) {
  OXB_TRY(check_type(context, tensor, DataType::kF32));
  switch (shape) {
    case Shape::kRows:
      OXB_TRY(check_width(context, tensor, x.width));
      return check_same_rows(context, x, tensor);
    case Shape::kDepthRows:
      OXB_TRY(check_width(context, tensor, p.args.depth));
      return check_same_rows(context, x, tensor);
    case Shape::kVector:
      OXB_TRY(check_width(context, tensor, x.width));
      return check_rows(context, tensor, 1);
    case Shape::kMatrix:
    case Shape::kBonus: {
      const bool bonus = shape == Shape::kBonus;
      OXB_TRY(check_width(context, tensor, bonus ? p.args.window : x.width));
      return check_rows(context, tensor, bonus && tensor.rows != 0 ? tensor.rows : p.args.depth);
    }
  }
  return Status::kOk;
}

Status check_past(BindContext& context, const Tensor& past, const Tensor& x, const Params& p) {
  if (past.ring < 0 || past.rows_symbol >= 0 || past.pinned != 0 ||
      past.rows != p.args.window - 1 || context.ring_capacity(past.ring) != past.rows) {
    return context.fail("tensor '%s' is %s, expected rows in a ring of %zu, none pinned", past.name,
                        describe(past).text, p.args.window - 1);
  }
  return check_width(context, past, x.width);
}

/// The rings of keys and values before the run.
Status bind_past(BindContext& context, size_t first_input, const Tensor& x, Params* p) {
  for (size_t i = 0; i < 2; ++i) {
    const Tensor past = context.input(first_input + i);
    OXB_TRY(check_past(context, past, x, *p));
    if (i == 1 && past.ring != p->ring) {
      return context.fail("keys and values before the run are in different rings");
    }
    p->ring = past.ring;
    p->args.past[i] = past.f32();
  }
  return Status::kOk;
}

/// States are updated in place: the same tensor on both sides.
Status bind_states(BindContext& context, const Rule& rule, size_t first_input, const Tensor& x,
                   Params* p) {
  for (size_t i = 0; i < rule.states; ++i) {
    const auto in = static_cast<flatbuffers::uoffset_t>(first_input + i);
    const auto out = static_cast<flatbuffers::uoffset_t>(rule.outputs + i);
    Tensor state = context.output(out);
    if (context.step().inputs()->Get(in) != context.step().outputs()->Get(out)) {
      return context.fail("tensor '%s' is written and '%s' read, expected one state", state.name,
                          context.input(in).name);
    }
    OXB_TRY(check_shape(context, state, rule.state, x, *p));
    p->args.state[i] = state.f32();
  }
  return Status::kOk;
}

}  // namespace

// What there is behind x and y, and its shapes, is the rule's.
constexpr OpSignature kScanSignature = {
    .options = schema::OpOptions::ScanOptions,
    .inputs = {{.name = "x"},
               {.name = "rows, vectors, memories and states",
                .rows = Rows::anywhere(),
                .least = 2,
                .most = 8}},
    .outputs = {{.name = "y", .width = Width::of(0), .rows = Rows::of(0)},
                {.name = "more rows and states", .least = 1, .most = 3}},
};

Status bind_scan(BindContext& context, RunFunction* run) {
  OXB_TRY(check_signature(context, kScanSignature));
  const auto* options = context.step().options_as_ScanOptions();
  const auto index = static_cast<uint32_t>(options->rule());
  if (index >= std::size(kRules)) {
    return context.fail("rule is %u, expected at most %zu", index, std::size(kRules) - 1);
  }
  const Rule& rule = kRules[index];
  const uint32_t window = options->window();
  const bool averages = options->rule() == schema::ScanRule::WeightedAverage;
  if (window == 0 || window > INT32_MAX || (window != 1 && !averages)) {
    return context.fail("window is %u, expected 1, or more of a weighted average", window);
  }
  const size_t past = window == 1 ? 0 : 2;
  OXB_TRY(check_counts(context, rule.inputs + past + rule.states, rule.outputs + rule.states));

  auto& p = context.params<Params>();
  p.x = context.input(0);
  p.args.rule = static_cast<ScanRule>(index);
  p.args.width = p.x.width;
  p.args.window = window;
  p.ring = -1;
  if (options->rule() == schema::ScanRule::Selective) p.args.depth = context.input(2).width;
  for (size_t i = 0; i < rule.inputs; ++i) {
    const Tensor tensor = context.input(i);
    const bool bonus = averages && i == 3;
    OXB_TRY(check_shape(context, tensor, bonus && past != 0 ? Shape::kBonus : rule.in[i], p.x, p));
    p.args.in[i] = tensor.f32();
    if (bonus) p.args.last_position = tensor.rows - 1;
  }
  if (past != 0) OXB_TRY(bind_past(context, rule.inputs, p.x, &p));
  for (size_t i = 0; i < rule.outputs; ++i) {
    Tensor y = context.output(i);
    OXB_TRY(check_shape(context, y, Shape::kRows, p.x, p));
    p.args.out[i] = y.f32();
  }
  OXB_TRY(bind_states(context, rule, rule.inputs + past, p.x, &p));
  p.kernel = pick_kernel(context.reference_only());
  *run = run_scan;
  return Status::kOk;
}

}  // namespace oxbow
