#include "host/page.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "host/describe.h"
#include "host/layers.h"
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

/// What the page holds for its script.
nlohmann::json data_of(const std::string& page) {
  const std::string mark = "id=\"data\">";
  const size_t begin = page.find(mark) + mark.size();
  return nlohmann::json::parse(page.substr(begin, page.find("</script>", begin) - begin));
}

TEST(Page, HoldsTheDataAndNeedsNothingFromElsewhere) {
  const nlohmann::json data =
      page_data(made_by("oxbow inspect", {"a model.oxb", "--html", "it's.html", ""}),
                {to_json(two_entry_points())}, {});
  const std::string page = to_html(data, "folder/model.oxb");
  EXPECT_EQ(data_of(page), data);
  EXPECT_EQ(data["format"], 1);
  EXPECT_EQ(data["made"]["command"], "oxbow inspect 'a model.oxb' --html 'it'\\''s.html' ''");
  EXPECT_EQ(std::string(data["made"]["date"]).size(), std::string("2026-01-01T00:00:00Z").size());
  EXPECT_NE(page.find("<title>model.oxb</title>"), std::string::npos);
  EXPECT_EQ(page.find("http"), std::string::npos);
  for (const char* mark : {"%style%", "%script%", "%data%", "%title%"}) {
    EXPECT_EQ(page.find(mark), std::string::npos) << mark;
  }
}

TEST(Page, NamesOfAFileAreNeverMarkup) {
  Description d = two_entry_points();
  const std::string evil = "</script><script>alert(1)</script><!-- %title% \xff";
  d.model.tensors[0]->name = evil;
  d.model.metadata->licence = evil;
  const std::string page = to_html(page_data({}, {to_json(d)}, {}), "%data%<b>&");
  EXPECT_EQ(page.find("<script>alert"), std::string::npos);
  EXPECT_EQ(page.find("<!-- %title%"), std::string::npos);
  EXPECT_NE(page.find("<title>%data%&lt;b&gt;&amp;</title>"), std::string::npos);
  const std::string licence = data_of(page)["models"][0]["licence"];
  EXPECT_TRUE(licence.starts_with("</script><script>alert(1)</script><!-- %title% ")) << licence;
}

TEST(Describe, JsonHasTheRightTypes) {
  Description d = two_entry_points();
  d.hash = 0x0123456789abcdef;
  d.worst_weights = {{"encode_w", 0.25}, {"table", 0.125, 0.5}};
  add_tensor(d.model, "key.layer0", schema::TensorKind::State, 4, 8);
  add_tensor(d.model, "value.layer0", schema::TensorKind::State, 4, 8);
  d.lives = lifetimes(d.model);
  for (const auto& [key, value] :
       {std::pair("weights", "int8"), {"layers", "12"}, {"cosine", "0.5"}, {"tied", "true"}}) {
    auto pair = std::make_unique<schema::KeyValueT>();
    pair->key = key;
    pair->value = value;
    d.model.metadata->settings.push_back(std::move(pair));
  }
  const nlohmann::json json = to_json(d);
  EXPECT_EQ(json["format"], 1);
  EXPECT_EQ(json["hash"], "0123456789abcdef");
  EXPECT_EQ(json["settings"],
            nlohmann::json({{"weights", "int8"}, {"layers", 12}, {"cosine", 0.5}, {"tied", true}}));
  EXPECT_EQ(json["weight_errors"],
            nlohmann::json::array({{{"name", "encode_w"}, {"error", 0.25}},
                                   {{"name", "table"}, {"error", 0.125}, {"loss", 0.5}}}));
  EXPECT_EQ(json["tensors"].at(6)["role"], "keys");
  EXPECT_EQ(json["tensors"].at(7)["role"], "values");
  const nlohmann::json& step = json["entry_points"][1]["steps"][0];
  EXPECT_EQ(step["macs_per_token"], 256);
  EXPECT_EQ(step["category"], "matrix");
  EXPECT_FALSE(step.contains("layer"));
}

TEST(Layers, AStepThatTellsNothingStaysWithTheOneBefore) {
  Description d = two_entry_points();
  schema::EntryPointT& entry = *d.model.entry_points[0];
  const auto add_step = [&](const std::string& output) {
    auto step = std::make_unique<schema::StepT>();
    step->outputs = {add_tensor(d.model, output, schema::TensorKind::Activation, 4, 8)};
    entry.steps.push_back(std::move(step));
  };
  for (const char* name : {"layers.0.a", "b", "layer1.c", "d"}) add_step(name);
  EXPECT_EQ(step_layers(d.model, entry), (std::vector<int>{-1, 0, 0, 1, -1}));
}

TEST(Macs, EveryEntryPointHasItsOwn) {
  const Description d = two_entry_points();
  EXPECT_EQ(macs_per_token(d.model, *d.model.entry_points[0]), 128u);
  EXPECT_EQ(macs_per_token(d.model, *d.model.entry_points[1]), 256u);
  EXPECT_EQ(macs_per_token(d.model), 256u);
}

}  // namespace
}  // namespace oxbow
