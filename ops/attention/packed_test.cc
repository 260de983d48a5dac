// Rings of four bits: attention over them has the bits of attention over the int8 rows that they unpack to.

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <vector>

#include "ops/attention/attention.h"
#include "ops/attention/testing/test_case.h"
#include "ops/testing/op_runner.h"
#include "runtime/base/i4_rows.h"

namespace oxbow {
namespace {

using namespace attention_test;

/// A ring of four bits with the rows of an int8 one, which become what is left of them.
std::unique_ptr<TestTensor> pack_ring(TestTensor& rows, int32_t ring, uint32_t pinned) {
  auto packed = std::make_unique<TestTensor>(rows.name, DataType::kI4Rows, Layout::kRowMajor,
                                             rows.rows, rows.width, rows.scale_groups);
  packed->with_ring(ring, pinned);
  for (uint32_t row = 0; row < rows.rows; ++row) {
    auto* blocks = reinterpret_cast<I4RowBlock*>(packed->data + row * packed->stride());
    for (size_t b = 0; b < rows.width / kI4RowColumns; ++b) {
      pack_i4_block(rows.i8(row) + b * kI4RowColumns, blocks + b);
    }
    unpack_i4_row(blocks, rows.width, rows.i8(row));
    std::memcpy(packed->row_scales(row), rows.row_scales(row), rows.scale_groups * sizeof(float));
  }
  return packed;
}

void expect_bits_of_int8(const Case& c, bool reference_only, ThreadPool* pool = nullptr) {
  Attention wide(c), narrow(c);
  std::vector<std::unique_ptr<TestTensor>> packed;
  for (size_t r = c.plain_sources; r < c.rings.size(); ++r) {
    for (size_t i = 0; i < 2; ++i) {
      const auto ring = static_cast<int32_t>(r);
      packed.push_back(pack_ring(*(i == 0 ? wide.k : wide.v)[r], ring, c.rings[r].pinned));
      narrow.op.inputs[1 + 2 * r + i] = packed.back().get();
    }
  }
  for (Attention* attention : {&wide, &narrow}) {
    attention->op.reference_only = reference_only;
    attention->op.pool = pool;
    attention->op.threads = pool == nullptr ? 1 : 3;
    ASSERT_EQ(attention->bind_and_run(), Status::kOk) << attention->op.message() << c.text();
  }
  EXPECT_EQ(wide.result(), narrow.result()) << c.text();
}

class PackedRings : public ::testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Kernels, PackedRings, ::testing::Values(false, true),
                         [](const auto& test) {
                           return test.param ? std::string("Reference") : std::string("OfThisCore");
                         });

Case of_width(uint32_t head_width, uint32_t rows) {
  Case c;
  c.type = DataType::kI8;
  c.heads = 4;
  c.kv_heads = 2;
  c.head_width = head_width;
  c.rows = rows;
  c.max_rows = rows + 2;
  c.seed = head_width + rows;
  return c;
}

TEST_P(PackedRings, HaveTheBitsOfTheInt8RowsThatTheyUnpackTo) {
  for (const uint32_t head_width : {32, 64, 96, 128}) {
    for (const uint32_t rows : {1, 2, 23, 70}) {
      Case c = of_width(head_width, rows);
      c.rings = {{10, 7, 10}, {90, 50, 80}};
      expect_bits_of_int8(c, GetParam());
      c.rings = {{200, 131, 200}};
      c.value_width = 32;
      c.out_groups = 1;
      expect_bits_of_int8(c, GetParam());
    }
  }
}

TEST_P(PackedRings, MayBeSinksAndMayLieBesideWholeOnes) {
  for (const uint32_t rows : {1, 9}) {
    Case c = of_width(64, rows);
    c.rings = {{7, 0, 7}, {150, 140, 150, 4}};
    c.plain_sources = 1;
    c.alibi = true;
    c.pinned_query = true;
    expect_bits_of_int8(c, GetParam());
    c.own = false;
    c.pinned_query = false;
    expect_bits_of_int8(c, GetParam());
  }
}

TEST_P(PackedRings, MayBeSeenInSteps) {
  for (const uint32_t rows : {1, 30}) {
    Case c = of_width(32, rows);
    c.rings = {{300, 17, 290}};
    c.pattern.emplace();
    c.pattern->kind = schema::PatternKind::Window;
    c.pattern->before = 40;
    c.pattern->dilation = {1, 2, 3, 5};
    expect_bits_of_int8(c, GetParam());
  }
}

TEST_P(PackedRings, HaveTheSameBitsForAnyThreads) {
  testing::Buffer memory(ThreadPool::bytes(3));
  ThreadPool* pool = nullptr;
  Error error;
  ASSERT_EQ(ThreadPool::create(memory.data(), 3, &error, &pool), Status::kOk) << error.text;
  for (const uint32_t rows : {1, 77}) {
    Case c = of_width(64, rows);
    c.rings = {{100, 30, 90}};
    expect_bits_of_int8(c, GetParam(), pool);
  }
  ThreadPool::destroy(pool);
}

TEST(PackedRing, ValuesMustBePackedAsWell) {
  Case c = of_width(64, 2);
  c.rings = {{20, 3, 20}};
  Attention mixed(c);
  const auto keys = pack_ring(*mixed.k[0], 0, 0);
  mixed.op.inputs[1] = keys.get();
  EXPECT_EQ(mixed.bind(), Status::kFileCorrupt);
  EXPECT_NE(std::string(mixed.op.message()).find("of four bits both or neither"), std::string::npos)
      << mixed.op.message();
}

}  // namespace
}  // namespace oxbow
