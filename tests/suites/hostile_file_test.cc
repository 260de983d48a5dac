// Broken model files: an error or a run, never a crash. Meant to be run under the sanitizers too.

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "runtime/api/oxbow.h"
#include "tests/support/edit_model.h"
#include "tests/support/files.h"
#include "tests/support/tiny_checkpoint.h"

namespace oxbow::testing {
namespace {

// Opens the file, and if that works feeds it a few segments. Returns the status of the first failure.
oxb_status open_and_run(std::span<const std::byte> file, oxb_error* error) {
  oxb_model* model = nullptr;
  oxb_status status = oxb_model_open_memory(file.data(), file.size(), nullptr, &model, error);
  if (status != OXB_OK) return status;
  oxb_model_info info = OXB_MODEL_INFO_INIT;
  EXPECT_EQ(oxb_model_get_info(model, &info, error), OXB_OK);
  oxb_plan plan = OXB_PLAN_INIT;
  status = oxb_session_plan(model, nullptr, &plan, error);
  const size_t bytes = plan.arena_bytes;
  // A changed file may honestly ask for more than this test wants to give.
  if (status == OXB_OK && bytes < (size_t{64} << 20) && info.output_width < 65536) {
    std::vector<std::byte> arena(bytes);
    oxb_session* session = nullptr;
    status = oxb_session_create(model, &plan, arena.data(), arena.size(), &session, error);
    if (status == OXB_OK) {
      const int32_t tokens[] = {1, 0, 2, 3, 4};
      std::vector<float> logits(size_t{5} * info.output_width);
      for (const size_t count : {1, 5, 5, 3}) {
        if (count > info.max_segment) continue;
        status =
            oxb_session_run(session, tokens, count, count, logits.data(), logits.size(), error);
        if (status != OXB_OK) break;
      }
      std::vector<float> rows;
      size_t tensors = 0;
      EXPECT_EQ(oxb_session_tensor_count(session, &tensors, error), OXB_OK);
      for (size_t i = 0; i < tensors; ++i) {
        oxb_tensor_info tensor = OXB_TENSOR_INFO_INIT;
        EXPECT_EQ(oxb_session_tensor_info(session, i, &tensor, error), OXB_OK);
        rows.resize(size_t{tensor.rows} * tensor.width);
        EXPECT_EQ(oxb_session_tensor_read(session, i, rows.data(), rows.size(), error), OXB_OK);
      }
      oxb_session_destroy(session);
    }
  }
  oxb_model_close(model);
  return status;
}

class HostileFile : public ::testing::TestWithParam<const char*> {
 protected:
  HostileFile() : model_(tiny_model(GetParam())) {}
  TinyModel model_;
};

TEST_P(HostileFile, TheUnchangedFileRuns) {
  oxb_error error = OXB_ERROR_INIT;
  EXPECT_EQ(open_and_run(model_.bytes(), &error), OXB_OK) << error.text;
}

TEST_P(HostileFile, EveryFlippedByteIsAnErrorOrARun) {
  const FilePrefix prefix = read_prefix(model_.bytes());
  size_t refused = 0, ran = 0;
  for (size_t i = 0; i < model_.size; ++i) {
    const std::byte before = model_.data[i];
    model_.data[i] ^= std::byte{0xff};
    oxb_error error = OXB_ERROR_INIT;
    const oxb_status status = open_and_run(model_.bytes(), &error);
    model_.data[i] = before;
    if (status == OXB_OK) {
      ++ran;
    } else {
      ++refused;
      EXPECT_NE(error.text[0], '\0') << "byte " << i << " refused without a word";
    }
    // Everything that is not a weight or padding is covered by a checksum.
    if (i < prefix.graph_bytes) {
      EXPECT_NE(status, OXB_OK) << "byte " << i;
    }
  }
  EXPECT_GE(refused, prefix.graph_bytes);
  EXPECT_GT(ran, 0u);
}

TEST_P(HostileFile, EveryChangedGraphByteWithRightChecksumsIsAnErrorOrARun) {
  const FilePrefix prefix = read_prefix(model_.bytes());
  const std::vector<std::byte> good(model_.bytes().begin(), model_.bytes().end());
  for (const int change : {0xff, 0x01, 0x80}) {
    for (size_t i = 0; i < prefix.graph_bytes; ++i) {
      model_.data[i] ^= static_cast<std::byte>(change);
      repair_hashes(model_.bytes());
      oxb_error error = OXB_ERROR_INIT;
      if (open_and_run(model_.bytes(), &error) != OXB_OK) {
        EXPECT_NE(error.text[0], '\0') << "byte " << i << " refused without a word";
      }
      std::memcpy(model_.data.get(), good.data(), good.size());
    }
  }
}

TEST_P(HostileFile, EveryWordOfTheGraphSetToExtremesIsAnErrorOrARun) {
  const FilePrefix prefix = read_prefix(model_.bytes());
  const std::vector<std::byte> good(model_.bytes().begin(), model_.bytes().end());
  for (const uint32_t extreme : {0u, 1u, 0x7fffffffu, 0x80000000u, 0xffffffffu, 0x10000u}) {
    for (size_t i = 0; i + 4 <= prefix.graph_bytes; i += 4) {
      std::memcpy(model_.data.get() + i, &extreme, sizeof(extreme));
      repair_hashes(model_.bytes());
      oxb_error error = OXB_ERROR_INIT;
      (void)open_and_run(model_.bytes(), &error);
      std::memcpy(model_.data.get(), good.data(), good.size());
    }
  }
}

TEST_P(HostileFile, EveryTruncationIsAnError) {
  for (size_t size = 0; size < model_.size; size += size < 256 ? 1 : 61) {
    // An exact copy, so that a sanitizer sees the first byte read behind the end.
    auto* copy = static_cast<std::byte*>(std::aligned_alloc(64, (size + 63) / 64 * 64 + 64));
    std::memcpy(copy, model_.data.get(), size);
    oxb_error error = OXB_ERROR_INIT;
    EXPECT_EQ(open_and_run({copy, size}, &error), OXB_FILE_CORRUPT) << size;
    EXPECT_NE(error.text[0], '\0');
    std::free(copy);
  }
}

TEST_P(HostileFile, WeightsFullOfNanAndInfinityRunToTheEnd) {
  const FilePrefix prefix = read_prefix(model_.bytes());
  for (const uint32_t pattern : {0x7fc00000u, 0x7f800000u, 0xff800000u, 0x00000001u, 0x7f7fffffu}) {
    for (size_t i = prefix.data_offset; i + 4 <= model_.size; i += 4) {
      std::memcpy(model_.data.get() + i, &pattern, sizeof(pattern));
    }
    oxb_error error = OXB_ERROR_INIT;
    EXPECT_EQ(open_and_run(model_.bytes(), &error), OXB_OK) << error.text;
  }
}

TEST_P(HostileFile, DamagedWeightsAreFoundWhenAskedFor) {
  const FilePrefix prefix = read_prefix(model_.bytes());
  for (const bool damaged : {false, true}) {
    if (damaged) model_.data[prefix.data_offset + 5] ^= std::byte{4};
    oxb_model* model = nullptr;
    oxb_error error = OXB_ERROR_INIT;
    ASSERT_EQ(oxb_model_open_memory(model_.data.get(), model_.size, nullptr, &model, &error),
              OXB_OK);
    EXPECT_EQ(oxb_model_check_weights(model, &error), damaged ? OXB_FILE_CORRUPT : OXB_OK);
    oxb_model_close(model);
  }
}

INSTANTIATE_TEST_SUITE_P(Weights, HostileFile, ::testing::Values("f32", "int8", "static"),
                         [](const auto& test) { return std::string(test.param); });

TEST(HostilePath, WhatIsNotAModelFileIsNamed) {
  const TemporaryDirectory directory;
  const auto open = [](const std::string& path, oxb_error* error) {
    oxb_model* model = nullptr;
    const oxb_status status = oxb_model_open_file(path.c_str(), nullptr, &model, error);
    EXPECT_EQ(model, nullptr);
    return status;
  };
  oxb_error error = OXB_ERROR_INIT;
  EXPECT_EQ(open((directory / "absent.oxb").string(), &error), OXB_FILE_UNREADABLE);
  EXPECT_NE(std::strstr(error.text, "absent.oxb"), nullptr) << error.text;
  EXPECT_EQ(open(directory.path().string(), &error), OXB_FILE_UNREADABLE);
  write_bytes(directory / "empty", {});
  EXPECT_EQ(open((directory / "empty").string(), &error), OXB_FILE_CORRUPT);
  write_bytes(directory / "text", std::vector<std::byte>(200, std::byte{'a'}));
  EXPECT_EQ(open((directory / "text").string(), &error), OXB_FILE_CORRUPT);
  EXPECT_NE(std::strstr(error.text, "not an Oxbow model"), nullptr) << error.text;
}

TEST(HostilePath, AFileThatWasReadMayBeCutOffAndRemovedWhileItIsInUse) {
  const TemporaryDirectory directory;
  TinyModel tiny = tiny_model("int8");
  const std::string path = (directory / "model.oxb").string();
  write_bytes(path, {tiny.bytes().begin(), tiny.bytes().end()});
  const auto logits = [](oxb_model* model) {
    oxb_model_info info = OXB_MODEL_INFO_INIT;
    EXPECT_EQ(oxb_model_get_info(model, &info, nullptr), OXB_OK);
    oxb_plan plan = OXB_PLAN_INIT;
    EXPECT_EQ(oxb_session_plan(model, nullptr, &plan, nullptr), OXB_OK);
    std::vector<std::byte> arena(plan.arena_bytes);
    oxb_session* session = nullptr;
    EXPECT_EQ(oxb_session_create(model, &plan, arena.data(), arena.size(), &session, nullptr),
              OXB_OK);
    std::vector<float> row(info.output_width);
    const int32_t tokens[] = {1, 0, 2};
    EXPECT_EQ(oxb_session_run(session, tokens, 3, 1, row.data(), row.size(), nullptr), OXB_OK);
    oxb_session_destroy(session);
    return row;
  };
  oxb_open_options options = OXB_OPEN_OPTIONS_INIT;
  options.access = OXB_ACCESS_READ;
  oxb_model* model = nullptr;
  ASSERT_EQ(oxb_model_open_file(path.c_str(), &options, &model, nullptr), OXB_OK);
  const std::vector<float> before = logits(model);
  std::filesystem::resize_file(path, 0);
  EXPECT_EQ(logits(model), before);
  std::filesystem::remove(path);
  EXPECT_EQ(logits(model), before);
  EXPECT_EQ(oxb_model_check_weights(model, nullptr), OXB_OK);
  oxb_model_close(model);
}

}  // namespace
}  // namespace oxbow::testing
