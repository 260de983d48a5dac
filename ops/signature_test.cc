// What bind must refuse because of an op's signature, for every op: steps are made from the signature, and each rule of
// it is broken in turn. What options forbid is told by the tests of each op.

#include "ops/common/signature.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "ops/common/checks.h"
#include "ops/testing/op_runner.h"
#include "ops/traits.h"

namespace oxbow {
namespace {

using testing::OpRunner;
using testing::TestTensor;

constexpr uint32_t kTokens = 6, kWidth = 24, kTableRows = 10, kCapacity = 5;
constexpr int16_t kTokenSymbol = 0, kOwnSymbol = 1;

const OpSignature* g_signature = nullptr;
Status bind_signature(BindContext& context, RunFunction* run) {
  *run = [](RunContext&, const void*) { return Status::kOk; };
  return check_signature(context, *g_signature);
}

/// What is not 0 where 0 makes no sense.
void fill_in(schema::OpOptionsUnion& options) {
  if (auto* attention = options.AsAttentionOptions()) {
    attention->heads = attention->kv_heads = attention->sources = 1;
  }
  if (auto* recurrence = options.AsRecurrenceOptions()) {
    recurrence->heads = recurrence->key_heads = 1;
  }
  if (auto* convolution = options.AsConvolutionOptions()) {
    convolution->heads = 2;
    convolution->taps = 3;
  }
  if (auto* hash = options.AsHashBucketsOptions()) {
    hash->heads = 1;
    hash->buckets = {2};
  }
  if (auto* patches = options.AsPatchesOptions()) {
    patches->channels = patches->height = 2;
    patches->width = 3;
    patches->patch_height = patches->patch_width = patches->stride_y = patches->stride_x = 1;
  }
  if (auto* landmarks = options.AsLandmarkInverseOptions()) landmarks->heads = 1;
  if (auto* most_used = options.AsMostUsedOptions()) most_used->heads = 1;
  if (auto* routed = options.AsRoutedLinearOptions()) routed->experts = 1;
}

/// The default options, filled in.
void set_default_options(const OpSignature& signature, schema::StepT* step) {
  if (signature.options == schema::OpOptions::NONE) return;
  flatbuffers::FlatBufferBuilder builder;
  builder.Finish(flatbuffers::Offset<void>(builder.EndTable(builder.StartTable())));
  const void* table = flatbuffers::GetRoot<flatbuffers::Table>(builder.GetBufferPointer());
  step->options.type = signature.options;
  step->options.value = schema::OpOptionsUnion::UnPack(table, signature.options, nullptr);
  fill_in(step->options);
}

/// A step that the signature allows, with these options.
class Example {
 public:
  Example(const OpSignature& signature, testing::BindFunction bind) : op(bind), s_(signature) {
    prepare(op);
    flatbuffers::FlatBufferBuilder builder;
    builder.Finish(schema::Step::Pack(builder, &op.step));
    const auto& step = *flatbuffers::GetRoot<schema::Step>(builder.GetBufferPointer());
    for (const Place& place : s_.inputs) {
      starts_.push_back(op.inputs.size());
      add_all(place, step, op.inputs);
    }
    for (const Place& place : s_.outputs) add_all(place, step, op.outputs);
    // What functions of the signature tell needs a step that is there.
    OpRunner measured(bind_told_numbers);
    prepare(measured);
    measured.inputs = op.inputs;
    measured.outputs = op.outputs;
    g_example = this;
    EXPECT_EQ(measured.bind(), Status::kOk) << measured.message();
  }

  Tensor& tensor(size_t index) { return *tensors[index]; }

  OpRunner op;
  std::vector<std::unique_ptr<TestTensor>> tensors;
  /// The line of each tensor.
  std::vector<const Place*> places;
  /// Its number in the line.
  std::vector<size_t> repetitions;
  /// Of tensors that are told one by one.
  std::deque<Place> told;

 private:
  void prepare(OpRunner& runner) const {
    runner.symbols = runner.symbol_maxima = {kTokens, kTokens};
    runner.settable_symbols = {false, true};
    runner.rings = {{}, {}};
    runner.ring_capacities = {kCapacity, kCapacity};
    set_default_options(s_, &runner.step);
  }

  static Status bind_told_numbers(BindContext& context, RunFunction* run) {
    *run = [](RunContext&, const void*) { return Status::kOk; };
    const StepView view(context, g_example->starts_.data());
    for (size_t i = 0; i < g_example->places.size(); ++i) {
      const Place& place = *g_example->places[i];
      Tensor& tensor = g_example->tensor(i);
      if (place.each != nullptr)
        g_example->follow(place.each(view, g_example->repetitions[i]), i, view);
      if (place.width.kind == Width::kTold) {
        tensor.width = static_cast<uint32_t>(place.width.number(view));
      }
      if (place.rows.number != nullptr) {
        tensor.rows = static_cast<uint32_t>(place.rows.number(view));
      }
    }
    return Status::kOk;
  }

  /// What is told of a tensor in place of its line, whose numbers of inputs are places in the step's list.
  void follow(const Place& place, size_t index, const StepView& view) {
    Tensor& one = tensor(index);
    if (place.width.kind == Width::kExactly) one.width = static_cast<uint32_t>(place.width.factor);
    if (place.width.kind == Width::kTimes) one.width = view.at(place.width.input).width;
    if (place.rows.kind == Rows::kExactly) {
      one.rows = place.rows.rows;
      one.rows_symbol = -1;
    } else if (place.rows.kind == Rows::kSame) {
      one.rows = view.at(place.rows.input).rows;
      one.rows_symbol = view.at(place.rows.input).rows_symbol;
    }
    told.push_back(place);
    told.back().name = places[index]->name;
    told.back().each = places[index]->each;
    places[index] = &told.back();
  }

  void add_all(const Place& place, const schema::Step& step, std::vector<TestTensor*>& list) {
    const size_t least = std::max<size_t>(place.least, 1);
    const size_t count = place.count != nullptr ? place.count(step) : least;
    for (size_t i = 0; i < count; ++i) {
      if (place.state_of >= 0) {
        list.push_back(op.inputs[starts_[static_cast<size_t>(place.state_of)] + i]);
        continue;
      }
      add(place);
      list.push_back(tensors.back().get());
      places.push_back(&place);
      repetitions.push_back(i);
    }
  }

  uint32_t width(const Place& place) const {
    if (place.types == kI32) return 1;
    switch (place.width.kind) {
      case Width::kExactly:
        return static_cast<uint32_t>(place.width.factor);
      case Width::kTimes:
        return static_cast<uint32_t>(place.width.factor) * width(s_.input(place.width.input));
      case Width::kRowsOf:
        return rows(s_.input(place.width.input));
      case Width::kAny:
      case Width::kTold:
        break;
    }
    return kWidth;
  }

  /// The rule of its rows: that of the input whose rows it has.
  Rows rule(const Place& place) const {
    const Place& like = s_.input(place.rows.input);
    return place.rows.kind == Rows::kSame && &like != &place ? rule(like) : place.rows;
  }

  uint32_t rows(const Place& place) const {
    const Rows::Kind kind = rule(place).kind;
    if (place.rows.in_ring()) return kCapacity;
    if (kind == Rows::kExactly) return rule(place).rows;
    return kind == Rows::kFixed ? kTableRows : kTokens;
  }

  void add(const Place& place) {
    const bool f32 = (place.types & kF32) != 0, i32 = !f32 && (place.types & kI32) != 0;
    const DataType type = f32 ? DataType::kF32 : i32 ? DataType::kI32 : DataType::kI8;
    tensors.push_back(std::make_unique<TestTensor>(place.name, type, Layout::kRowMajor, rows(place),
                                                   width(place), f32 || i32 ? 0 : 1));
    TestTensor& tensor = *tensors.back();
    const Rows::Kind kind = rule(place).kind;
    if (place.rows.in_ring()) {
      tensor.ring = 0;
    } else if (kind == Rows::kCounted || kind == Rows::kCountedOrFixed) {
      tensor.rows_symbol = kOwnSymbol;
    } else if (kind == Rows::kAny || kind == Rows::kAnywhere || kind == Rows::kSame ||
               kind == Rows::kRoom) {
      tensor.rows_symbol = kTokenSymbol;
    }
    if (type == DataType::kI32) tensor.limit = 2;
  }

  static inline Example* g_example = nullptr;
  const OpSignature& s_;
  /// Of the lines of inputs.
  std::vector<size_t> starts_;
};

struct Break {
  std::string name;
  /// Tensor that the message names; negative: none.
  int tensor = -1;
  void (*change)(Example& example, size_t tensor);
};

void set_type(Tensor& tensor, DataType type) {
  tensor.type = type;
  tensor.scale_groups = type == DataType::kI8 ? 1 : 0;
}

/// All that breaks a rule of the line that tensor `t` belongs to.
std::vector<Break> breaks_of(const OpSignature& signature, const Place& place, int t) {
  std::vector<Break> breaks;
  const auto add = [&](const char* name, void (*change)(Example&, size_t)) {
    breaks.push_back({std::string(place.name) + ": " + name, t, change});
  };
  if ((place.types & kF32) == 0) {
    add("float", [](Example& e, size_t i) { set_type(e.tensor(i), DataType::kF32); });
  }
  if ((place.types & (kI8 | kI8OneScale)) == 0) {
    add("int8", [](Example& e, size_t i) { set_type(e.tensor(i), DataType::kI8); });
  } else {
    add("scales", [](Example& e, size_t i) {
      set_type(e.tensor(i), DataType::kI8);
      e.tensor(i).scale_groups = e.tensor(i).width + 1;
    });
  }
  if ((place.types & kI32) == 0) {
    add("ids", [](Example& e, size_t i) { set_type(e.tensor(i), DataType::kI32); });
  }
  add("blocks", [](Example& e, size_t i) { e.tensor(i).layout = Layout::kBlock8x4; });
  if (place.rows.kind != Rows::kAnywhere) {
    add("ring", [](Example& e, size_t i) { e.tensor(i).ring = e.tensor(i).ring < 0 ? 0 : -1; });
  }
  // Such as the first of those that repeat.
  const auto is_itself = [&](uint8_t input) {
    return place.each != nullptr ? t == input : &place == &signature.input(input);
  };
  if (place.width.kind != Width::kAny &&
      !(t == place.width.input && is_itself(place.width.input))) {
    add("width", [](Example& e, size_t i) { ++e.tensor(i).width; });
  }
  switch (place.rows.kind) {
    case Rows::kAny:
    case Rows::kAnywhere:
      break;
    case Rows::kExactly:
    case Rows::kTold:
      add("a row too many", [](Example& e, size_t i) { ++e.tensor(i).rows; });
      [[fallthrough]];
    case Rows::kFixed:
    case Rows::kRing:
    case Rows::kPinnedRing:
    case Rows::kSameRing:
      add("symbol", [](Example& e, size_t i) { e.tensor(i).rows_symbol = kTokenSymbol; });
      break;
    case Rows::kRoom:
      add("too little room", [](Example& e, size_t i) { e.tensor(i).rows = kTokens - 1; });
      break;
    case Rows::kRoomFor:
      add("a row too few", [](Example& e, size_t i) { --e.tensor(i).rows; });
      break;
    case Rows::kSameOrOne:
    case Rows::kSame:
      if (is_itself(place.rows.input)) break;
      add("another symbol", [](Example& e, size_t i) {
        e.tensor(i).rows_symbol = e.tensor(i).rows_symbol < 0 ? kTokenSymbol : -1;
      });
      add("rows", [](Example& e, size_t i) { ++e.tensor(i).rows; });
      break;
    case Rows::kCounted:
      add("no symbol", [](Example& e, size_t i) { e.tensor(i).rows_symbol = -1; });
      add("too little room", [](Example& e, size_t i) { e.tensor(i).rows = kTokens - 1; });
      [[fallthrough]];
    case Rows::kCountedOrFixed:
      add("the caller's symbol", [](Example& e, size_t i) { e.tensor(i).rows_symbol = 0; });
      break;
  }
  if (place.rows.in_ring()) {
    add("capacity", [](Example& e, size_t i) { ++e.tensor(i).rows; });
    add("pinned", [](Example& e, size_t i) { e.tensor(i).pinned = kCapacity; });
  }
  return breaks;
}

std::vector<Break> all_breaks(const OpSignature& signature, const Example& example) {
  std::vector<Break> breaks = {
      {"no inputs", -1, [](Example& e, size_t) { e.op.inputs.clear(); }},
      {"many inputs", -1, [](Example& e, size_t) { e.op.inputs.resize(99, e.op.outputs[0]); }},
      {"no outputs", -1, [](Example& e, size_t) { e.op.outputs.clear(); }},
      {"many outputs", -1, [](Example& e, size_t) { e.op.outputs.resize(99, e.op.inputs[0]); }}};
  if (signature.options != schema::OpOptions::NONE) {
    if (!signature.may_lack_options) {
      breaks.push_back({"no options", -1, [](Example& e, size_t) { e.op.step.options.Reset(); }});
    }
    breaks.push_back({"the options of another op", -1, [](Example& e, size_t) {
                        if (e.op.step.options.type == schema::OpOptions::PoolOptions) {
                          e.op.options(schema::LinearOptionsT());
                        } else {
                          e.op.options(schema::PoolOptionsT());
                        }
                      }});
  }
  for (size_t t = 0; t < example.places.size(); ++t) {
    for (Break& one : breaks_of(signature, *example.places[t], static_cast<int>(t))) {
      breaks.push_back(std::move(one));
    }
  }
  return breaks;
}

class Signatures : public ::testing::TestWithParam<schema::OpCode> {};

TEST_P(Signatures, EveryBrokenRuleIsRefusedByBindInTheSameWords) {
  const OpSignature& signature = *op_traits(GetParam()).signature;
  g_signature = &signature;
  Example valid(signature, bind_signature);
  // The check alone: bind asks for more, such as options other than the default ones.
  ASSERT_EQ(valid.op.bind(), Status::kOk) << valid.op.message();

  for (const Break& one : all_breaks(signature, valid)) {
    SCOPED_TRACE(one.name);
    const auto tensor = static_cast<size_t>(one.tensor);
    Example checked(signature, bind_signature);
    one.change(checked, tensor);
    EXPECT_EQ(checked.op.bind(), Status::kFileCorrupt);
    const std::string words = checked.op.message();
    // What is told one by one may tell of others.
    if (one.tensor >= 0 && checked.places[tensor]->each == nullptr) {
      const std::string name = "'" + std::string(checked.tensor(tensor).name) + "'";
      EXPECT_NE(words.find(name), std::string::npos) << words;
    }
    Example bound(signature, builtin_ops()[static_cast<size_t>(GetParam())].bind);
    one.change(bound, tensor);
    EXPECT_EQ(bound.op.bind(), Status::kFileCorrupt);
    EXPECT_EQ(bound.op.message(), words);
  }
}

std::string name_of(const ::testing::TestParamInfo<schema::OpCode>& test) {
  return schema::EnumNameOpCode(test.param);
}
INSTANTIATE_TEST_SUITE_P(AllOps, Signatures, ::testing::ValuesIn(schema::EnumValuesOpCode()),
                         name_of);

size_t never(const schema::Step&) { return 0; }
size_t always(const schema::Step&) { return 1; }

TEST(Signature, OptionalInputsAreCountedWhenTheOptionsAskForThem) {
  static constexpr OpSignature kFake = {
      .inputs = {{.name = "x"},
                 {.name = "never", .rows = Rows::one(), .count = never},
                 {.name = "scale", .width = Width::of(0), .rows = Rows::one(), .count = always},
                 {.name = "more", .types = kI32, .rows = Rows::of(0), .least = 0, .most = 2}},
      .outputs = {{.name = "y", .width = Width::times(2, 2), .rows = Rows::of(0)}}};
  g_signature = &kFake;
  OpRunner op(bind_signature);
  TestTensor x = testing::f32_tensor("x", 3, 4), scale = testing::f32_tensor("scale", 1, 4);
  TestTensor ids = testing::i32_tensor("ids", 3, 1), y = testing::f32_tensor("y", 3, 8);
  op.outputs = {&y};
  op.inputs = {&x, &scale};
  EXPECT_EQ(op.bind(), Status::kOk) << op.message();
  op.inputs = {&x, &scale, &ids, &ids};
  EXPECT_EQ(op.bind(), Status::kOk) << op.message();
  op.inputs = {&x, &scale, &ids, &x};
  EXPECT_EQ(op.bind(), Status::kFileCorrupt);
  EXPECT_NE(std::string(op.message()).find("'x' is F32 [3, 4], expected I32"), std::string::npos)
      << op.message();
  op.inputs = {&x, &scale, &ids, &ids, &ids};
  EXPECT_EQ(op.bind(), Status::kFileCorrupt);
  EXPECT_NE(std::string(op.message()).find("expected 2 to 4 and 1"), std::string::npos)
      << op.message();
  op.inputs = {&x};
  EXPECT_EQ(op.bind(), Status::kFileCorrupt);
}

TEST(Signature, WhatRepeatsOnBothSidesIsComparedInPairs) {
  static constexpr OpSignature kFake = {
      .inputs = {{.name = "x", .rows = Rows::of(0), .most = 3}},
      .outputs = {{.name = "y", .width = Width::of(0), .rows = Rows::of(0), .most = 3}}};
  ASSERT_TRUE(kFake.is_paired());
  g_signature = &kFake;
  OpRunner op(bind_signature);
  TestTensor a = testing::f32_tensor("a", 3, 4), b = testing::f32_tensor("b", 3, 5);
  TestTensor c = testing::f32_tensor("c", 3, 4), d = testing::f32_tensor("d", 3, 5);
  op.inputs = {&a, &b};
  op.outputs = {&c, &d};
  EXPECT_EQ(op.bind(), Status::kOk) << op.message();
  op.outputs = {&d, &c};
  EXPECT_EQ(op.bind(), Status::kFileCorrupt);
  op.outputs = {&c};
  EXPECT_EQ(op.bind(), Status::kFileCorrupt);
  EXPECT_NE(std::string(op.message()).find("expected 1 to 3 and as many"), std::string::npos)
      << op.message();
}

TEST(Storage, TypesAndLayoutsAreThoseOfTheFileFormat) {
  for (const schema::DataType type : schema::EnumValuesDataType()) {
    EXPECT_STRCASEEQ(type_name(static_cast<DataType>(type)), schema::EnumNameDataType(type));
  }
  EXPECT_EQ(static_cast<int>(Layout::kRowMajor), static_cast<int>(schema::Layout::RowMajor));
  EXPECT_EQ(static_cast<int>(Layout::kBlock8x4), static_cast<int>(schema::Layout::Block8x4));
  EXPECT_EQ(static_cast<int>(Layout::kBlock8x32), static_cast<int>(schema::Layout::Block8x32));
  EXPECT_EQ(static_cast<int>(Layout::kBlock8x16), static_cast<int>(schema::Layout::Block8x16));
  EXPECT_EQ(static_cast<int>(Layout::kBlock8x32Min),
            static_cast<int>(schema::Layout::Block8x32Min));
}

}  // namespace
}  // namespace oxbow
