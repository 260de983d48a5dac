#pragma once

// The float values of weights while a graph is made. Large ones lie in a file, not in memory, and passes do not touch
// them: they note what is to be done when the values are read, a few rows at a time. So a graph can be copied for next
// to nothing, and a model of any size passes through a few megabytes.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "host/temporary_file.h"

namespace oxbow::convert {

/// A file that floats are put aside in, and that nobody else sees.
class FloatFile {
 public:
  /// Beside `target`, where there should be room.
  explicit FloatFile(const std::string& target) : file_(target) {}

  /// Where a block of floats lies; in two bytes each where that loses nothing.
  struct Block {
    uint64_t offset;
    bool is_short;
  };
  Block append(std::span<const float> values);
  void read(const Block& block, uint64_t first, std::span<float> values) const;

 private:
  TemporaryFile file_;
  uint64_t end_ = 0;
};

/// Rows of floats, and what is to be done to them. Copies share the rows.
class Weight {
 public:
  Weight() = default;
  /// `file` may be null: then they stay in memory, as small ones do.
  Weight(uint32_t rows, uint32_t width, std::vector<float> values,
         const std::shared_ptr<FloatFile>& file = nullptr);

  uint32_t rows() const { return rows_; }
  uint32_t width() const { return width_; }
  std::vector<float> values() const { return read(0, rows_); }
  std::vector<float> read(uint32_t first, uint32_t count) const;

  // What is done to the values when they are read, in the order of these calls.

  /// One factor for each row, or each column.
  void multiply_rows(std::span<const float> factors);
  void multiply_columns(std::span<const float> factors);
  void divide_columns(std::span<const float> divisors);
  /// Each row w becomes H w / n in blocks of n.
  void turn_rows(uint32_t block);

  /// Changes rows that enter this matrix so that their products with it are what they were.
  void change_inputs(std::span<float> rows) const;
  /// Whether another matrix asks for the same.
  bool changes_inputs_as(const Weight& other) const;

 private:
  struct Change {
    enum Kind : uint8_t { kMultiplyRows, kMultiplyColumns, kDivideColumns, kTurn } kind;
    std::vector<float> factors;
    uint32_t block = 0;

    friend bool operator==(const Change&, const Change&) = default;
  };
  void apply(const Change& change, uint32_t first, std::span<float> values) const;

  uint32_t rows_ = 0, width_ = 0;
  /// The values, or where they lie.
  std::shared_ptr<const std::vector<float>> memory_;
  std::shared_ptr<const FloatFile> file_;
  FloatFile::Block block_ = {};
  std::vector<Change> changes_;
};

/// Rows of a matrix that are read at once: whole blocks of any layout, and about so many floats.
uint32_t rows_at_once(uint32_t width);

/// Calls visit(first, values) for all rows, some at a time.
template <typename Visit>
void for_each_part(const Weight& weight, const Visit& visit) {
  const uint32_t step = rows_at_once(weight.width());
  for (uint32_t first = 0; first < weight.rows(); first += step) {
    visit(first, weight.read(first, std::min(step, weight.rows() - first)));
  }
}

}  // namespace oxbow::convert
