// Files made to keep whoever opens them busy: parts that are referred to again and again, long lists, long names. Opening
// or refusing one takes time in proportion to its bytes, and no more memory.

#include <gtest/gtest.h>

#include <ctime>
#include <functional>
#include <string>
#include <vector>

#include "converter/graph.h"
#include "tests/support/built_model.h"

namespace oxbow::testing {
namespace {

using convert::Graph;
using convert::GraphBuilder;
using schema::OpCode;
template <typename T>
using Offsets = std::vector<flatbuffers::Offset<T>>;

/// A graph of a token and a row of logits, to which a test adds what it likes.
struct Parts {
  flatbuffers::FlatBufferBuilder builder;
  Offsets<schema::Symbol> symbols;
  Offsets<schema::Tensor> tensors;
  Offsets<schema::Step> steps;
  Offsets<schema::KeyValue> settings;
  Offsets<flatbuffers::String> kept_names, labels, transposed_states, shared_inputs;
  std::vector<uint32_t> kept;
  std::vector<int32_t> end_tokens;
  uint32_t entries = 1;

  Parts() {
    for (int i = 0; i < 2; ++i) symbols.push_back(schema::CreateSymbol(builder, name("rows"), 1));
    tensors = {tensor("tokens", schema::TensorKind::Input, schema::DataType::I32, 0),
               tensor("logits", schema::TensorKind::Output, schema::DataType::F32, 1)};
  }
  flatbuffers::Offset<flatbuffers::String> name(const std::string& text) {
    return builder.CreateString(text);
  }
  flatbuffers::Offset<schema::Tensor> tensor(const std::string& text, schema::TensorKind kind,
                                             schema::DataType type, int32_t symbol) {
    const auto named = name(text);
    schema::TensorBuilder made(builder);
    made.add_name(named);
    made.add_kind(kind);
    made.add_type(type);
    made.add_rows(1);
    made.add_width(1);
    made.add_bytes(4);
    made.add_rows_symbol(symbol);
    if (type == schema::DataType::I32) made.add_limit(2);
    return made.Finish();
  }
  flatbuffers::Offset<schema::Step> step(const std::vector<uint32_t>& inputs,
                                         const std::vector<uint32_t>& outputs) {
    const auto in = builder.CreateVector(inputs), out = builder.CreateVector(outputs);
    schema::StepBuilder made(builder);
    made.add_op(OpCode::Add);
    made.add_inputs(in);
    made.add_outputs(out);
    return made.Finish();
  }

  std::vector<std::byte> file() {
    const auto step_list = builder.CreateVector(steps);
    const auto kept_list = builder.CreateVector(kept);
    const auto names = builder.CreateVector(kept_names);
    const auto entry_name = name("step");
    schema::EntryPointBuilder entry(builder);
    entry.add_name(entry_name);
    entry.add_steps(step_list);
    entry.add_tokens(0);
    entry.add_logits(1);
    entry.add_kept(kept_list);
    entry.add_kept_names(names);
    const Offsets<schema::EntryPoint> all(entries, entry.Finish());
    const auto entry_list = builder.CreateVector(all);
    const auto symbol_list = builder.CreateVector(symbols);
    const auto tensor_list = builder.CreateVector(tensors);
    const auto plan = schema::CreateMemoryPlan(builder, 64, 0, 0);
    const auto setting_list = builder.CreateVector(settings);
    const auto label_list = builder.CreateVector(labels);
    const auto transposed_list = builder.CreateVector(transposed_states);
    const auto shared_list = builder.CreateVector(shared_inputs);
    schema::MetadataBuilder metadata_builder(builder);
    metadata_builder.add_architecture(entry_name);
    metadata_builder.add_settings(setting_list);
    metadata_builder.add_labels(label_list);
    metadata_builder.add_transposed_states(transposed_list);
    metadata_builder.add_shared_inputs(shared_list);
    const auto metadata = metadata_builder.Finish();
    const auto ends = builder.CreateVector(end_tokens);
    schema::GenerationBuilder generation_builder(builder);
    generation_builder.add_more_end_tokens(ends);
    const auto generation = generation_builder.Finish();
    schema::ModelBuilder model(builder);
    model.add_symbols(symbol_list);
    model.add_tensors(tensor_list);
    model.add_entry_points(entry_list);
    model.add_plan(plan);
    model.add_metadata(metadata);
    model.add_generation(generation);
    schema::FinishModelBuffer(builder, model.Finish());
    return convert::frame_graph(
        std::as_bytes(std::span(builder.GetBufferPointer(), builder.GetSize())), {});
  }
};

/// How the file was refused; empty when it was opened.
std::string open_in_time(const std::vector<std::byte>& file) {
  const std::clock_t start = std::clock();
  const BuiltModel built(file);
  const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  // 50 ms for a megabyte, ten times that in builds with sanitizers.
  EXPECT_LT(seconds, 0.01 + 0.5 * static_cast<double>(file.size()) / 1e6)
      << file.size() << " bytes: " << built.status().text();
  ::testing::Test::RecordProperty("seconds", std::to_string(seconds));
  return built.status().ok() ? "" : built.status().text();
}

constexpr char kRepeats[] = "the graph is larger than its bytes: it repeats itself";

TEST(OpeningTime, OfOneStepManyTimesIsInProportionToTheBytes) {
  for (const uint32_t entries : {1u, 8u}) {
    for (const uint32_t inputs : {0u, 2u, 65536u}) {
      Parts parts;
      parts.entries = entries;
      parts.steps.assign(65536, parts.step(std::vector<uint32_t>(inputs, 0), {}));
      EXPECT_NE(open_in_time(parts.file()), "") << entries << " entry points, " << inputs;
    }
  }
}

TEST(OpeningTime, OfOneEntryPointManyTimesIsInProportionToTheBytes) {
  Parts parts;
  parts.steps = {parts.step({0}, {1})};
  parts.entries = 200000;
  // Strings are not counted by those who verify tables.
  parts.kept_names.assign(200000, parts.name("x"));
  EXPECT_EQ(open_in_time(parts.file()), "200000 entry points; this library takes up to 8");
}

TEST(OpeningTime, OfLongNamesManyTimesIsInProportionToTheBytes) {
  const std::string text(200000, 'x');
  Parts tensors;
  tensors.steps = {tensors.step({0}, {1})};
  tensors.tensors.assign(
      16384, tensors.tensor(text, schema::TensorKind::Activation, schema::DataType::F32, 0));
  EXPECT_EQ(open_in_time(tensors.file()), kRepeats);
  Parts symbols;
  symbols.steps = {symbols.step({0}, {1})};
  symbols.symbols.assign(1024, schema::CreateSymbol(symbols.builder, symbols.name(text), 1));
  EXPECT_EQ(open_in_time(symbols.file()), kRepeats);
  Parts kept;
  kept.steps = {kept.step({0}, {1})};
  kept.kept_names.assign(100000, kept.name(text));
  EXPECT_EQ(open_in_time(kept.file()), kRepeats);
}

TEST(OpeningTime, OfOneSettingManyTimesIsInProportionToTheBytesAndSoIsItsMemory) {
  Parts parts;
  parts.steps = {parts.step({0}, {1})};
  // Keys are kept with what they belong to: 6 GB of them.
  parts.settings.assign(
      30000,
      schema::CreateKeyValue(parts.builder, parts.name(std::string(200000, 'k')), parts.name("v")));
  EXPECT_EQ(open_in_time(parts.file()), kRepeats);
}

TEST(OpeningTime, OfOneTextForPeopleManyTimesIsInProportionToTheBytesAndSoIsItsMemory) {
  const std::string text(200000, 'v');
  Parts settings;
  settings.steps = {settings.step({0}, {1})};
  // Who shows a file copies all of them: 6 GB.
  settings.settings.assign(
      30000, schema::CreateKeyValue(settings.builder, settings.name("k"), settings.name(text)));
  EXPECT_EQ(open_in_time(settings.file()), kRepeats);
  for (const auto list : {&Parts::labels, &Parts::transposed_states, &Parts::shared_inputs}) {
    Parts parts;
    parts.steps = {parts.step({0}, {1})};
    (parts.*list).assign(30000, parts.name(text));
    EXPECT_EQ(open_in_time(parts.file()), kRepeats);
  }
}

TEST(OpeningTime, ListsThatEveryTokenGoesThroughAreShort) {
  Parts ends;
  ends.steps = {ends.step({0}, {1})};
  ends.end_tokens.assign(100000, 1);
  EXPECT_EQ(open_in_time(ends.file()), "the graph is larger than this library supports");
  Parts kept;
  kept.steps = {kept.step({0}, {1})};
  kept.kept.assign(100000, 0);
  EXPECT_EQ(open_in_time(kept.file()), "entry point 'step': keeps more than all tensors");
}

constexpr int kMemories = 1000;

TEST(OpeningTime, OfAGoodGraphWithManyStepsIsInProportionToTheBytes) {
  Graph graph;
  GraphBuilder builder(graph);
  builder.begin_entry({.name = "step", .vocabulary = 3, .max_segment = 4});
  uint32_t x = builder.embedding("x", builder.tokens(),
                                 builder.weight("table", 3, 4, std::vector<float>(12, 1.0f)));
  schema::RingEvictOptionsT all;
  all.all = true;
  for (int i = 0; i < kMemories; ++i) {
    const std::string name = "memory" + std::to_string(i);
    const uint32_t state = builder.ring_state(name, builder.ring(name, 4), 4);
    builder.ring_evict(name + ".left", x, state, builder.symbol(name, 4), all);
    builder.ring_push({x}, {state});
    x = builder.add("sum" + std::to_string(i), x, x);
  }
  builder.output("y", x);
  graph.model.metadata = std::make_unique<schema::MetadataT>();
  graph.model.metadata->architecture = "test";
  graph.model.task = schema::Task::Encode;
  convert::plan(graph);
  const std::vector<std::byte> file = convert::assemble_file(graph.model, pack_all(graph).data);
  EXPECT_EQ(open_in_time(file), "");
  // Looking at all of them is one walk.
  const BuiltModel built(file);
  const oxb::Session session = built.session();
  EXPECT_EQ(session.tensor_count(), size_t{kMemories});
  size_t index = 0;
  ASSERT_EQ(oxb_session_find_tensor(session.get(), "memory999", &index, nullptr), OXB_OK);
  EXPECT_EQ(index, 999u);
  EXPECT_NE(oxb_session_find_tensor(session.get(), "memory1000", &index, nullptr), OXB_OK);
}

}  // namespace
}  // namespace oxbow::testing
