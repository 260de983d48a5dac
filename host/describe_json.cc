// A finished model file for programs. docs/json.md tells what the keys mean.

#include <cmath>
#include <cstdio>
#include <iterator>

#include "host/args.h"
#include "host/describe.h"
#include "host/layers.h"
#include "host/macs.h"
#include "host/state_roles.h"
#include "ops/traits.h"

namespace oxbow {
namespace {

using KeyValues = std::vector<std::unique_ptr<schema::KeyValueT>>;

/// Texts of a file's metadata that are numbers or truth values become such.
nlohmann::json typed(const std::string& text) {
  if (text == "true" || text == "false") return text == "true";
  if (const std::optional<uint64_t> integer = parse_integer(text)) return *integer;
  if (const std::optional<double> number = parse_number(text)) return *number;
  return text;
}

nlohmann::json to_json(const KeyValues& list) {
  nlohmann::json object = nlohmann::json::object();
  for (const auto& pair : list) {
    const bool of_weight =
        pair->key.starts_with(kWeightErrorKey) || pair->key.starts_with(kWeightLossKey);
    if (!of_weight) object[pair->key] = typed(pair->value);
  }
  return object;
}

const char* category_text(OpCategory category) {
  constexpr const char* kNames[] = {"matrix", "attention", "norm", "memory", "embedding", "other"};
  static_assert(std::size(kNames) == static_cast<size_t>(OpCategory::kOther) + 1);
  return kNames[static_cast<size_t>(category)];
}

const char* role_text(StateRole role) {
  return role == StateRole::kKeys ? "keys" : role == StateRole::kValues ? "values" : "rows";
}

nlohmann::json tensor_json(const Description& d, size_t index) {
  const schema::TensorT& tensor = *d.model.tensors[index];
  nlohmann::json out = {
      {"name", tensor.name},
      {"kind", schema::EnumNameTensorKind(tensor.kind)},
      {"type", schema::EnumNameDataType(tensor.type)},
      {"rows", tensor.rows},
      {"width", tensor.width},
      {"bytes", tensor.bytes},
      {"offset", tensor.offset},
  };
  if (tensor.layout != schema::Layout::RowMajor) {
    out["layout"] = schema::EnumNameLayout(tensor.layout);
  }
  if (tensor.rows_symbol >= 0) {
    out["rows_symbol"] = d.model.symbols[static_cast<size_t>(tensor.rows_symbol)]->name;
  }
  if (tensor.ring >= 0) out["ring"] = d.model.rings[static_cast<size_t>(tensor.ring)]->name;
  if (tensor.kind == schema::TensorKind::State) out["role"] = role_text(state_role(tensor.name));
  if (tensor.scale_groups != 0) out["scale_groups"] = tensor.scale_groups;
  if (tensor.kind == schema::TensorKind::Activation || tensor.kind == schema::TensorKind::Input) {
    out["first_step"] = d.lives[index].first;
    out["last_step"] = d.lives[index].last;
  }
  return out;
}

/// `layer` below 0: none.
nlohmann::json step_json(const schema::ModelT& model, const schema::StepT& step, int layer,
                         double macs) {
  const auto names = [&](const std::vector<uint32_t>& list) {
    nlohmann::json out = nlohmann::json::array();
    for (const uint32_t index : list) out.push_back(model.tensors[index]->name);
    return out;
  };
  nlohmann::json out = {{"op", schema::EnumNameOpCode(step.op)},
                        {"category", category_text(op_traits(step.op).category)},
                        {"inputs", names(step.inputs)},
                        {"outputs", names(step.outputs)},
                        {"input_tensors", step.inputs},
                        {"output_tensors", step.outputs},
                        {"options", options_text(step)},
                        {"macs_per_token", static_cast<uint64_t>(std::llround(macs))}};
  if (layer >= 0) out["layer"] = layer;
  return out;
}

nlohmann::json entry_json(const schema::ModelT& model, const schema::EntryPointT& entry) {
  nlohmann::json steps = nlohmann::json::array(), kept = nlohmann::json::array(),
                 inputs = nlohmann::json::array(), outputs = nlohmann::json::array();
  for (const uint32_t index : entry.outputs) outputs.push_back(model.tensors[index]->name);
  const std::vector<int> layers = step_layers(model, entry);
  const std::vector<double> macs = step_macs(model, entry);
  for (size_t i = 0; i < entry.steps.size(); ++i) {
    steps.push_back(step_json(model, *entry.steps[i], layers[i], macs[i]));
  }
  for (size_t i = 0; i < entry.kept.size(); ++i) {
    kept.push_back(i < entry.kept_names.size() ? entry.kept_names[i]
                                               : model.tensors[entry.kept[i]]->name);
  }
  for (const uint32_t index : entry_inputs(entry)) {
    const schema::TensorT& tensor = *model.tensors[index];
    nlohmann::json input = {{"name", tensor.name},
                            {"type", schema::EnumNameDataType(tensor.type)},
                            {"width", tensor.width},
                            {"required", index == entry.tokens || tensor.required}};
    if (tensor.rows_symbol != model.tensors[entry.tokens]->rows_symbol) {
      input["max_rows"] = tensor.rows;
    }
    if (tensor.type == schema::DataType::I32) {
      input["limit"] = tensor.limit;
      if (index != entry.tokens) input["default"] = tensor.default_value;
    }
    inputs.push_back(input);
  }
  return {{"name", entry.name},
          {"inputs", inputs},
          {"output", model.tensors[entry.logits]->name},
          {"output_width", model.tensors[entry.logits]->width},
          {"more_outputs", outputs},
          {"max_rows", model.tensors[entry.tokens]->rows},
          {"macs_per_token", macs_per_token(model, entry)},
          {"starts", entry.starts},
          {"any_pieces", entry.any_pieces},
          {"capacity", entry.capacity},
          {"steps", steps},
          {"kept", kept}};
}

/// What activations would need if none took the place of another.
uint64_t side_by_side(const schema::ModelT& model) {
  uint64_t sum = 0;
  for (const auto& tensor : model.tensors) {
    if (is_planned(*tensor)) sum += tensor->bytes;
  }
  return sum;
}

}  // namespace

std::string hash_text(uint64_t hash) {
  char text[17];
  std::snprintf(text, sizeof(text), "%016llx", static_cast<unsigned long long>(hash));
  return text;
}

nlohmann::json to_json(const Description& d) {
  const schema::MetadataT& metadata = *d.model.metadata;
  nlohmann::json out = {
      {"format", 1},
      {"architecture", metadata.architecture},
      {"parameters", metadata.parameters},
      {"macs_per_token", metadata.macs_per_token},
      {"licence", metadata.licence},
      {"source_hash", metadata.source_hash},
      {"converter", metadata.converter},
      {"vocabulary", d.vocabulary},
      {"max_segment", d.max_segment},
      {"task", task_text(d.model.task)},
      {"capacity", d.model.entry_points.back()->capacity},
      {"hash", hash_text(d.hash)},
      {"required_features", d.model.required_features},
      {"settings", to_json(metadata.settings)},
      {"sizes", to_json(metadata.sizes)},
      {"quality", to_json(metadata.quality)},
      {"file", {{"bytes", d.file_bytes}, {"graph", d.graph_bytes}, {"weights", d.weight_bytes}}},
      {"arena",
       {{"session", d.memory.session_bytes},
        {"states", d.memory.state_bytes},
        {"activations", d.memory.activation_bytes},
        {"scratch", d.memory.scratch_bytes},
        {"total", d.memory.arena_bytes}}},
      {"activations_side_by_side", side_by_side(d.model)},
      {"weight_errors", nlohmann::json::array()},
      {"tokenizer",
       d.model.tokenizer ? schema::EnumNameTokenizerKind(d.model.tokenizer->kind) : "None"},
      {"symbols", nlohmann::json::object()},
      {"rings", nlohmann::json::object()},
      {"tensors", nlohmann::json::array()},
      {"entry_points", nlohmann::json::array()},
  };
  for (const auto& symbol : d.model.symbols) out["symbols"][symbol->name] = symbol->max;
  for (const auto& ring : d.model.rings) out["rings"][ring->name] = ring->capacity;
  for (size_t i = 0; i < d.model.tensors.size(); ++i) out["tensors"].push_back(tensor_json(d, i));
  for (const auto& entry : d.model.entry_points) {
    out["entry_points"].push_back(entry_json(d.model, *entry));
  }
  for (const WeightError& weight : d.worst_weights) {
    nlohmann::json one = {{"name", weight.name}, {"error", weight.error}};
    if (weight.loss) one["loss"] = *weight.loss;
    out["weight_errors"].push_back(std::move(one));
  }
  if (!metadata.labels.empty()) out["labels"] = metadata.labels;
  if (const schema::GenerationT* generation = d.model.generation.get()) {
    out["generation"] = {{"start_token", generation->start_token},
                         {"end_token", generation->end_token},
                         {"pad_token", generation->pad_token},
                         {"forced_last_token", generation->forced_last_token},
                         {"forbidden_tokens", generation->forbidden_tokens},
                         {"first_forbidden_tokens", generation->first_forbidden_tokens},
                         {"first_timestamp", generation->first_timestamp}};
  }
  return out;
}

std::string json_text(const nlohmann::json& json) {
  return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace oxbow
