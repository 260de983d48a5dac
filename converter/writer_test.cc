#include "converter/writer.h"

#include <gtest/gtest.h>

#include <cstring>

#include "converter/testing/pack_all.h"
#include "host/errors.h"
#include "host/io_file.h"
#include "host/testing/files.h"
#include "runtime/base/hash.h"
#include "runtime/model/file_prefix.h"

namespace oxbow::convert {
namespace {

std::vector<std::byte> example() {
  schema::ModelT model;
  model.plan = std::make_unique<schema::MemoryPlanT>();
  model.plan->activations = 0x123456789abcdef0;
  model.metadata = std::make_unique<schema::MetadataT>();
  model.metadata->architecture = "test";
  const std::vector<std::byte> data(100, std::byte{7});
  return assemble_file(model, data);
}

TEST(Writer, ThePrefixTellsWhereEverythingIs) {
  const std::vector<std::byte> file = example();
  FilePrefix prefix;
  std::memcpy(&prefix, file.data(), sizeof(prefix));
  EXPECT_EQ(std::string(prefix.identifier, 4), "OXB1");
  EXPECT_EQ(prefix.version, kFormatVersion);
  EXPECT_EQ(prefix.prefix_bytes, 64u);
  EXPECT_EQ(prefix.data_offset % kSegmentAlignment, 0u);
  EXPECT_GE(prefix.data_offset, prefix.graph_bytes);
  EXPECT_EQ(prefix.data_bytes, 100u);
  EXPECT_EQ(file.size(), prefix.data_offset + prefix.data_bytes);
  EXPECT_EQ(prefix.graph_hash, hash_bytes(file.data() + 64, prefix.graph_bytes - 64));
  EXPECT_EQ(prefix.data_hash, hash_bytes(file.data() + prefix.data_offset, 100));
  EXPECT_EQ(prefix.prefix_hash, hash_bytes(file.data(), 56));
}

TEST(Writer, TheFileIsStillAFlatBuffer) {
  const std::vector<std::byte> file = example();
  FilePrefix prefix;
  std::memcpy(&prefix, file.data(), sizeof(prefix));
  flatbuffers::Verifier verifier(reinterpret_cast<const uint8_t*>(file.data()), prefix.graph_bytes);
  ASSERT_TRUE(schema::VerifyModelBuffer(verifier));
  const schema::Model* model = schema::GetModel(file.data());
  EXPECT_EQ(model->plan()->activations(), 0x123456789abcdef0u);
  EXPECT_EQ(model->metadata()->architecture()->str(), "test");
}

TEST(Writer, AFileTheRuntimeRefusesIsNotWritten) {
  const testing::TemporaryDirectory directory;
  // No steps and no tensors: well formed, and no model.
  EXPECT_THROW(write_model(directory / "model.oxb", example()), InputError);
  EXPECT_EQ(directory.file_count(), 0u);
}

/// A model of one matrix, `rows` of 64.
Graph matrix_graph(uint32_t rows) {
  Graph graph;
  GraphBuilder builder(graph);
  builder.begin_entry({.vocabulary = rows, .max_segment = 4});
  std::vector<float> values(size_t{rows} * 64);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 251) - 125.0f;
  const uint32_t table = builder.weight("table", rows, 64, std::move(values));
  builder.logits(builder.take_rows("x", builder.embedding("e", builder.tokens(), table)), table,
                 GraphBuilder::kNone);
  graph.model.metadata = std::make_unique<schema::MetadataT>();
  graph.model.metadata->architecture = "test";
  return graph;
}

TEST(DraftFile, BecomesTheFileThatIsAssembledInMemoryWhereverItsWeightsEndUp) {
  for (const size_t learnt : {0, 100, 40000}) {
    for (const char* weights : {"f32", "int8"}) {
      const testing::TemporaryDirectory directory;
      const std::string path = directory / "model.oxb";
      // More rows than are packed at once.
      Graph graph = matrix_graph(20011);
      quantize(graph, {.weights = weights, .activations = false});
      plan(graph);
      const testing::PackedWeights packed = testing::pack_all(graph);
      uint64_t told = 0;
      DraftFile draft(path, graph);
      draft.pack(graph, {}, [&](uint64_t done, uint64_t all) {
        EXPECT_LE(done, all);
        told = done;
      });
      EXPECT_GT(told, 0u);
      EXPECT_EQ(draft.errors(), packed.errors);
      EXPECT_EQ(directory.file_count(), 0u);
      graph.model.metadata->architecture += std::string(learnt, '.');
      draft.finish(graph.model);
      const std::vector<std::byte> expected = assemble_file(graph.model, packed.data);
      const MappedFile file(path);
      ASSERT_EQ(file.bytes().size(), expected.size());
      EXPECT_EQ(std::memcmp(file.bytes().data(), expected.data(), expected.size()), 0);
      EXPECT_EQ(directory.file_count(), 1u);
    }
  }
}

}  // namespace
}  // namespace oxbow::convert
