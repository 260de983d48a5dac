#include "converter/formats/packed_tensors.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "converter/formats/limits.h"
#include "host/errors.h"

namespace oxbow::convert {
namespace {

using nlohmann::json;

constexpr uint32_t kWordBits = 32;

std::string text_of(const json& settings, const char* key, const std::string& fallback) {
  const auto found = settings.find(key);
  return found != settings.end() && found->is_string() ? found->get<std::string>() : fallback;
}

bool flag_of(const json& settings, const char* key, bool fallback) {
  const auto found = settings.find(key);
  return found != settings.end() && found->is_boolean() ? found->get<bool>() : fallback;
}

/// AWQ's order of eight columns in a word, the lowest bits first.
constexpr std::array<uint32_t, 8> kAwqOrder = {0, 2, 4, 6, 1, 3, 5, 7};

}  // namespace

struct PackedTensors::Codes {
  std::vector<int64_t> words;
  uint32_t bits;

  uint32_t each() const { return kWordBits / bits; }
  int32_t at(uint64_t word, uint32_t place) const {
    return static_cast<int32_t>(static_cast<uint64_t>(words[word]) >> (place * bits) &
                                ((1u << bits) - 1));
  }
};

bool PackedTensors::knows(const json& settings) {
  const std::string method = text_of(settings, "quant_method", "");
  return method == "gptq" || method == "awq" || method == "compressed-tensors";
}

PackedTensors::PackedTensors(const std::string& where, const json& settings,
                             const std::vector<std::string>& names, Find find)
    : where_(where + ": quantization_config"), find_(std::move(find)) {
  const std::string method = text_of(settings, "quant_method", "");
  const char* ending = ".qweight";
  if (method == "compressed-tensors") {
    read_compressed(settings);
    ending = way_ == Way::kInt ? ".weight_scale" : ".weight_packed";
  } else {
    way_ = method == "awq" ? Way::kAwq : Way::kGptq;
    bits_ = number(settings, "bits");
    if (bits_ != 4 && (way_ == Way::kAwq || (bits_ != 2 && bits_ != 8))) {
      refuse("bits is " + std::to_string(bits_) + ", expected " +
             (way_ == Way::kAwq ? "4" : "2, 4 or 8"));
    }
    const json& group = settings.contains("group_size") ? settings["group_size"] : json(-1);
    if (!group.is_number_integer() || group.get<int64_t>() == 0 || group.get<int64_t>() < -1 ||
        group.get<int64_t>() > kMaxSize) {
      refuse("group_size is " + printable(group.dump(), 40) +
             ", expected columns or -1, all of them");
    }
    group_ = group.get<int64_t>();
    if (way_ == Way::kAwq) {
      symmetric_ = !flag_of(settings, "zero_point", true);
      const std::string version = text_of(settings, "version", "gemm");
      if (version != "gemm" && version != "GEMM")
        refuse("version is " + printable(version) + ", expected gemm");
    } else {
      symmetric_ = flag_of(settings, "sym", true);
      const std::string format = text_of(settings, "checkpoint_format", "gptq");
      if (format != "gptq" && format != "gptq_v2") {
        refuse("checkpoint_format is " + printable(format) + ", expected gptq or gptq_v2");
      }
      zero_offset_ = format == "gptq" ? 1 : 0;
    }
  }
  for (const std::string& name : names) {
    if (name.ends_with(ending))
      add(name.substr(0, name.size() - std::string_view(ending).size()), find_);
  }
}

void PackedTensors::read_compressed(const json& settings) {
  const std::string format = text_of(settings, "format", "");
  if (format == "pack-quantized") {
    way_ = Way::kPacked;
  } else if (format == "int-quantized" || format == "naive-quantized") {
    way_ = Way::kInt;
  } else {
    refuse("format is " + printable(format) +
           ", expected pack-quantized, int-quantized or naive-quantized");
  }
  const json groups = settings.value("config_groups", json::object());
  if (!groups.is_object() || groups.size() != 1 || !groups.begin()->is_object()) {
    refuse("config_groups are not one group");
  }
  const json weights = groups.begin()->value("weights", json());
  if (!weights.is_object()) refuse("weights are not described");
  bits_ = number(weights, "num_bits");
  if (text_of(weights, "type", "int") != "int" || (bits_ != 4 && bits_ != 8)) {
    refuse("weights are of another type than integers of 4 or 8 bits");
  }
  symmetric_ = flag_of(weights, "symmetric", true);
}

uint32_t PackedTensors::number(const json& settings, const char* key) const {
  const auto found = settings.find(key);
  if (found == settings.end() || !found->is_number_unsigned() || found->get<uint64_t>() > 32) {
    refuse(std::string(key) + " is missing or no small number");
  }
  return found->get<uint32_t>();
}

void PackedTensors::refuse(const std::string& what) const {
  throw InputError(where_ + ": " + what);
}

const StoredTensor& PackedTensors::part(const std::string& name, bool is_real) const {
  const StoredTensor* found = find_(name);
  if (found == nullptr) throw InputError(where_ + ": tensor " + printable(name) + " is missing");
  if (is_float(found->dtype) != is_real || found->shape.empty() || found->shape.size() > 2 ||
      found->count == 0) {
    throw InputError(where_ + ": tensor " + printable(name) + " is " + found->describe() +
                     ", expected a matrix of " + (is_real ? "floats" : "integers"));
  }
  return *found;
}

/// Integers that hold several codes.
const StoredTensor& PackedTensors::packed_words(const std::string& name) const {
  const StoredTensor& found = part(name, false);
  if (found.dtype == Dtype::kI32 && found.shape.size() == 2) return found;
  throw InputError(where_ + ": tensor " + printable(name) + " is " + found.describe() +
                   ", expected a matrix of I32");
}

void PackedTensors::add(const std::string& stem, Find find) {
  Matrix matrix;
  const auto take = [&](const char* ending) {
    if (find(stem + ending) != nullptr) matrix.parts.push_back(stem + ending);
  };
  const uint64_t each = kWordBits / bits_;
  if (way_ == Way::kInt) {
    // Scales of other things, such as keys, have no integers.
    const StoredTensor* codes = find(stem + ".weight");
    if (codes == nullptr || codes->dtype != Dtype::kI8 || codes->shape.size() != 2 ||
        codes->count == 0) {
      return;
    }
    matrix.shape = codes->shape;
    for (const char* ending :
         {".weight", ".weight_scale", ".weight_zero_point", ".input_scale", ".input_zero_point"})
      take(ending);
  } else if (way_ == Way::kPacked) {
    const StoredTensor& codes = packed_words(stem + ".weight_packed");
    const std::vector<int64_t> told = to_integers(part(stem + ".weight_shape", false));
    if (told.size() != 2 || told[0] <= 0 || told[1] <= 0 ||
        static_cast<uint64_t>(told[0]) != codes.shape[0] ||
        (static_cast<uint64_t>(told[1]) + each - 1) / each != codes.shape[1]) {
      refuse("tensor " + printable(stem) + ".weight_shape does not fit to " + codes.describe());
    }
    matrix.shape = {static_cast<uint64_t>(told[0]), static_cast<uint64_t>(told[1])};
    for (const char* ending : {".weight_packed", ".weight_scale", ".weight_shape",
                               ".weight_zero_point", ".weight_g_idx"})
      take(ending);
  } else {
    const StoredTensor& codes = packed_words(stem + ".qweight");
    const bool packs_columns = way_ == Way::kAwq;
    matrix.shape = {codes.shape[1] * (packs_columns ? each : 1),
                    codes.shape[0] * (packs_columns ? 1 : each)};
    for (const char* ending : {".qweight", ".qzeros", ".scales", ".g_idx"}) take(ending);
  }
  matrices_.emplace(stem + ".weight", std::move(matrix));
}

const std::vector<uint64_t>& PackedTensors::shape(const std::string& name) const {
  return matrices_.at(name).shape;
}

const std::vector<std::string>& PackedTensors::parts(const std::string& name) const {
  return matrices_.at(name).parts;
}

std::vector<float> PackedTensors::floats(const std::string& name) const {
  const Matrix& matrix = matrices_.at(name);
  const std::string stem = name.substr(0, name.size() - std::string_view(".weight").size());
  const uint64_t rows = matrix.shape[0], width = matrix.shape[1];
  return way_ == Way::kGptq || way_ == Way::kAwq ? input_first(stem, rows, width)
                                                 : output_first(stem, rows, width);
}

/// GPTQ and AWQ: a row for each input. Words hold inputs, or columns, and zero points columns.
std::vector<float> PackedTensors::input_first(const std::string& stem, uint64_t rows,
                                              uint64_t width) const {
  const Codes codes = {to_integers(packed_words(stem + ".qweight")), bits_};
  const StoredTensor& scales = part(stem + ".scales", true);
  const StoredTensor& stored_zeros = packed_words(stem + ".qzeros");
  const uint64_t each = codes.each();
  const uint64_t groups = scales.shape[0];
  const uint64_t group = group_ < 0 ? width : static_cast<uint64_t>(group_);
  if (scales.shape.size() != 2 || scales.shape[1] != rows || rows % each != 0 ||
      stored_zeros.shape != std::vector<uint64_t>{groups, rows / each} ||
      (width + group - 1) / group != groups) {
    refuse("tensors " + printable(stem) + ".scales, " + scales.describe() + ", and .qzeros, " +
           stored_zeros.describe() + ", do not fit to a matrix of " + std::to_string(rows) +
           " rows of " + std::to_string(width) + " in groups of " + std::to_string(group));
  }
  const Codes zeros = {to_integers(stored_zeros), bits_};
  const std::vector<float> steps = to_floats(scales);
  std::vector<int64_t> of_column;
  if (const StoredTensor* order = optional(stem + ".g_idx"); order != nullptr) {
    of_column = to_integers(part(stem + ".g_idx", false));
    if (of_column.size() != width ||
        std::any_of(of_column.begin(), of_column.end(),
                    [&](int64_t g) { return g < 0 || static_cast<uint64_t>(g) >= groups; })) {
      refuse("tensor " + printable(stem) + ".g_idx does not name a group for each column");
    }
  }
  const bool is_awq = way_ == Way::kAwq;
  std::array<uint32_t, kWordBits> place = {};
  for (uint32_t i = 0; i < each; ++i) place[is_awq ? kAwqOrder[i] : i] = i;
  std::vector<float> out(rows * width);
  for (uint64_t column = 0; column < width; ++column) {
    const uint64_t of =
        of_column.empty() ? column / group : static_cast<uint64_t>(of_column[column]);
    for (uint64_t row = 0; row < rows; ++row) {
      const int32_t code =
          is_awq ? codes.at(column * (rows / each) + row / each, place[row % each])
                 : codes.at(column / each * rows + row, static_cast<uint32_t>(column % each));
      const int32_t zero =
          zeros.at(of * (rows / each) + row / each, place[row % each]) + zero_offset_;
      out[row * width + column] = steps[of * rows + row] * static_cast<float>(code - zero);
    }
  }
  return out;
}

/// compressed-tensors: a row for each output, as the matrix itself has them.
std::vector<float> PackedTensors::output_first(const std::string& stem, uint64_t rows,
                                               uint64_t width) const {
  const bool is_packed = way_ == Way::kPacked;
  const Codes codes = {to_integers(part(stem + (is_packed ? ".weight_packed" : ".weight"), false)),
                       bits_};
  const StoredTensor& scales = part(stem + ".weight_scale", true);
  const uint64_t groups = scales.count % rows == 0 ? scales.count / rows : 0;
  const bool is_one = scales.count == 1;
  if (!is_one && (scales.shape[0] != rows || groups == 0 || width % groups != 0)) {
    refuse("tensor " + printable(stem) + ".weight_scale is " + scales.describe() +
           ", expected one, or so many for each of " + std::to_string(rows) +
           " rows that they divide " + std::to_string(width));
  }
  const std::vector<float> steps = to_floats(scales);
  const uint64_t parts = is_one ? 1 : groups, each = codes.each();
  const int32_t middle = is_packed ? 1 << (bits_ - 1) : 0;
  const uint64_t words = (width + each - 1) / each;
  Codes zeros = {{}, bits_};
  bool zeros_packed = false;
  if (const StoredTensor* stored = optional(stem + ".weight_zero_point"); stored != nullptr) {
    zeros.words = to_integers(part(stem + ".weight_zero_point", false));
    zeros_packed = is_packed && stored->dtype == Dtype::kI32;
    const uint64_t needed = zeros_packed ? (rows + each - 1) / each * parts
                            : is_one     ? 1
                                         : rows * parts;
    if (zeros.words.size() != needed) {
      refuse("tensor " + printable(stem) + ".weight_zero_point is " + stored->describe() +
             ", expected " + std::to_string(needed) + " numbers");
    }
  }
  std::vector<int64_t> of_column;
  if (optional(stem + ".weight_g_idx") != nullptr) {
    of_column = to_integers(part(stem + ".weight_g_idx", false));
    // Some are there without meaning.
    if (of_column.size() != width ||
        std::any_of(of_column.begin(), of_column.end(),
                    [&](int64_t g) { return g < 0 || static_cast<uint64_t>(g) >= parts; })) {
      of_column.clear();
    }
  }
  std::vector<float> out(rows * width);
  for (uint64_t row = 0; row < rows; ++row) {
    for (uint64_t column = 0; column < width; ++column) {
      const uint64_t of =
          of_column.empty() ? column / (width / parts) : static_cast<uint64_t>(of_column[column]);
      const uint64_t at = is_one ? 0 : row * parts + of;
      int64_t code =
          is_packed
              ? codes.at(row * words + column / each, static_cast<uint32_t>(column % each)) - middle
              : codes.words[row * width + column];
      if (zeros_packed) {
        code -= zeros.at(row / each * parts + of, static_cast<uint32_t>(row % each)) - middle;
      } else if (!zeros.words.empty()) {
        // Any number may stand there: wrong ones give wrong floats.
        code -= std::clamp<int64_t>(zeros.words[at], INT32_MIN, INT32_MAX);
      }
      out[row * width + column] = steps[at] * static_cast<float>(code);
    }
  }
  return out;
}

std::string PackedTensors::note() const {
  if (matrices_.empty()) return "";
  std::string text = std::to_string(matrices_.size()) + " matrices are stored in " +
                     std::to_string(bits_) + " bits, " + (symmetric_ ? "symmetric" : "asymmetric");
  text += "; they are read as floats";
  // What has become of them a note of the conversion says.
  return bits_ == 4 ? text +
                          ", whose codes --weights int4 finds again where groups have 32 columns "
                          "in their order"
                    : text;
}

}  // namespace oxbow::convert
