#include "host/tensor_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "host/errors.h"

namespace oxbow {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<float> counting(size_t count) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), 0.0f);
  return values;
}

StoredTensor view(const std::vector<float>& storage, std::vector<uint64_t> shape,
                  std::vector<uint64_t> strides, uint64_t offset = 0) {
  return view_of("here", Dtype::kF32, std::move(shape), std::move(strides), offset,
                 std::as_bytes(std::span(storage)));
}

std::string refusal(size_t stored, std::vector<uint64_t> shape, std::vector<uint64_t> strides,
                    uint64_t offset = 0) {
  try {
    view(counting(stored), std::move(shape), std::move(strides), offset);
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), ::testing::StartsWith("here "));
    return error.what();
  }
  return "accepted";
}

TEST(TensorView, FollowsStridesAndOffset) {
  const std::vector<float> storage = counting(12);
  EXPECT_THAT(to_floats(view(storage, {2, 3}, {1, 2}, 1)), ElementsAre(1, 3, 5, 2, 4, 6));
  EXPECT_THAT(to_floats(view(storage, {2, 2, 2}, {6, 0, 3})), ElementsAre(0, 3, 0, 3, 6, 9, 6, 9));
  EXPECT_EQ(view(storage, {2, 3}, {1, 2}, 1).bytes.size(), 6 * sizeof(float));
}

TEST(TensorView, OfAPackedTensorHasNoStrides) {
  const std::vector<float> storage = counting(12);
  EXPECT_TRUE(view(storage, {3, 4}, {4, 1}).strides.empty());
  EXPECT_TRUE(view(storage, {1, 4}, {77, 1}, 8).strides.empty());
  EXPECT_THAT(to_floats(view(storage, {1, 2}, {77, 1}, 8)), ElementsAre(8, 9));
  EXPECT_THAT(to_floats(view(storage, {}, {}, 11)), ElementsAre(11));
  EXPECT_EQ(view(storage, {0, 4}, {4, 1}, 1000).count, 0u);
}

TEST(TensorView, ReadsIntegersWithStrides) {
  const int16_t storage[] = {1, -2, 3, -4};
  const StoredTensor tensor =
      view_of("here", Dtype::kI16, {2, 2}, {1, 2}, 0, std::as_bytes(std::span(storage)));
  EXPECT_THAT(to_integers(tensor), ElementsAre(1, 3, -2, -4));
}

TEST(TensorView, MustStayInItsStorage) {
  EXPECT_EQ(refusal(12, {3, 4}, {}), "accepted");
  EXPECT_THAT(refusal(11, {3, 4}, {}), HasSubstr("has 44 bytes, expected 48 for F32[3, 4]"));
  EXPECT_THAT(refusal(12, {3, 4}, {}, 1), HasSubstr("leaves its storage of 48 bytes"));
  EXPECT_THAT(refusal(12, {3, 4}, {1, 4}), HasSubstr("leaves its storage"));
  EXPECT_THAT(refusal(12, {2}, {12}), HasSubstr("leaves its storage"));
  EXPECT_THAT(refusal(12, {2}, {UINT64_MAX}), HasSubstr("leaves its storage"));
  EXPECT_THAT(refusal(12, {3, 3}, {UINT64_MAX / 2, UINT64_MAX / 2}), HasSubstr("leaves"));
  EXPECT_THAT(refusal(12, {1}, {1}, UINT64_MAX), HasSubstr("leaves its storage"));
  EXPECT_THAT(refusal(12, {1}, {1}, UINT64_MAX / 4 + 1), HasSubstr("leaves its storage"));
}

TEST(TensorView, MustHaveASizeThatCanBeCounted) {
  EXPECT_THAT(refusal(12, {uint64_t{1} << 33, uint64_t{1} << 31}, {}), HasSubstr("64 bits"));
  EXPECT_THAT(refusal(12, {uint64_t{1} << 33, uint64_t{1} << 29}, {}), HasSubstr("64 bits"));
  EXPECT_THAT(refusal(12, {0, uint64_t{1} << 33, uint64_t{1} << 31}, {}), HasSubstr("64 bits"));
  EXPECT_THAT(refusal(12, {2, 2}, {1}), HasSubstr("1 strides"));
  EXPECT_THAT(refusal(12, std::vector<uint64_t>(17, 1), {}), HasSubstr("at most 16"));
}

TEST(TensorView, OfFewElementsDoesNotGrowWithoutLimit) {
  EXPECT_EQ(refusal(1, {1024, 1024}, {0, 0}), "accepted");
  EXPECT_THAT(refusal(1, {1024, 1025}, {0, 0}), HasSubstr("only 1 stored elements"));
  EXPECT_THAT(refusal(12, {uint64_t{1} << 40, 2}, {0, 1}), HasSubstr("only 2 stored elements"));
}

}  // namespace
}  // namespace oxbow
