#include "host/report.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "host/macs.h"

namespace oxbow {
namespace {

uint32_t add_tensor(schema::ModelT& model, const std::string& name, schema::TensorKind kind,
                    uint32_t rows, uint32_t width) {
  auto tensor = std::make_unique<schema::TensorT>();
  tensor->name = name;
  tensor->kind = kind;
  tensor->rows = rows;
  tensor->width = width;
  tensor->bytes = uint64_t{rows} * width * 4;
  model.tensors.push_back(std::move(tensor));
  return static_cast<uint32_t>(model.tensors.size() - 1);
}

/// An entry point of one matrix, [outputs, 8].
void add_entry(schema::ModelT& model, const std::string& name, uint32_t outputs) {
  auto entry = std::make_unique<schema::EntryPointT>();
  entry->name = name;
  entry->tokens = add_tensor(model, name + "_x", schema::TensorKind::Input, 4, 8);
  entry->logits = add_tensor(model, name + "_y", schema::TensorKind::Output, 4, outputs);
  for (const uint32_t tensor : {entry->tokens, entry->logits}) {
    model.tensors[tensor]->rows_symbol = 0;
  }
  auto step = std::make_unique<schema::StepT>();
  step->op = schema::OpCode::Linear;
  step->inputs = {entry->tokens,
                  add_tensor(model, name + "_w", schema::TensorKind::Weight, outputs, 8)};
  step->outputs = {entry->logits};
  step->options.Set(schema::LinearOptionsT());
  entry->steps.push_back(std::move(step));
  model.entry_points.push_back(std::move(entry));
}

Description two_entry_points() {
  Description d;
  d.model.symbols.push_back(std::make_unique<schema::SymbolT>());
  d.model.symbols[0]->name = "tokens";
  d.model.symbols[0]->max = 4;
  add_entry(d.model, "encode", 16);
  add_entry(d.model, "decode", 32);
  d.model.plan = std::make_unique<schema::MemoryPlanT>();
  d.model.plan->activations = 256;
  d.model.metadata = std::make_unique<schema::MetadataT>();
  d.lives = lifetimes(d.model);
  return d;
}

TEST(Report, DrawsEveryEntryPointAndCountsItsWork) {
  const Description d = two_entry_points();
  const std::string page = to_html(d, "model.oxb");
  for (const char* words : {"encode_y", "decode_y", "MACs per token, encode",
                            "MACs per token, decode", "encode, 1 step<", "decode, 1 step<"}) {
    EXPECT_NE(page.find(words), std::string::npos) << words;
  }
}

TEST(Report, KeysAndValuesOfACacheHaveTheirColours) {
  Description d = two_entry_points();
  add_tensor(d.model, "key.layer0", schema::TensorKind::State, 4, 8);
  add_tensor(d.model, "value.layer0", schema::TensorKind::State, 4, 8);
  d.lives = lifetimes(d.model);
  const std::string page = to_html(d, "model.oxb");
  for (const auto& [name, colour] : {std::pair("key.layer0 ", "fa"), {"value.layer0 ", "fb"}}) {
    const size_t place = page.find(std::string("<title>") + name);
    ASSERT_NE(place, std::string::npos) << name;
    const std::string shape = page.substr(page.rfind("<rect", place), 40);
    EXPECT_NE(shape.find(std::string("block ") + colour), std::string::npos) << shape;
  }
}

TEST(Report, WhatPointingTellsATapTellsToo) {
  const std::string page = to_html(two_entry_points(), "model.oxb");
  EXPECT_NE(page.find("addEventListener('click', tell)"), std::string::npos);
  EXPECT_NE(page.find("@media (max-width: 640px)"), std::string::npos);
}

TEST(Macs, EveryEntryPointHasItsOwn) {
  const Description d = two_entry_points();
  EXPECT_EQ(macs_per_token(d.model, *d.model.entry_points[0]), 128u);
  EXPECT_EQ(macs_per_token(d.model, *d.model.entry_points[1]), 256u);
  EXPECT_EQ(macs_per_token(d.model), 256u);
}

}  // namespace
}  // namespace oxbow
