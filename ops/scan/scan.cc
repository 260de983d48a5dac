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

/// How many of each line of the signature there are besides x and y, by ScanRule.
struct Rule {
  uint8_t rows = 0, depth_rows = 0, matrices = 0, vectors = 0, bonuses = 0;
  uint8_t vector_states = 0, matrix_states = 0, more_rows = 0;

  constexpr size_t inputs() const { return 1 + rows + depth_rows + matrices + vectors + bonuses; }
  constexpr size_t outputs() const { return 1 + more_rows; }
  constexpr size_t states() const { return vector_states + matrix_states; }
};
constexpr Rule kRules[] = {
    {.rows = 1, .vectors = 1, .bonuses = 1, .vector_states = 3},
    {.rows = 1, .depth_rows = 2, .matrices = 1, .vectors = 1, .matrix_states = 1},
    {.rows = 2, .vectors = 1, .vector_states = 1},
    {.rows = 1, .vector_states = 1, .more_rows = 2},
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

const schema::ScanOptions& options_of(const schema::Step& step) {
  return *step.options_as_ScanOptions();
}
const Rule& rule_of(const schema::Step& step) {
  return kRules[static_cast<size_t>(options_of(step).rule())];
}

Status check_options(BindContext& context) {
  const schema::ScanOptions& options = options_of(context.step());
  const auto index = static_cast<uint32_t>(options.rule());
  if (index >= std::size(kRules)) {
    return context.fail("rule is %u, expected at most %zu", index, std::size(kRules) - 1);
  }
  const uint32_t window = options.window();
  const bool averages = options.rule() == schema::ScanRule::WeightedAverage;
  if (window == 0 || window > INT32_MAX || (window != 1 && !averages)) {
    return context.fail("window is %u, expected 1, or more of a weighted average", window);
  }
  return Status::kOk;
}

template <uint8_t Rule::*kCount>
size_t count_of(const schema::Step& step) {
  return rule_of(step).*kCount;
}
size_t has_past(const schema::Step& step) { return options_of(step).window() == 1 ? 0 : 1; }

// Lines of inputs.
constexpr size_t kDepthRows = 2, kBonus = 5, kPastKeys = 6, kVectorStates = 8, kMatrixState = 9;

uint64_t depth(const StepView& view) { return view.input(kDepthRows).width; }
uint64_t past_rows(const StepView& view) { return options_of(view.step()).window() - 1; }
/// A row for each position of a stream with a window, and one row for all channels without.
uint64_t bonus_width(const StepView& view) {
  return has_past(view.step()) != 0 ? options_of(view.step()).window() : view.input(0).width;
}
uint64_t bonus_rows(const StepView& view) {
  return has_past(view.step()) != 0 && view.input(kBonus).rows != 0 ? view.input(kBonus).rows : 1;
}

}  // namespace

constexpr OpSignature kScanSignature = {
    .options = schema::OpOptions::ScanOptions,
    .check_options = check_options,
    .inputs = {{.name = "x"},
               {.name = "rows",
                .width = Width::of(0),
                .rows = Rows::of(0),
                .count = count_of<&Rule::rows>},
               {.name = "rows as wide as the state is deep",
                .width = Width::told(depth),
                .rows = Rows::of(0),
                .count = count_of<&Rule::depth_rows>},
               {.name = "matrix",
                .width = Width::of(0),
                .rows = Rows::told(depth),
                .count = count_of<&Rule::matrices>},
               {.name = "vector",
                .width = Width::of(0),
                .rows = Rows::one(),
                .count = count_of<&Rule::vectors>},
               {.name = "bonus",
                .width = Width::told(bonus_width),
                .rows = Rows::told(bonus_rows),
                .count = count_of<&Rule::bonuses>},
               {.name = "keys before the run",
                .width = Width::of(0),
                .rows = Rows::ring(past_rows),
                .count = has_past},
               {.name = "values before the run",
                .width = Width::of(0),
                .rows = Rows::same_ring(kPastKeys),
                .count = has_past},
               {.name = "states",
                .role = Role::kState,
                .width = Width::of(0),
                .rows = Rows::one(),
                .count = count_of<&Rule::vector_states>},
               {.name = "state",
                .role = Role::kState,
                .width = Width::of(0),
                .rows = Rows::told(depth),
                .count = count_of<&Rule::matrix_states>}},
    .outputs = {{.name = "y", .width = Width::of(0), .rows = Rows::of(0)},
                {.name = "more rows",
                 .width = Width::of(0),
                 .rows = Rows::of(0),
                 .count = count_of<&Rule::more_rows>},
                {.name = "states",
                 .role = Role::kState,
                 .rows = Rows::fixed(),
                 .state_of = kVectorStates,
                 .count = count_of<&Rule::vector_states>},
                {.name = "state",
                 .role = Role::kState,
                 .rows = Rows::fixed(),
                 .state_of = kMatrixState,
                 .count = count_of<&Rule::matrix_states>}},
};

Status bind_scan(BindContext& context, RunFunction* run) {
  OXB_TRY(check_signature(context, kScanSignature));
  const schema::ScanOptions& options = options_of(context.step());
  const Rule& rule = rule_of(context.step());
  auto& p = context.params<Params>();
  p.x = context.input(0);
  p.args.rule = static_cast<ScanRule>(options.rule());
  p.args.width = p.x.width;
  p.args.window = options.window();
  p.ring = -1;
  if (rule.depth_rows != 0) p.args.depth = context.input(1 + size_t{rule.rows}).width;
  size_t next = 0;
  for (; next < rule.inputs(); ++next) p.args.in[next] = context.input(next).f32();
  // The bonus is the last of them.
  if (rule.bonuses != 0) p.args.last_position = context.input(next - 1).rows - 1;
  for (size_t i = 0; i < 2 * has_past(context.step()); ++i) {
    const Tensor past = context.input(next++);
    p.ring = past.ring;
    p.args.past[i] = past.f32();
  }
  for (size_t i = 0; i < rule.outputs(); ++i) p.args.out[i] = Tensor(context.output(i)).f32();
  for (size_t i = 0; i < rule.states(); ++i) {
    p.args.state[i] = Tensor(context.output(rule.outputs() + i)).f32();
  }
  p.kernel = pick_kernel(context.reference_only());
  *run = run_scan;
  return Status::kOk;
}

}  // namespace oxbow
