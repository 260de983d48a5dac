#include "converter/writer.h"

#include <gtest/gtest.h>

#include <cstring>

#include "host/errors.h"
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

}  // namespace
}  // namespace oxbow::convert
