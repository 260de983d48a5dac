// What graphs may have beyond one input, one output and a few row counts, and what a library must refuse.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "converter/graph.h"
#include "tests/support/built_model.h"

namespace oxbow::testing {
namespace {

using convert::Graph;
using convert::GraphBuilder;

constexpr uint32_t kWidth = 4;
constexpr uint32_t kIds = 3;
constexpr uint32_t kMaxRows = 5;

/// A graph whose x is the tokens' embedding: (id, id, ...).
struct Maker {
  Graph graph;
  GraphBuilder builder{graph};
  uint32_t x = 0;

  Maker() {
    builder.begin_entry({.vocabulary = kIds, .max_segment = 4});
    std::vector<float> table;
    for (uint32_t id = 0; id < kIds; ++id)
      table.insert(table.end(), kWidth, static_cast<float>(id));
    x = builder.embedding("x", builder.tokens(), builder.weight("table", kIds, kWidth, table));
  }
};

/// The tokens attend to the rows of an input that are as many as the caller likes.
Graph looks_at_rows() {
  Maker m;
  const uint32_t rows =
      m.builder.float_input("rows", kWidth, m.builder.symbol("row_count", kMaxRows));
  GraphBuilder::Attention attention;
  attention.heads = attention.kv_heads = 1;
  attention.sources = {{rows, rows}};
  attention.own = false;
  attention.pattern.kind = schema::PatternKind::Full;
  m.builder.output("seen", m.builder.attention("seen_by_all", m.x, attention));
  m.builder.output("copy", rows);
  return std::move(m.graph);
}

oxb::Status run(oxb::Session& session, const std::vector<int32_t>& ids,
                const std::vector<float>& rows, std::vector<float>& out) {
  out.assign(ids.size() * kWidth, -1.0f);
  const oxb_input inputs[] = {{sizeof(oxb_input), "rows", rows.data(), rows.size() / kWidth},
                              {sizeof(oxb_input), "input_ids", ids.data(), ids.size()}};
  return session.run_entry(0, inputs, out, ids.size());
}

TEST(OwnRows, AreAsManyAsTheCallerGives) {
  Graph graph = looks_at_rows();
  const BuiltModel built(build_file(graph));
  oxb::Session session = built.session();
  std::vector<float> out;
  for (const size_t count : {1, 5, 3}) {
    std::vector<float> rows;
    for (size_t i = 0; i < count; ++i) rows.insert(rows.end(), {1, 2, 3, 4});
    const oxb::Status status = run(session, {0, 1}, rows, out);
    ASSERT_TRUE(status.ok()) << status.text();
    for (size_t i = 0; i < out.size(); ++i)
      EXPECT_NEAR(out[i], static_cast<float>(i % 4 + 1), 1e-5f);
    EXPECT_EQ(read_tensor(session, "copy"), rows);
  }
  EXPECT_EQ(session.position(), 6u) << "only tokens count";
}

TEST(OwnRows, AreToldAndAtMostTheirMaximum) {
  Graph graph = looks_at_rows();
  const BuiltModel built(build_file(graph));
  const oxb::Expected<oxb_input_info> main = built.model().input_info(0, 0);
  const oxb::Expected<oxb_input_info> info = built.model().input_info(0, 1);
  ASSERT_TRUE(main.ok() && info.ok());
  EXPECT_EQ(main->own_rows, 0);
  EXPECT_EQ(info->own_rows, 1);
  EXPECT_EQ(info->max_rows, kMaxRows);
  oxb::Session session = built.session();
  std::vector<float> out;
  const oxb::Status status = run(session, {0}, std::vector<float>((kMaxRows + 1) * kWidth), out);
  EXPECT_EQ(status.code(), OXB_INVALID_ARGUMENT);
  EXPECT_STREQ(status.text(), "input 'rows' has 6 rows, at most 5");
  const int32_t id = 0;
  const oxb_input only[] = {{sizeof(oxb_input), "input_ids", &id, 1}};
  EXPECT_STREQ(session.run_entry(0, only, out, 1).text(), "'step' needs the input 'rows'");
}

TEST(Outputs, AreReadByTheirNames) {
  Maker m;
  m.builder.output("first", m.x);
  m.builder.output("negative", m.builder.activate("n", m.x, schema::Activation::Tanh));
  m.builder.output("head", m.builder.first_row("row", m.x));
  for (const bool int8 : {false, true}) {
    Graph graph;
    graph.model = m.graph.model;
    graph.weights = m.graph.weights;
    const BuiltModel built(build_file(graph, int8));
    oxb::Session session = built.session();
    std::vector<float> out(2 * kWidth);
    const std::vector<int32_t> ids = {2, 0, 1};
    ASSERT_TRUE(session.run(ids, out).ok());
    EXPECT_NEAR(out[kWidth], 1.0f, 0.02f);
    const auto negative = read_tensor(session, "negative"), head = read_tensor(session, "head");
    ASSERT_TRUE(negative && head);
    ASSERT_EQ(negative->size(), 2 * kWidth) << "as many rows as of the first output";
    EXPECT_NEAR((*negative)[kWidth], 0.7616f, 0.02f);
    ASSERT_EQ(head->size(), kWidth);
    EXPECT_NEAR((*head)[0], 2.0f, 0.04f);
    EXPECT_EQ(graph.main_entry().outputs.size(), 2u);
  }
}

TEST(Outputs, OfOneNameAreRefused) {
  Maker m;
  m.builder.output("first", m.x);
  m.builder.output("second", m.x);
  m.builder.output("second", m.x);
  const BuiltModel built(build_file(m.graph));
  EXPECT_STREQ(built.status().text(), "entry point 'step': two outputs of one name");
}

TEST(Symbols, MayBeMany) {
  Maker m;
  constexpr size_t kInputs = 60;
  for (size_t i = 0; i < kInputs; ++i) {
    const std::string name = "i" + std::to_string(i);
    const uint32_t input = m.builder.float_input(name, 1, m.builder.symbol(name + ".rows", 70));
    if (i == 0) m.builder.output("x0", m.x);
    m.builder.output(name + ".out", input);
  }
  const BuiltModel built(build_file(m.graph));
  oxb::Session session = built.session();
  std::vector<float> rows(70), out(kWidth);
  for (size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<float>(i);
  const int32_t id = 1;
  std::vector<std::string> names;
  for (size_t i = 0; i < kInputs; ++i) names.push_back("i" + std::to_string(i));
  std::vector<oxb_input> inputs = {{sizeof(oxb_input), "input_ids", &id, 1}};
  for (size_t i = 0; i < kInputs; ++i)
    inputs.push_back({sizeof(oxb_input), names[i].c_str(), rows.data(), i});
  const oxb::Status status = session.run_entry(0, inputs, out, 1);
  ASSERT_TRUE(status.ok()) << status.text();
  for (size_t i = 0; i < kInputs; ++i) {
    EXPECT_EQ(read_tensor(session, names[i] + ".out"),
              std::vector<float>(rows.begin(), rows.begin() + static_cast<ptrdiff_t>(i)));
  }
}

TEST(Features, ThatALibraryDoesNotKnowAreRefusedByName) {
  Maker m;
  m.builder.output("y", m.x);
  build_file(m.graph);
  m.graph.model.required_features = {"ring.pinned", "brain.transplant"};
  const BuiltModel built(convert::assemble_file(m.graph.model, std::vector<std::byte>(4096)));
  EXPECT_EQ(built.status().code(), OXB_FILE_UNSUPPORTED);
  EXPECT_STREQ(built.status().text(),
               "this library does not know the feature 'brain.transplant': update it");
}

}  // namespace
}  // namespace oxbow::testing
