#include "converter/features.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include "converter/graph.h"
#include "host/testing/paths.h"

namespace oxbow::convert {
namespace {

/// The fields of each table, in order.
std::map<std::string, std::vector<std::string>> read_tables() {
  std::map<std::string, std::vector<std::string>> tables;
  std::ifstream lines(testing::source_dir() + "/schema/model.fbs");
  const std::regex begin("table (\\w+) \\{.*"), field("  (\\w+): .*");
  std::string table, line;
  for (std::smatch match; std::getline(lines, line);) {
    if (std::regex_match(line, match, begin)) table = match[1];
    if (line == "}") table.clear();
    if (!table.empty() && std::regex_match(line, match, field)) tables[table].push_back(match[1]);
  }
  return tables;
}

TEST(Features, EveryAppendedFieldThatChangesResultsHasOne) {
  // How many fields each table had in the first files; a missing table came with operators that older libraries
  // refuse by number, or says nothing about results.
  const std::map<std::string, size_t> first = {{"Symbol", 2},
                                               {"Ring", 2},
                                               {"Tensor", 12},
                                               {"EmbeddingOptions", 1},
                                               {"LayerNormOptions", 1},
                                               {"LinearOptions", 3},
                                               {"ActivateOptions", 1},
                                               {"RmsNormOptions", 1},
                                               {"AttentionOptions", 5},
                                               {"RingEvictOptions", 1},
                                               {"RingPushOptions", 1},
                                               {"PoolOptions", 2},
                                               {"TakeRowsOptions", 0},
                                               {"RopeAnglesOptions", 0},
                                               {"RopeOptions", 2},
                                               {"PositionsOptions", 4},
                                               {"TokenMaskOptions", 1},
                                               {"SliceColumnsOptions", 1},
                                               {"ConvolutionOptions", 6},
                                               {"Pattern", 12},
                                               {"Step", 4},
                                               {"EntryPoint", 5},
                                               {"MemoryPlan", 2},
                                               {"Tokenizer", 31},
                                               {"WordPattern", 2},
                                               {"Model", 9}};
  const std::set<std::string> harmless = {
      "Tensor.required",             // Only refuses runs.
      "LinearOptions.limit",         // Clamp's, whose number is refused.
      "ActivateOptions.limit",       // The same.
      "LinearOptions.output_scale",  // A hint to libraries.
      "EntryPoint.kept_names",       // Names only.
      "EntryPoint.any_pieces",       // A hint to callers.
      "Model.required_features",     // The list itself.
      "Model.offloads",              // The steps they stand for stay.
      "Pattern.listed",              // Of a kind whose number is refused.
      "Pattern.full_up_to",          // The same.
      "Pattern.rounds",              // The same.
      "Tokenizer.chat_next",         // Only what is offered for chats.
      "Tokenizer.chat_system_before",
      "Tokenizer.chat_system_after",
      "Tokenizer.chat_trims",
      "Tokenizer.chat_answer",
      "Tokenizer.pair_between",  // Only what is offered for pairs.
      "Tokenizer.pair_after",
  };
  std::set<std::string> named = harmless;
  for (const Feature& feature : features()) {
    std::istringstream words(feature.fields);
    named.insert(std::istream_iterator<std::string>(words), {});
  }
  const auto tables = read_tables();
  for (const auto& [table, count] : first) {
    ASSERT_TRUE(tables.contains(table)) << table;
    const std::vector<std::string>& fields = tables.at(table);
    ASSERT_GE(fields.size(), count) << table;
    for (size_t i = count; i < fields.size(); ++i) {
      EXPECT_TRUE(named.contains(table + "." + fields[i]))
          << table << "." << fields[i] << " needs a line in runtime/model/features.inc";
    }
  }
  for (const std::string& name : named) {
    const std::string table = name.substr(0, name.find('.')),
                      field = name.substr(name.find('.') + 1);
    const auto found = tables.find(table);
    ASSERT_NE(found, tables.end()) << name;
    EXPECT_NE(std::find(found->second.begin(), found->second.end(), field), found->second.end())
        << name << " is no field of the schema";
  }
}

/// One tensor of each kind, a ring, and an entry point without steps.
schema::ModelT plain_model() {
  Graph graph;
  GraphBuilder builder(graph);
  builder.begin_entry({.vocabulary = 4, .max_segment = 2});
  builder.ring_state("memory", builder.ring("memory", 4), 4);
  builder.state("state", 1, 4);
  return std::move(graph.model);
}

template <typename Options>
void add_step(schema::ModelT& model, Options options) {
  auto step = std::make_unique<schema::StepT>();
  step->options.Set(std::move(options));
  model.entry_points[0]->steps.push_back(std::move(step));
}

#define OPTION(Options, field, value) \
  [](schema::ModelT& model) {         \
    schema::Options options;          \
    options.field = value;            \
    add_step(model, options);         \
  }

TEST(Features, AreNamedByModelsThatUseThemAndByNoOthers) {
  const std::map<std::string, std::function<void(schema::ModelT&)>> uses = {
      {"ring.pinned", [](auto& model) { model.rings[0]->pinned = 1; }},
      {"ring.initial_rows", [](auto& model) { model.rings[0]->initial_rows = 1; }},
      {"ring.shared", [](auto& model) { model.rings[0]->shared = true; }},
      {"state.initial", [](auto& model) { model.tensors.back()->initial = 0; }},
      {"tensor.hadamard", [](auto& model) { model.tensors[0]->hadamard = 16; }},
      {"tokenizer.patterns",
       [](auto& model) {
         model.tokenizer = std::make_unique<schema::TokenizerT>();
         model.tokenizer->patterns.push_back(std::make_unique<schema::WordPatternT>());
       }},
      {"tokenizer.normalization",
       [](auto& model) {
         model.tokenizer = std::make_unique<schema::TokenizerT>();
         model.tokenizer->normalization = std::make_unique<schema::NormalizationT>();
       }},
      {"tokenizer.space_unless_there",
       [](auto& model) {
         model.tokenizer = std::make_unique<schema::TokenizerT>();
         model.tokenizer->space_unless_there = true;
       }},
      {"tokenizer.drop_first_space",
       [](auto& model) {
         model.tokenizer = std::make_unique<schema::TokenizerT>();
         model.tokenizer->drop_first_space = false;
       }},
      {"tokenizer.steps",
       [](auto& model) {
         model.tokenizer = std::make_unique<schema::TokenizerT>();
         model.tokenizer->steps.push_back(std::make_unique<schema::NormalStepT>());
       }},
      {"tokenizer.words",
       [](auto& model) {
         model.tokenizer = std::make_unique<schema::TokenizerT>();
         model.tokenizer->words = true;
       }},
      {"tokenizer.word_suffix",
       [](auto& model) {
         model.tokenizer = std::make_unique<schema::TokenizerT>();
         model.tokenizer->word_suffix = "</w>";
       }},
      {"tokenizer.decoding",
       [](auto& model) {
         model.tokenizer = std::make_unique<schema::TokenizerT>();
         model.tokenizer->decoding = schema::TokenDecoding::Spaced;
       }},
      {"pattern.of_bytes",
       [](auto& model) {
         model.tokenizer = std::make_unique<schema::TokenizerT>();
         model.tokenizer->patterns.push_back(std::make_unique<schema::WordPatternT>());
         model.tokenizer->patterns[0]->of_bytes = true;
       }},
      {"tensor.static_scale", [](auto& model) { model.tensors[0]->static_scale = 1.0f; }},
      {"entry.inputs", [](auto& model) { model.entry_points[0]->inputs = {0}; }},
      {"entry.own_row_inputs",
       [](auto& model) {
         model.entry_points[0]->inputs = {1};
         model.tensors[1]->rows_symbol = 1;
       }},
      {"entry.outputs", [](auto& model) { model.entry_points[0]->outputs = {0}; }},
      {"entry.starts", [](auto& model) { model.entry_points[0]->starts = true; }},
      {"entry.capacity", [](auto& model) { model.entry_points[0]->capacity = 7; }},
      {"embedding.partial", OPTION(EmbeddingOptionsT, partial, true)},
      {"embedding.turned", OPTION(EmbeddingOptionsT, turned, 64)},
      {"attention.not_own", OPTION(AttentionOptionsT, own, false)},
      {"attention.pattern",
       [](auto& model) {
         schema::AttentionOptionsT options;
         options.pattern = std::make_unique<schema::PatternT>();
         options.pattern->kind = schema::PatternKind::Full;
         add_step(model, std::move(options));
       }},
      {"attention.relative_zero", OPTION(AttentionOptionsT, relative_zero, 1)},
      {"attention.distance_bias", OPTION(AttentionOptionsT, distance_bias, true)},
      {"attention.alibi", OPTION(AttentionOptionsT, alibi, true)},
      {"attention.segments", OPTION(AttentionOptionsT, segments, true)},
      {"attention.key_mask", OPTION(AttentionOptionsT, key_mask, true)},
      {"attention.mask_queries", OPTION(AttentionOptionsT, mask_queries, true)},
      {"attention.mask_keeps_own", OPTION(AttentionOptionsT, mask_keeps_own, true)},
      {"attention.globals", OPTION(AttentionOptionsT, globals, true)},
      {"attention.pinned_query", OPTION(AttentionOptionsT, pinned_query, true)},
      {"attention.rooms", OPTION(AttentionOptionsT, rooms, 1)},
      {"attention.relative_keys", OPTION(AttentionOptionsT, relative_keys, true)},
      {"attention.terms",
       [](auto& model) {
         schema::AttentionOptionsT options;
         options.terms.push_back(std::make_unique<schema::ScoreTermT>());
         add_step(model, std::move(options));
       }},
      {"ring_evict.pad_front", OPTION(RingEvictOptionsT, pad_front, true)},
      {"ring_evict.only_full", OPTION(RingEvictOptionsT, only_full, 1)},
      {"ring_evict.all", OPTION(RingEvictOptionsT, all, true)},
      {"ring_push.only_full", OPTION(RingPushOptionsT, only_full, 1)},
      {"ring_push.first", OPTION(RingPushOptionsT, first, 1)},
      {"ring_push.replace", OPTION(RingPushOptionsT, replace, true)},
      {"take_rows.from_start", OPTION(TakeRowsOptionsT, from_start, true)},
      {"convolution.bias", OPTION(ConvolutionOptionsT, has_bias, true)},
      {"layer_norm.groups", OPTION(LayerNormOptionsT, groups, 2)},
      {"rms_norm.groups", OPTION(RmsNormOptionsT, groups, 2)},
      {"ring_push.clear", OPTION(RingPushOptionsT, clear, true)},
      {"pool.neighbours", OPTION(PoolOptionsT, neighbours, true)},
      {"rope_angles.last", OPTION(RopeAnglesOptionsT, last, 1)},
      {"tokenizer.ordered_marks",
       [](auto& model) {
         model.tokenizer = std::make_unique<schema::TokenizerT>();
         model.tokenizer->ordered_marks = {1};
       }},
      {"tokenizer.space_at_start_only",
       [](auto& model) {
         model.tokenizer = std::make_unique<schema::TokenizerT>();
         model.tokenizer->space_at_start_only = true;
       }},
      {"layer_norm.deviation", OPTION(LayerNormOptionsT, deviation, true)},
      {"positions.divisor", OPTION(PositionsOptionsT, divisor, 2)},
      {"route.capacity", OPTION(RouteOptionsT, capacity, 2)},
      {"generation.first_forbidden",
       [](auto& model) {
         model.generation = std::make_unique<schema::GenerationT>();
         model.generation->first_forbidden_tokens = {1};
       }},
      {"generation.timestamps",
       [](auto& model) {
         model.generation = std::make_unique<schema::GenerationT>();
         model.generation->first_timestamp = 5;
       }},
  };
  const schema::ModelT plain = plain_model();
  EXPECT_EQ(used_features(plain), std::vector<std::string>{});
  for (const Feature& feature : features()) {
    ASSERT_TRUE(uses.contains(feature.name)) << feature.name << " needs a case here";
    schema::ModelT model = plain;
    uses.at(feature.name)(model);
    const std::vector<std::string> used = used_features(model);
    EXPECT_NE(std::find(used.begin(), used.end(), feature.name), used.end()) << feature.name;
    // Inputs with rows of their own are inputs, and patterns of bytes are patterns.
    const std::string name(feature.name);
    const bool two = name == "entry.own_row_inputs" || name == "pattern.of_bytes";
    EXPECT_EQ(used.size(), two ? 2u : 1u) << feature.name;
  }
}
#undef OPTION

}  // namespace
}  // namespace oxbow::convert
