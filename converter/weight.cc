#include "converter/weight.h"

#include <algorithm>
#include <bit>
#include <stdexcept>

#include "runtime/base/hadamard.h"

namespace oxbow::convert {
namespace {

/// What is smaller stays in memory: norms and biases, and all of a test's model.
constexpr size_t kSmallFloats = size_t{64} << 10;
constexpr size_t kFloatsAtOnce = size_t{1} << 20;
/// A multiple of the rows that any layout of weights keeps together.
constexpr uint32_t kRowsTogether = 64;
constexpr uint32_t kLowHalf = 0xffff;

/// bfloat16, as most checkpoints are stored.
bool fits_upper_half(std::span<const float> values) {
  return std::all_of(values.begin(), values.end(),
                     [](float value) { return (std::bit_cast<uint32_t>(value) & kLowHalf) == 0; });
}

bool is_zero(float value) { return std::bit_cast<uint32_t>(value) == 0; }

}  // namespace

FloatFile::Block FloatFile::append(std::span<const float> values) {
  const Block block = {end_, fits_upper_half(values)};
  if (!block.is_short) {
    file_.write_at(end_, std::as_bytes(values));
    end_ += values.size_bytes();
    return block;
  }
  std::vector<uint16_t> halves;
  for (size_t first = 0; first < values.size(); first += kFloatsAtOnce) {
    halves.clear();
    for (const float value :
         values.subspan(first, std::min(kFloatsAtOnce, values.size() - first))) {
      halves.push_back(static_cast<uint16_t>(std::bit_cast<uint32_t>(value) >> 16));
    }
    file_.write_at(end_, std::as_bytes(std::span(halves)));
    end_ += std::as_bytes(std::span(halves)).size();
  }
  return block;
}

void FloatFile::read(const Block& block, uint64_t first, std::span<float> values) const {
  if (!block.is_short) {
    file_.read_at(block.offset + first * sizeof(float), std::as_writable_bytes(values));
    return;
  }
  std::vector<uint16_t> halves(values.size());
  file_.read_at(block.offset + first * sizeof(uint16_t), std::as_writable_bytes(std::span(halves)));
  for (size_t i = 0; i < halves.size(); ++i) {
    values[i] = std::bit_cast<float>(uint32_t{halves[i]} << 16);
  }
}

Weight::Weight(uint32_t rows, uint32_t width, std::vector<float> values,
               const std::shared_ptr<FloatFile>& file)
    : rows_(rows), width_(width) {
  if (values.size() != size_t{rows} * width) throw std::logic_error("a weight of the wrong size");
  // Zeros need no room: without either, they are what is read.
  if (std::all_of(values.begin(), values.end(), is_zero)) return;
  if (file == nullptr || values.size() < kSmallFloats) {
    memory_ = std::make_shared<const std::vector<float>>(std::move(values));
  } else {
    block_ = file->append(values);
    file_ = file;
  }
}

std::vector<float> Weight::read(uint32_t first, uint32_t count) const {
  if (count > rows_ || first > rows_ - count) throw std::logic_error("rows a weight does not have");
  const size_t begin = size_t{first} * width_;
  std::vector<float> values(size_t{count} * width_);
  if (memory_ != nullptr) {
    std::copy_n(memory_->begin() + static_cast<ptrdiff_t>(begin), values.size(), values.begin());
  } else if (file_ != nullptr) {
    file_->read(block_, begin, values);
  }
  for (const Change& change : changes_) apply(change, first, values);
  return values;
}

void Weight::apply(const Change& change, uint32_t first, std::span<float> values) const {
  const auto each = [&](const auto& body) {
    for (size_t i = 0; i < values.size(); ++i) body(values[i], first + i / width_, i % width_);
  };
  const std::vector<float>& factors = change.factors;
  switch (change.kind) {
    case Change::kMultiplyRows:
      return each([&](float& value, size_t row, size_t) { value *= factors[row]; });
    case Change::kMultiplyColumns:
      return each([&](float& value, size_t, size_t column) { value *= factors[column]; });
    case Change::kDivideColumns:
      return each([&](float& value, size_t, size_t column) { value /= factors[column]; });
    case Change::kTurn: {
      std::vector<double> row(change.block);
      for (size_t at = 0; at < values.size(); at += row.size()) {
        std::copy_n(values.begin() + static_cast<ptrdiff_t>(at), row.size(), row.begin());
        hadamard_row(row.data(), row.size(), row.size());
        for (size_t i = 0; i < row.size(); ++i) {
          values[at + i] = static_cast<float>(row[i] / static_cast<double>(row.size()));
        }
      }
    }
  }
}

void Weight::multiply_rows(std::span<const float> factors) {
  changes_.push_back({Change::kMultiplyRows, {factors.begin(), factors.end()}});
}

void Weight::multiply_columns(std::span<const float> factors) {
  changes_.push_back({Change::kMultiplyColumns, {factors.begin(), factors.end()}});
}

void Weight::divide_columns(std::span<const float> divisors) {
  changes_.push_back({Change::kDivideColumns, {divisors.begin(), divisors.end()}});
}

void Weight::turn_rows(uint32_t block) { changes_.push_back({Change::kTurn, {}, block}); }

void Weight::change_inputs(std::span<float> rows) const {
  for (const Change& change : changes_) {
    if (change.kind == Change::kTurn) hadamard_row(rows.data(), rows.size(), change.block);
    if (change.kind != Change::kMultiplyColumns && change.kind != Change::kDivideColumns) continue;
    for (size_t i = 0; i < rows.size(); ++i) {
      const float factor = change.factors[i % width_];
      rows[i] = change.kind == Change::kDivideColumns ? rows[i] * factor : rows[i] / factor;
    }
  }
}

bool Weight::changes_inputs_as(const Weight& other) const {
  const auto of_columns = [](const Weight& weight) {
    std::vector<Change> changes = weight.changes_;
    std::erase_if(changes, [](const Change& c) { return c.kind == Change::kMultiplyRows; });
    return changes;
  };
  return width_ == other.width_ && of_columns(*this) == of_columns(other);
}

uint32_t rows_at_once(uint32_t width) {
  const size_t rows = kFloatsAtOnce / std::max(width, 1u);
  return std::max(static_cast<uint32_t>(rows) / kRowsTogether, 1u) * kRowsTogether;
}

}  // namespace oxbow::convert
