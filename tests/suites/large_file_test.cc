// Files of more than 4 GiB. The weights are a hole in the file but for those at its end, so that it takes no room on disk.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "converter/graph.h"
#include "converter/passes/passes.h"
#include "converter/writer.h"
#include "host/testing/files.h"
#include "runtime/api/oxbow.hpp"
#include "tests/support/files.h"

namespace oxbow::testing {
namespace {

using convert::Graph;
using convert::GraphBuilder;

constexpr uint32_t kWidth = 1024;
constexpr uint32_t kRows = (uint32_t{1} << 20) + 4096;  // of 4 KiB

/// The embedding of a token, which is zeros, and one added to it; then the table's last row but for its values.
Graph large_graph() {
  Graph graph;
  GraphBuilder builder(graph);
  builder.begin_entry({.vocabulary = kRows, .max_segment = 4});
  const uint32_t table = builder.weight("table", 1, kWidth, std::vector<float>(kWidth));
  graph.tensor(table).rows = kRows;
  graph.weights[table] = {};
  const uint32_t x = builder.embedding("x", builder.tokens(), table);
  std::vector<float> behind(kWidth);
  for (uint32_t i = 0; i < kWidth; ++i) behind[i] = static_cast<float>(i);
  const uint32_t row = builder.weight("behind", 1, kWidth, std::move(behind));
  builder.output("y", builder.add("y", x, row));
  graph.model.task = schema::Task::Encode;
  graph.model.metadata = std::make_unique<schema::MetadataT>();
  graph.model.metadata->architecture = "test";
  return graph;
}

TEST(LargeFile, WeightsBeyondFourGiBAreFoundAndChecked) {
  const TemporaryDirectory directory;
  const std::string path = directory / "large.oxb";
  Graph graph = large_graph();
  convert::plan(graph);
  convert::DraftFile draft(path, graph);
  draft.pack(graph, {}, [](uint64_t, uint64_t) {});
  draft.finish(graph.model);
  ASSERT_GT(std::filesystem::file_size(path), uint64_t{1} << 32);

  oxb::Expected<oxb::Model> model = oxb::Model::open(path.c_str());
  ASSERT_TRUE(model) << model.status().text();
  EXPECT_TRUE(model->check_weights().ok());
  oxb::Expected<oxb::Session> session = oxb::Session::create(*model);
  ASSERT_TRUE(session) << session.status().text();
  const std::vector<int32_t> tokens = {0, kRows - 1};
  std::vector<float> out(2 * kWidth, -1.0f);
  ASSERT_TRUE(session->run(tokens, out).ok());
  for (uint32_t i = 0; i < 2 * kWidth; ++i) ASSERT_EQ(out[i], static_cast<float>(i % kWidth));

  // A byte in the middle of the hole.
  std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(int64_t{3} << 30);
  file.put('x');
  file.close();
  model = oxb::Model::open(path.c_str());
  ASSERT_TRUE(model) << model.status().text();
  EXPECT_EQ(model->check_weights().code(), OXB_FILE_CORRUPT);
}

}  // namespace
}  // namespace oxbow::testing
