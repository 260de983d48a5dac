// The verifier of graphs, which walks by a table of the schema's fields, says of every change what FlatBuffers' own says.

#include "runtime/model/graph_verifier.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "host/testing/temporary_directory.h"
#include "runtime/model/file_prefix.h"
#include "schema/model_generated.h"
#include "tests/support/files.h"
#include "tests/support/golden.h"
#include "tests/support/hub_folder.h"
#include "tests/support/process.h"

namespace oxbow::testing {
namespace {

constexpr uint32_t kDepth = 16, kTables = 1000000;

bool generated_says(const std::vector<uint8_t>& graph, uint32_t depth, uint32_t tables) {
  flatbuffers::Verifier verifier(graph.data(), graph.size(), depth, tables);
  return schema::VerifyModelBuffer(verifier);
}

bool same(const std::vector<uint8_t>& graph, uint32_t depth = kDepth, uint32_t tables = kTables) {
  return verify_graph(graph.data(), graph.size(), depth, tables) ==
         generated_says(graph, depth, tables);
}

/// Streams with layers for an NPU, and folders of a hub, whose tokenizers have tables of all kinds.
constexpr const char* kStream = "labml_compressive/c1_d32_fullP";

std::vector<std::byte> file_of(const std::string& name) {
  if (name == kStream) {
    return read_bytes(
        golden_model(name, {"--weights", "int8", "--no-quality", "--npu", "example-i8"}));
  }
  const TemporaryDirectory directory;
  make_hub_folder(name, directory / name);
  const std::string model = (directory / "model.oxb").string();
  const CommandResult result =
      run_program("oxbow-convert", {(directory / name).string(), "-o", model, "--no-quality"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  return read_bytes(model);
}

std::vector<uint8_t> graph_of(const std::string& name) {
  const std::vector<std::byte> file = file_of(name);
  FilePrefix prefix;
  std::memcpy(&prefix, file.data(), sizeof(prefix));
  const auto* bytes = reinterpret_cast<const uint8_t*>(file.data());
  return {bytes, bytes + prefix.graph_bytes};
}

class GraphVerifier : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    graph_ = graph_of(GetParam());
    ASSERT_TRUE(verify_graph(graph_.data(), graph_.size(), kDepth, kTables));
  }
  void put(size_t place, uint32_t word) { std::memcpy(&graph_[place], &word, sizeof(word)); }
  uint32_t word(size_t place) const {
    uint32_t value = 0;
    std::memcpy(&value, &graph_[place], sizeof(value));
    return value;
  }

  std::vector<uint8_t> graph_;
};

TEST_P(GraphVerifier, SaysWhatTheGeneratedOneSaysOfEveryWordAndLength) {
  const auto size = static_cast<uint32_t>(graph_.size());
  std::mt19937 random(7);
  size_t refused = 0, kept = 0;
  // Every place in a small graph, and 12,000 changes of a large one.
  const size_t most = std::max<size_t>(1, graph_.size() / 4 * 8 / 12000);
  for (size_t place = 0; place + 4 <= graph_.size(); place += 4 * (1 + random() % most)) {
    const uint32_t before = word(place);
    for (const uint32_t changed : {0u, 1u, before + 1, before - 1, before + 4, before ^ 0x80000000u,
                                   size, static_cast<uint32_t>(random() % size)}) {
      put(place, changed);
      ASSERT_TRUE(same(graph_)) << "word " << changed << " at " << place;
      ++(generated_says(graph_, kDepth, kTables) ? kept : refused);
    }
    put(place, before);
  }
  EXPECT_GT(refused, 100u);
  EXPECT_GT(kept, 100u);
  for (size_t bytes = 0; bytes < graph_.size(); bytes += 1 + bytes / 64) {
    ASSERT_TRUE(same({graph_.begin(), graph_.begin() + static_cast<ptrdiff_t>(bytes)})) << bytes;
  }
}

TEST_P(GraphVerifier, SaysTheSameOfHalfWordsAndBytes) {
  std::mt19937 random(11);
  for (int i = 0; i < 4000; ++i) {
    const size_t place = random() % graph_.size();
    const uint8_t before = graph_[place];
    graph_[place] = static_cast<uint8_t>(i % 2 == 0 ? random() : before + 2);
    ASSERT_TRUE(same(graph_)) << static_cast<int>(graph_[place]) << " at " << place;
    // Some stay, so that a graph is wrong in several places.
    if (i % 16 != 0) graph_[place] = before;
  }
}

TEST_P(GraphVerifier, CountsTablesAndDepthAlike) {
  uint32_t tables = 1;
  for (; !generated_says(graph_, kDepth, tables); ++tables)
    ASSERT_TRUE(same(graph_, kDepth, tables));
  EXPECT_TRUE(verify_graph(graph_.data(), graph_.size(), kDepth, tables));
  EXPECT_FALSE(verify_graph(graph_.data(), graph_.size(), kDepth, tables - 1));
  for (uint32_t depth = 0; depth < 8; ++depth) EXPECT_TRUE(same(graph_, depth)) << depth;
}

INSTANTIATE_TEST_SUITE_P(Graphs, GraphVerifier, ::testing::Values(kStream, "bert", "gpt2", "t5"),
                         [](const auto& tested) { return golden_test_name(tested.param); });

}  // namespace
}  // namespace oxbow::testing
