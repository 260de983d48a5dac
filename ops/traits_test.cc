#include "ops/traits.h"

#include <gtest/gtest.h>

#include <string>

namespace oxbow {
namespace {

/// Options as a file has them that tells nothing.
schema::StepT default_step(const OpTraits& traits) {
  schema::StepT step;
  step.op = traits.code;
  if (traits.signature->options == schema::OpOptions::NONE) return step;
  flatbuffers::FlatBufferBuilder builder;
  builder.Finish(flatbuffers::Offset<void>(builder.EndTable(builder.StartTable())));
  const void* table = flatbuffers::GetRoot<flatbuffers::Table>(builder.GetBufferPointer());
  step.options.type = traits.signature->options;
  step.options.value = schema::OpOptionsUnion::UnPack(table, step.options.type, nullptr);
  return step;
}

TEST(Traits, EveryOpcodeHasThemAndASignature) {
  for (const schema::OpCode code : schema::EnumValuesOpCode()) {
    const std::string name = schema::EnumNameOpCode(code);
    SCOPED_TRACE(name);
    const OpTraits& traits = op_traits(code);
    EXPECT_EQ(traits.code, code);
    ASSERT_NE(traits.signature, nullptr);
    for (const auto& places : {traits.signature->inputs, traits.signature->outputs}) {
      EXPECT_GE(places.size(), 1u);
      EXPECT_LE(places.size(), kMaxPlaces);
      for (const Place& place : places) {
        EXPECT_NE(place.name, nullptr);
        EXPECT_TRUE(!place.varies() || &place == places.end() - 1) << place.name;
      }
    }
    if (traits.signature->options != schema::OpOptions::NONE) {
      EXPECT_EQ(schema::EnumNameOpOptions(traits.signature->options), name + "Options");
    }
  }
  EXPECT_THROW(op_traits(static_cast<schema::OpCode>(60000)), std::logic_error);
}

TEST(Traits, AgreeWithTheSignature) {
  for (const schema::OpCode code : schema::EnumValuesOpCode()) {
    SCOPED_TRACE(schema::EnumNameOpCode(code));
    const OpTraits& traits = op_traits(code);
    const OpSignature& signature = *traits.signature;
    if (traits.multiplied_input >= 0) {
      const auto weight = weight_input(traits);
      ASSERT_TRUE(weight.has_value());
      EXPECT_NE(weight->types & kI8Blocks, 0);
      const TypeSet rows = signature.input(static_cast<size_t>(traits.multiplied_input)).types;
      EXPECT_NE(rows & (kI8 | kI8OneScale), 0);
    }
    if (traits.exact_input >= 0) {
      EXPECT_EQ(signature.input(static_cast<size_t>(traits.exact_input)).types, kF32);
    }
    // What is said to be int8 must be accepted as such. A plain state never is.
    for (const Place& place : signature.inputs) {
      if (place.role == Role::kState && place.rows.in_ring() && traits.i8_states) {
        EXPECT_NE(place.types & (kI8 | kI8OneScale), 0);
      }
    }
    if (traits.rows_per_token != nullptr) {
      const Rows::Kind rows = signature.output().rows.kind;
      EXPECT_TRUE(rows == Rows::kCounted || rows == Rows::kCountedOrFixed);
    }
  }
}

TEST(Traits, TheOptionsOfEveryOpCanBeToldInWords) {
  for (const schema::OpCode code : schema::EnumValuesOpCode()) {
    SCOPED_TRACE(schema::EnumNameOpCode(code));
    const OpTraits& traits = op_traits(code);
    if (traits.options == nullptr) continue;
    const std::string text = traits.options(default_step(traits));
    EXPECT_FALSE(text.starts_with(",") || text.ends_with(",")) << text;
  }
  schema::StepT step;
  step.op = schema::OpCode::Linear;
  schema::LinearOptionsT options;
  options.has_bias = options.has_residual = true;
  options.activation = schema::Activation::GeluTanh;
  step.options.Set(options);
  EXPECT_EQ(op_traits(step.op).options(step), "bias, gelutanh, residual");
}

TEST(Traits, StatesAreFloatUnlessAnOpSaysOtherwise) {
  EXPECT_FALSE(OpTraits().i8_states);
  for (const schema::OpCode code :
       {schema::OpCode::Attention, schema::OpCode::RingPush, schema::OpCode::RingEvict}) {
    EXPECT_TRUE(op_traits(code).i8_states);
  }
  EXPECT_FALSE(op_traits(schema::OpCode::Convolution).i8_states);
  EXPECT_FALSE(op_traits(schema::OpCode::MergeRows).i8_states);
}

}  // namespace
}  // namespace oxbow
