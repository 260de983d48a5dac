#include "host/describe.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "host/args.h"
#include "host/errors.h"
#include "host/io_file.h"
#include "ops/traits.h"
#include "runtime/model/file_prefix.h"

namespace oxbow {
namespace {

using KeyValues = std::vector<std::unique_ptr<schema::KeyValueT>>;

class OpenModel {
 public:
  OpenModel(const std::string& path, std::span<const std::byte> bytes) {
    oxb_error error = OXB_ERROR_INIT;
    if (oxb_model_open_memory(bytes.data(), bytes.size(), nullptr, &model_, &error) != OXB_OK) {
      throw InputError(path + ": " + error.text);
    }
  }
  ~OpenModel() { oxb_model_close(model_); }
  OpenModel(const OpenModel&) = delete;
  OpenModel& operator=(const OpenModel&) = delete;
  const oxb_model* get() const { return model_; }

 private:
  oxb_model* model_ = nullptr;
};

std::vector<WeightError> read_errors(const schema::MetadataT& metadata) {
  std::vector<WeightError> errors;
  const std::string prefix = kWeightErrorKey;
  for (const auto& pair : metadata.quality) {
    if (!pair->key.starts_with(prefix)) continue;
    const std::string name = pair->key.substr(prefix.size());
    errors.push_back({name, parse_number(pair->value).value_or(0),
                      parse_number(find_value(metadata.quality, kWeightLossKey + name))});
  }
  std::stable_sort(errors.begin(), errors.end(),
                   [](const WeightError& a, const WeightError& b) { return a.error > b.error; });
  return errors;
}

/// Names in the graph were checked by the runtime; these are read by people only, on terminals too.
void make_printable(schema::MetadataT& metadata) {
  const auto clean = [](std::string& text) { text = printable(text, text.size()); };
  for (std::string* text :
       {&metadata.architecture, &metadata.licence, &metadata.source_hash, &metadata.converter}) {
    clean(*text);
  }
  for (KeyValues* list : {&metadata.settings, &metadata.sizes, &metadata.quality}) {
    for (auto& pair : *list) {
      clean(pair->key);
      clean(pair->value);
    }
  }
  for (std::string& label : metadata.labels) clean(label);
}

}  // namespace

const char* task_text(schema::Task task) {
  switch (task) {
    case schema::Task::Generate:
      return "generate";
    case schema::Task::Translate:
      return "translate";
    case schema::Task::Classify:
      return "classify";
    case schema::Task::FillMask:
      return "fill mask";
    case schema::Task::Encode:
      return "encode";
  }
  return "unknown";
}

std::vector<uint32_t> entry_inputs(const schema::EntryPointT& entry) {
  std::vector<uint32_t> inputs = {entry.tokens};
  inputs.insert(inputs.end(), entry.inputs.begin(), entry.inputs.end());
  return inputs;
}

std::string entry_text(const schema::ModelT& model, const schema::EntryPointT& entry) {
  std::string text = entry.name + ":";
  for (const uint32_t index : entry_inputs(entry)) {
    const schema::TensorT& tensor = *model.tensors[index];
    text += (index == entry.tokens ? " " : ", ") + tensor.name + " " + shape_text(model, tensor);
    if (index != entry.tokens && !tensor.required) {
      text += " (else " + std::to_string(tensor.default_value) + ")";
    }
  }
  const schema::TensorT& output = *model.tensors[entry.logits];
  text += " to " + output.name + " " + shape_text(model, output) + "; ";
  text += entry.starts ? "each run by itself" : "a stream";
  if (!entry.starts) {
    text +=
        entry.capacity == 0 ? " without end" : " of " + grouped_text(entry.capacity) + " tokens";
    text += entry.any_pieces ? ", segmented in any way"
                             : "; results depend on how the input is segmented";
  }
  return text;
}

std::string find_value(const KeyValues& list, const std::string& key) {
  for (const auto& pair : list) {
    if (pair->key == key) return pair->value;
  }
  return "";
}

Description describe_file(const std::string& path) {
  const MappedFile file(path);
  const OpenModel model(path, file.bytes());

  Description d;
  oxb_error error = OXB_ERROR_INIT;
  if (oxb_session_plan(model.get(), nullptr, &d.memory, &error) != OXB_OK) {
    throw InputError(path + ": " + error.text);
  }
  oxb_model_info info = OXB_MODEL_INFO_INIT;
  (void)oxb_model_get_info(model.get(), &info, nullptr);
  d.file_bytes = info.file_bytes;
  d.weight_bytes = info.weight_bytes;
  d.hash = info.hash;
  d.max_segment = info.max_segment;
  d.vocabulary = info.vocabulary;

  // The runtime has verified the buffer; from here on it can be read like our own.
  FilePrefix prefix;
  std::memcpy(&prefix, file.bytes().data(), sizeof(prefix));
  d.graph_bytes = prefix.graph_bytes;
  schema::GetModel(file.bytes().data())->UnPackTo(&d.model);
  make_printable(*d.model.metadata);
  d.lives = lifetimes(d.model);
  d.worst_weights = read_errors(*d.model.metadata);
  return d;
}

std::string type_text(const schema::TensorT& tensor) {
  std::string text = schema::EnumNameDataType(tensor.type);
  if (tensor.scale_groups > 1) text += " x" + std::to_string(tensor.scale_groups);
  if (tensor.static_scale.has_value()) text += " static";
  return text;
}

std::string shape_text(const schema::ModelT& model, const schema::TensorT& tensor) {
  const std::string rows = tensor.rows_symbol >= 0
                               ? model.symbols[static_cast<size_t>(tensor.rows_symbol)]->name
                               : std::to_string(tensor.rows);
  return "[" + rows + ", " + std::to_string(tensor.width) + "]";
}

std::string options_text(const schema::StepT& step) {
  const auto options = op_traits(step.op).options;
  return options == nullptr ? "" : options(step);
}

}  // namespace oxbow
