#include "converter/formats/gguf_model.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <string_view>

#include "converter/formats/gguf_config.h"
#include "converter/formats/gguf_names.h"
#include "converter/formats/gguf_rope.h"
#include "host/errors.h"
#include "host/folder.h"

namespace oxbow::convert {
namespace {

[[noreturn]] void fail_tensor(const Gguf& gguf, const std::string& name, const std::string& what) {
  throw InputError(gguf.path() + ": tensor " + printable(name) + " " + what);
}

/// Renames the tensors of one file, and lays them out as they were.
class Renamer {
 public:
  Renamer(const Gguf& gguf, const GgufConfig& config, HuggingFaceModel& model)
      : gguf_(gguf), names_(*config.names), sizes_(config.sizes), model_(model) {}

  void rename(const std::string& architecture);

 private:
  void add(const std::string& name, const std::string& to, GgufLayout layout, StoredTensor tensor);
  void turn(const std::string& name, StoredTensor& tensor) const;
  void unpair(const std::string& name, StoredTensor& tensor, uint64_t heads) const;
  void unpack(const std::string& name, StoredTensor& tensor) const;
  void split(const std::string& name, const std::string& to, const StoredTensor& tensor);
  /// Other numbers than those of the file.
  template <typename Change>
  StoredTensor changed(const std::string& name, const StoredTensor& tensor, const Change& change);
  /// The rows of a tensor that has `parts` of them, or a multiple.
  uint64_t rows_of(const std::string& name, const StoredTensor& tensor, uint64_t parts,
                   const std::string& expected) const;

  const Gguf& gguf_;
  const GgufNames& names_;
  const GgufSizes& sizes_;
  HuggingFaceModel& model_;
};

uint64_t Renamer::rows_of(const std::string& name, const StoredTensor& tensor, uint64_t parts,
                          const std::string& expected) const {
  const uint64_t rows = tensor.shape[0];
  if (parts == 0 || rows % parts != 0) {
    fail_tensor(gguf_, name, "is " + tensor.describe() + ", expected " + expected);
  }
  return rows;
}

void Renamer::turn(const std::string& name, StoredTensor& tensor) const {
  if (tensor.shape.size() != 2) {
    fail_tensor(gguf_, name, "is " + tensor.describe() + ", expected a matrix");
  }
  const uint64_t rows = tensor.shape[0], width = tensor.shape[1];
  tensor.shape = {width, rows};
  tensor.strides = {1, width};
}

void Renamer::unpair(const std::string& name, StoredTensor& tensor, uint64_t heads) const {
  const uint64_t rows = rows_of(name, tensor, 2 * heads,
                                "pairs of rows for each of " + std::to_string(heads) + " heads");
  const uint64_t width = tensor.count / rows, pairs = rows / heads / 2;
  tensor.stride_shape = {heads, 2, pairs, width};
  tensor.strides = {2 * pairs * width, width, 2 * width, 1};
}

void Renamer::unpack(const std::string& name, StoredTensor& tensor) const {
  const uint64_t heads = sizes_.heads;
  const uint64_t rows = rows_of(name, tensor, 3 * heads,
                                "queries, keys and values of " + std::to_string(heads) + " heads");
  const uint64_t width = tensor.count / rows, head = rows / heads / 3;
  tensor.stride_shape = {heads, 3, head, width};
  tensor.strides = {head * width, heads * head * width, width, 1};
}

template <typename Change>
StoredTensor Renamer::changed(const std::string& name, const StoredTensor& tensor,
                              const Change& change) {
  if (tensor.dtype != Dtype::kF32) {
    fail_tensor(gguf_, name, "is " + tensor.describe() + ", expected F32");
  }
  std::vector<float>& values = model_.computed.emplace_back(to_floats(tensor));
  for (float& value : values) value = change(value);
  StoredTensor out = tensor;
  out.bytes = std::as_bytes(std::span(values));
  return out;
}

void Renamer::split(const std::string& name, const std::string& to, const StoredTensor& tensor) {
  constexpr std::string_view kLetters = "rwkvag";
  if (tensor.dtype != Dtype::kF32 || tensor.count % kLetters.size() != 0) {
    fail_tensor(gguf_, name, "is " + tensor.describe() + ", expected six vectors of F32");
  }
  const uint64_t width = tensor.count / kLetters.size();
  for (size_t i = 0; i < kLetters.size(); ++i) {
    StoredTensor part = tensor;
    part.shape = {width};
    part.count = width;
    part.bytes = tensor.bytes.subspan(i * width * sizeof(float), width * sizeof(float));
    model_.tensors.emplace(to + kLetters[i], std::move(part));
  }
}

void Renamer::add(const std::string& name, const std::string& to, GgufLayout layout,
                  StoredTensor tensor) {
  switch (layout) {
    case GgufLayout::kSame:
      break;
    case GgufLayout::kTransposed:
      turn(name, tensor);
      break;
    case GgufLayout::kQueryPairs:
      unpair(name, tensor, sizes_.heads);
      break;
    case GgufLayout::kKeyPairs:
      unpair(name, tensor, sizes_.kv_heads);
      break;
    case GgufLayout::kPackedTogether:
      unpack(name, tensor);
      break;
    case GgufLayout::kTaps:
      // A single tap may have lost its dimension too.
      if (tensor.shape.size() == 1) tensor.shape.push_back(1);
      tensor.shape.insert(tensor.shape.begin() + 1, 1);
      break;
    case GgufLayout::kFlat:
      tensor.shape = {tensor.count};
      break;
    case GgufLayout::kHeads:
      rows_of(name, tensor, sizes_.heads, "a multiple of " + std::to_string(sizes_.heads));
      tensor.shape = {sizes_.heads, tensor.count / sizes_.heads};
      break;
    case GgufLayout::kSixVectors:
      return split(name, to, tensor);
    case GgufLayout::kPlusOne:
      tensor = changed(name, tensor, [](float x) { return x - 1; });
      break;
    case GgufLayout::kMinusExp:
    case GgufLayout::kMinusExpFlat:
      tensor = changed(name, tensor, [](float x) { return std::log(-x); });
      if (layout == GgufLayout::kMinusExpFlat) tensor.shape = {tensor.count};
      break;
  }
  model_.tensors.emplace(to, std::move(tensor));
}

/// "blk.7.attn_q.weight" is tensor "attn_q.weight" of layer 7; nothing for other names.
struct LayerName {
  uint64_t layer;
  std::string_view name;
};
std::optional<LayerName> split_layer(std::string_view name) {
  constexpr std::string_view kBlock = "blk.";
  if (!name.starts_with(kBlock)) return std::nullopt;
  const char *begin = name.data() + kBlock.size(), *end = name.data() + name.size();
  uint64_t layer = 0;
  const auto [rest, error] = std::from_chars(begin, end, layer);
  if (error != std::errc() || rest == end || *rest != '.') return std::nullopt;
  // Each layer has one name only.
  if (std::string_view(begin, rest) != std::to_string(layer)) return std::nullopt;
  return LayerName{layer, std::string_view(rest + 1, end)};
}

const GgufName* find_name(std::span<const GgufName> list, std::string_view name) {
  const auto found =
      std::find_if(list.begin(), list.end(), [&](const GgufName& row) { return row.from == name; });
  return found == list.end() ? nullptr : &*found;
}

void Renamer::rename(const std::string& architecture) {
  std::string unknown;
  for (const auto& [name, tensor] : gguf_.tensors()) {
    const std::optional<LayerName> layer = split_layer(name);
    const GgufName* row =
        layer ? find_name(names_.inner, layer->name) : find_name(names_.outer, name);
    if (row == nullptr || (layer && layer->layer >= sizes_.layers)) {
      if (!is_rope_tensor(name)) unknown += (unknown.empty() ? "" : ", ") + printable(name);
      continue;
    }
    const std::string prefix =
        layer ? std::string(names_.layer) + std::to_string(layer->layer) + "." : std::string();
    add(name, prefix + std::string(row->to), row->layout, tensor);
  }
  if (!unknown.empty()) {
    throw InputError(gguf_.path() + ": tensors that " + architecture + " with " +
                     std::to_string(sizes_.layers) +
                     " layers does not know: " + printable(unknown, 400));
  }
  // By the names that the file should have used; the rest is up to the importer.
  for (const GgufName& row : names_.outer) {
    if (row.required) gguf_tensor(gguf_, std::string(row.from));
  }
  for (uint32_t i = 0; i < sizes_.layers; ++i) {
    for (const GgufName& row : names_.inner) {
      if (row.required)
        gguf_tensor(gguf_, "blk." + std::to_string(i) + "." + std::string(row.from));
    }
  }
}

/// Files that are not one whole model.
void refuse_parts(const Gguf& gguf) {
  const std::string type = gguf.text("general.type").value_or("model");
  if (type != "model") {
    gguf.fail("general.type", "a model; a file of another kind is none by itself");
  }
  if (gguf.integer("split.count").value_or(1) > 1) {
    gguf.fail("split.count",
              "the whole model in one file; join the parts with llama-gguf-split --merge");
  }
  const auto is_block = [](const auto& entry) { return dtype_block(entry.second.dtype) > 1; };
  constexpr uint64_t kVersion = 2;
  if (gguf.integer("general.quantization_version").value_or(kVersion) != kVersion &&
      std::any_of(gguf.tensors().begin(), gguf.tensors().end(), is_block)) {
    gguf.fail("general.quantization_version", "2, today's layout of blocks");
  }
}

}  // namespace

HuggingFaceModel to_hugging_face(const Gguf& gguf) {
  refuse_parts(gguf);
  GgufConfig config = read_gguf_config(gguf);
  HuggingFaceModel model;
  Renamer(gguf, config, model).rename(*gguf.text("general.architecture"));
  model.config = std::move(config.json);
  return model;
}

GgufFile::GgufFile(const std::string& path) : TensorFile(path), gguf_(path, file_bytes()) {
  HuggingFaceModel model = to_hugging_face(gguf_);
  tensors_ = std::move(model.tensors);
  config_ = std::move(model.config);
  computed_ = std::move(model.computed);
}

std::string find_gguf(const std::string& path) {
  constexpr std::string_view kEnding = ".gguf";
  if (is_file(path)) return path;
  std::vector<std::string> found;
  for (const std::string& name : names_in(path)) {
    for (const char* other : {".safetensors", ".bin", ".pt", ".pth", ".ckpt"}) {
      if (name.ends_with(other)) return "";
    }
    if (name.ends_with(kEnding)) found.push_back(name);
  }
  if (found.size() > 1) {
    throw InputError(path + " has " + std::to_string(found.size()) + " GGUF files, " +
                     printable(found[0]) + " and others; give the one to convert instead of " +
                     "the directory");
  }
  return found.empty() ? "" : path + "/" + found[0];
}

}  // namespace oxbow::convert
