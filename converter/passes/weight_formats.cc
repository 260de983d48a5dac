#include "converter/passes/weight_formats.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "converter/formats/bitnet.h"
#include "converter/passes/rounding.h"
#include "host/errors.h"
#include "runtime/base/tensor.h"

namespace oxbow::convert {
namespace {

using Values = std::span<const float>;

PackError pack_f32(const schema::TensorT&, Values values, const Fit*, std::byte* out) {
  std::memcpy(out, values.data(), values.size_bytes());
  return {};
}

size_t i8_place(Layout layout, size_t width, size_t row, size_t column) {
  if (layout == Layout::kRowMajor) return row * row_bytes(DataType::kI8, width) + column;
  const size_t blocks = ceil_div(width, kBlockColumns);
  const size_t block = row / kBlockRows * blocks + column / kBlockColumns;
  return (block * kBlockRows + row % kBlockRows) * kBlockColumns + column % kBlockColumns;
}

/// Symmetric, the largest magnitude of a group becomes 127.
PackError pack_i8(const schema::TensorT& tensor, Values values, const Fit* fit, std::byte* out) {
  const auto layout = static_cast<Layout>(tensor.layout);
  const size_t width = tensor.width, groups = tensor.scale_groups, group_width = width / groups;
  std::vector<float> scales(size_t{tensor.rows} * groups);
  for (size_t i = 0; i < scales.size(); ++i) {
    float largest = 0;
    for (const float value : values.subspan(i * group_width, group_width)) {
      largest = std::max(largest, std::fabs(value));
    }
    scales[i] = largest / 127.0f;
  }
  std::vector<float> codes(values.size());
  for (size_t i = 0; i < codes.size(); ++i) {
    const float scale = scales[i / group_width];
    const float scaled = scale > 0 ? values[i] / scale : 0.0f;
    codes[i] = std::clamp(std::nearbyint(scaled), -127.0f, 127.0f);
  }
  if (fit != nullptr) {
    std::vector<float> fitted(values.begin(), values.end());
    fit->round(fitted, -127, 127,
               [&](size_t row, size_t, Values) { return Fit::Scale{scales[row]}; });
    std::vector<float> alone(width), together(width);
    for (size_t at = 0; at < codes.size(); at += width) {
      const float scale = scales[at / width];
      for (size_t i = 0; i < width; ++i) {
        alone[i] = codes[at + i] * scale - values[at + i];
        together[i] = fitted[at + i] * scale - values[at + i];
      }
      if (!fit->is_better(alone, together)) std::copy_n(&fitted[at], width, &codes[at]);
    }
  }
  PackError error;
  for (size_t i = 0; i < codes.size(); ++i) {
    out[i8_place(layout, width, i / width, i % width)] =
        static_cast<std::byte>(static_cast<int8_t>(codes[i]));
    error.add(double{codes[i]} * scales[i / group_width], values[i]);
  }
  std::memcpy(out + element_bytes(DataType::kI8, layout, tensor.rows, width), scales.data(),
              scales.size() * sizeof(float));
  return error;
}

template <typename Half, typename Round>
PackError pack_half(const schema::TensorT& tensor, Values values, std::byte* out,
                    const Round& round) {
  PackError error;
  for (size_t i = 0; i < values.size(); ++i) {
    const Half half = round(values[i]);
    if (!std::isfinite(to_f32(half))) {
      throw InputError("tensor " + tensor.name + " has the value " + std::to_string(values[i]) +
                       ", which is too large for 16 bits of this kind; use --weights bf16 or f32");
    }
    std::memcpy(out + i * sizeof(Half), &half, sizeof(Half));
    error.add(to_f32(half), values[i]);
  }
  return error;
}

PackError pack_f16(const schema::TensorT& tensor, Values values, const Fit*, std::byte* out) {
  return pack_half<F16>(tensor, values, out, to_f16);
}

PackError pack_bf16(const schema::TensorT& tensor, Values values, const Fit*, std::byte* out) {
  return pack_half<BF16>(tensor, values, out, to_bf16);
}

/// What the codes of a block are.
template <typename Block>
struct BlockCodes;
template <>
struct BlockCodes<I4Block> {
  using Group = I4Group;
  static constexpr float kLeast = kLeastI4, kMost = kMostI4;
  static constexpr int kPadding = kI4Offset | kI4Offset << 4;
  static Group round(Values values) { return round_to_i4(values); }
  static Fit::Scale scale(const Group& group) { return {to_f32(group.scale)}; }
};
template <>
struct BlockCodes<I4MinBlock> {
  using Group = I4MinGroup;
  static constexpr float kLeast = 0, kMost = kMostI4Min;
  static constexpr int kPadding = 0;
  static Group round(Values values) { return round_to_i4_min(values); }
  static Fit::Scale scale(const Group& group) { return {to_f32(group.scale), to_f32(group.min)}; }
};

template <typename Block>
PackError pack_groups(const schema::TensorT& tensor, Values values, const Fit* fit,
                      std::byte* out) {
  static_assert(kFitColumns == kI4BlockColumns);
  using Codes = BlockCodes<Block>;
  using Group = typename Codes::Group;
  const size_t width = tensor.width, blocks = ceil_div(width, kI4BlockColumns);
  std::vector<Group> groups(size_t{tensor.rows} * blocks);
  const auto group_at = [&](size_t row, size_t column) -> Group& {
    return groups[row * blocks + column / kI4BlockColumns];
  };
  for (size_t row = 0; row < tensor.rows; ++row) {
    for (size_t first = 0; first < width; first += kI4BlockColumns) {
      group_at(row, first) = Codes::round(
          values.subspan(row * width + first, std::min(kI4BlockColumns, width - first)));
    }
  }
  if (fit != nullptr) {
    std::vector<float> codes(values.begin(), values.end());
    std::vector<Group> fitted(groups.size());
    fit->round(codes, Codes::kLeast, Codes::kMost, [&](size_t row, size_t column, Values targets) {
      Group& group = fitted[row * blocks + column / kI4BlockColumns];
      group = Codes::round(targets);
      return Codes::scale(group);
    });
    for (size_t i = 0; i < codes.size(); ++i) {
      fitted[i / width * blocks + i % width / kI4BlockColumns].codes[i % width % kI4BlockColumns] =
          static_cast<int8_t>(codes[i]);
    }
    std::vector<float> alone(width), together(width);
    for (size_t row = 0; row < tensor.rows; ++row) {
      for (size_t i = 0; i < width; ++i) {
        const size_t group = row * blocks + i / kI4BlockColumns, at = i % kI4BlockColumns;
        alone[i] = value_of(groups[group], at) - values[row * width + i];
        together[i] = value_of(fitted[group], at) - values[row * width + i];
      }
      if (!fit->is_better(alone, together))
        std::copy_n(&fitted[row * blocks], blocks, &groups[row * blocks]);
    }
  }
  const size_t count = ceil_div(size_t{tensor.rows}, kBlockRows) * blocks;
  for (size_t i = 0; i < count; ++i) {
    Block block = {};
    std::memset(block.codes, Codes::kPadding, sizeof(block.codes));
    const size_t first = i / blocks * kBlockRows;
    for (size_t row = first; row < std::min<size_t>(first + kBlockRows, tensor.rows); ++row) {
      const Group& group = groups[row * blocks + i % blocks];
      block.scales[row % kBlockRows] = group.scale;
      if constexpr (std::is_same_v<Block, I4MinBlock>) block.mins[row % kBlockRows] = group.min;
      for (size_t c = 0; c < kI4BlockColumns; ++c)
        set_code(block, row % kBlockRows, c, group.codes[c]);
    }
    std::memcpy(out + i * sizeof(Block), &block, sizeof(block));
  }
  PackError error;
  for (size_t i = 0; i < values.size(); ++i) {
    error.add(value_of(group_at(i / width, i % width), i % width % kI4BlockColumns), values[i]);
  }
  return error;
}

/// Rows that have three values, -a, 0 and a, are kept. Otherwise as BitNet b1.58 does: in steps of the mean magnitude of
/// the whole matrix.
PackError pack_ternary(const schema::TensorT& tensor, Values values, const Fit*, std::byte* out) {
  const size_t width = tensor.width, blocks = ceil_div(width, kTernaryBlockColumns);
  const size_t bytes =
      element_bytes(DataType::kTernary, Layout::kBlock8x16, tensor.rows, tensor.width);
  std::memset(out, 0x55, bytes);
  std::vector<float> steps = ternary_rows(values, tensor.rows, width);
  if (steps.empty()) steps.assign(tensor.rows, ternary_step(values));
  PackError error;
  for (size_t row = 0; row < tensor.rows; ++row) {
    for (size_t i = 0; i < width; ++i) {
      const float value = values[row * width + i];
      const int code = ternary_code(value, steps[row]);
      const size_t at = row / kBlockRows * blocks + i / kTernaryBlockColumns;
      TernaryBlock block;
      std::memcpy(&block, out + at * sizeof(block), sizeof(block));
      set_code(block, row % kBlockRows, i % kTernaryBlockColumns, code);
      std::memcpy(out + at * sizeof(block), &block, sizeof(block));
      error.add(double{steps[row]} * code, value);
    }
  }
  std::memcpy(out + bytes, steps.data(), steps.size() * sizeof(float));
  return error;
}

struct Packer {
  schema::DataType type;
  PackError (*pack)(const schema::TensorT& tensor, Values values, const Fit* fit, std::byte* out);
};
constexpr Packer kPackers[] = {
    {schema::DataType::F32, pack_f32},
    {schema::DataType::I8, pack_i8},
    {schema::DataType::F16, pack_f16},
    {schema::DataType::BF16, pack_bf16},
    {schema::DataType::I4, pack_groups<I4Block>},
    {schema::DataType::I4Min, pack_groups<I4MinBlock>},
    {schema::DataType::Ternary, pack_ternary},
};

}  // namespace

bool WeightFormat::in_groups() const {
  return !storages.empty() && (storages[0] == kI4 || storages[0] == kI4Min);
}

bool WeightFormat::is_float() const {
  return storages.empty() || storages[0] == kF16 || storages[0] == kBF16;
}

bool packs_in_parts(schema::DataType type) {
  // Those have one step for a whole matrix.
  return type != schema::DataType::Ternary;
}

bool can_be_fitted(const schema::TensorT& tensor) {
  return is_in_groups(tensor.type) ||
         (tensor.type == schema::DataType::I8 && tensor.scale_groups == 1);
}

bool is_in_groups(schema::DataType type) {
  return type == schema::DataType::I4 || type == schema::DataType::I4Min;
}

bool needs_i8_rows(schema::DataType type) {
  return is_in_groups(type) || type == schema::DataType::Ternary;
}

std::span<const WeightFormat> weight_formats() {
  static const WeightFormat formats[] = {
      {"f32", {}},
      {"f16", {kF16}},
      {"bf16", {kBF16}},
      {"int8", {kI8Blocks, kI8OneScale}},
      // A table is read a row at a time: its bits cost no time, and most of what four would lose.
      {"int4", {kI4, kI8Blocks, kI8OneScale}, 0.15, 0.8},
      {"int4min", {kI4Min, kI8Blocks, kI8OneScale}, 0.15, 0.8},
      {"ternary", {kTernary, kI8Blocks, kI8OneScale}},
  };
  return formats;
}

const WeightFormat& weight_format(std::string_view name) {
  for (const WeightFormat& format : weight_formats()) {
    if (format.name == name) return format;
  }
  throw std::logic_error("no weights of type " + std::string(name));
}

const Storage* choose_storage(const WeightFormat& format, TypeSet types) {
  for (const TypeSet wanted : format.storages) {
    for (const Storage& storage : kStorages) {
      if (storage.bit == wanted && (types & wanted) != 0) return &storage;
    }
  }
  return nullptr;
}

void store_as(const Storage& storage, schema::TensorT& tensor) {
  tensor.type = static_cast<schema::DataType>(storage.type);
  tensor.layout = static_cast<schema::Layout>(storage.layout);
  tensor.scale_groups = has_scales(storage.type) ? 1 : 0;
}

PackError pack_weight(const schema::TensorT& tensor, Values values, const Fit* fit,
                      std::byte* out) {
  for (const Packer& packer : kPackers) {
    if (packer.type == tensor.type) return packer.pack(tensor, values, fit, out);
  }
  throw std::logic_error("no weights of type " +
                         std::string(schema::EnumNameDataType(tensor.type)));
}

}  // namespace oxbow::convert
