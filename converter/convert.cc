#include "converter/convert.h"

#include <algorithm>
#include <map>

#include "converter/formats/checkpoint.h"
#include "converter/importers.h"
#include "converter/measure/calibrate.h"
#include "converter/measure/quality.h"
#include "converter/text/model_texts.h"
#include "converter/writer.h"
#include "host/describe.h"
#include "host/errors.h"
#include "host/io_file.h"
#include "host/macs.h"
#include "host/safetensors.h"

namespace oxbow::convert {
namespace {

constexpr size_t kWorstWeights = 5;
// More text than any measurement reads.
constexpr size_t kMaxCalibrationBytes = size_t{256} << 20;

using KeyValues = std::vector<std::unique_ptr<schema::KeyValueT>>;

void add_values(KeyValues& list, const std::map<std::string, std::string>& values) {
  for (const auto& [key, value] : values) {
    auto pair = std::make_unique<schema::KeyValueT>();
    pair->key = key;
    pair->value = value;
    list.push_back(std::move(pair));
  }
  std::sort(list.begin(), list.end(), [](const auto& a, const auto& b) { return a->key < b->key; });
}

struct Built {
  Graph graph;
  PackedWeights packed;

  std::vector<std::byte> file() const { return assemble_file(graph.model, packed.data); }
};

bool takes_tokens(const Graph& graph) {
  return graph.tensor(graph.main_entry().tokens).type == schema::DataType::I32;
}

TokenSource read_calibration(const std::string& path) {
  TokenSource source;
  if (path.empty()) return source;
  if (!path.ends_with(".safetensors")) {
    source.text = read_file(path, kMaxCalibrationBytes);
    if (source.text.empty()) throw InputError(path + " is empty, expected a text");
    return source;
  }
  const Safetensors file(path);
  for (const auto& [name, tensor] : file.tensors()) {
    if (name != "input_ids" && !name.ends_with(".input_ids")) continue;
    for (const int64_t id : file.integers(name)) {
      // What does not fit is no token either way; it is refused when it is used.
      source.tokens.push_back(id >= 0 && id <= INT32_MAX ? static_cast<int32_t>(id) : -1);
    }
  }
  if (source.tokens.size() < 2) {
    throw InputError(path + " has no tokens, expected integers called input_ids");
  }
  return source;
}

/// Float, and with everything readable that calibration looks at.
Built build_observed(const Checkpoint& checkpoint, const ConvertOptions& options,
                     ModelTexts& texts) {
  Built built;
  built.graph = import_checkpoint(checkpoint, options.import_options);
  remove_dead(built.graph, true);
  observe_matrices(built.graph);
  plan(built.graph);
  built.packed = pack(built.graph);
  texts.apply(built.graph);
  return built;
}

/// Every pass, for one choice of types; `calibration` is for static scales only.
Built build(const Checkpoint& checkpoint, const ConvertOptions& options, ModelTexts& texts,
            const QuantizeOptions& types, const Calibration& calibration = {}) {
  Built built;
  Graph& graph = built.graph;
  graph = import_checkpoint(checkpoint, options.import_options);
  if (options.debug_outputs) {
    for (const DebugOutput& output : graph.debug_outputs) {
      schema::EntryPointT& entry = *graph.model.entry_points[output.entry];
      entry.kept.push_back(output.tensor);
      entry.kept_names.push_back(output.name);
    }
  }
  fuse(graph);
  // A float file is the judge of memories, so it keeps even those that only others look at.
  remove_dead(graph, options.debug_outputs || !types.activations);
  quantize(graph, types);
  if (types.static_scales) {
    if (const size_t unseen = set_static_scales(graph, calibration); unseen != 0) {
      graph.warnings.push_back(std::to_string(unseen) +
                               " matrices saw nothing during calibration and keep a scale for each "
                               "row: calibrate with a longer text");
    }
  }
  plan(graph);
  built.packed = pack(graph);
  texts.apply(graph);
  return built;
}

void check_source(const TokenSource& source, const Graph& graph) {
  if (!source.is_random() && !takes_tokens(graph)) {
    throw UsageError("--calibrate is for models that take tokens; this one takes rows of numbers");
  }
  if (!source.text.empty() && !graph.model.tokenizer) {
    throw UsageError(
        "--calibrate with a text needs a tokenizer: give --tokenizer FILE or --tokenizer byte, or "
        "tokens as a .safetensors file");
  }
}

void write_metadata(const Checkpoint& checkpoint, const ConvertOptions& options, Built& built) {
  schema::ModelT& model = built.graph.model;
  schema::MetadataT& metadata = *model.metadata;
  metadata.parameters = checkpoint.parameters();
  metadata.macs_per_token = macs_per_token(model);
  metadata.source_hash = checkpoint.source_hash();
  metadata.converter = "oxbow-convert " + std::to_string(OXB_VERSION_MAJOR) + "." +
                       std::to_string(OXB_VERSION_MINOR) + "." + std::to_string(OXB_VERSION_PATCH);
  add_values(metadata.settings, {{"weights", options.quantize.weights ? "int8" : "f32"},
                                 {"activations", !options.quantize.activations    ? "f32"
                                                 : options.quantize.static_scales ? "static"
                                                                                  : "dynamic"},
                                 {"debug_outputs", options.debug_outputs ? "true" : "false"}});
  add_values(metadata.sizes, {{"checkpoint_bytes", std::to_string(checkpoint.tensor_bytes())}});

  std::vector<std::pair<double, std::string>> errors;
  for (const auto& [name, error] : built.packed.errors) errors.emplace_back(-error, name);
  std::sort(errors.begin(), errors.end());
  errors.resize(std::min(errors.size(), kWorstWeights));
  std::map<std::string, std::string> worst;
  for (const auto& [error, name] : errors) {
    char text[32];
    std::snprintf(text, sizeof(text), "%.6f", -error);
    worst[kWeightErrorKey + name] = text;
  }
  add_values(metadata.quality, worst);
}

}  // namespace

std::vector<std::string> convert(const ConvertOptions& options) {
  if (options.quantize.static_scales && options.calibration_file.empty()) {
    throw UsageError(
        "--activations static needs --calibrate FILE: scales are found by running a text");
  }
  const auto progress = [&](const std::string& what) {
    if (options.progress) options.progress(what);
  };
  progress("reading " + options.directory);
  Checkpoint checkpoint(options.directory, options.extra_tensors, options.key);
  for (const std::string& key : options.ignored_keys) checkpoint.drop_key(key);
  for (const std::string& pattern : options.ignored_tensors) checkpoint.drop_tensors(pattern);
  const TokenSource source = read_calibration(options.calibration_file);
  ModelTexts texts(checkpoint, options.tokenizer);

  Calibration calibration;
  if (options.quantize.static_scales) {
    progress("calibrating");
    const Built observed = build_observed(checkpoint, options, texts);
    check_source(source, observed.graph);
    calibration = calibrate(observed.graph, observed.file(), source);
  }
  progress("building the graph");
  Built built = build(checkpoint, options, texts, options.quantize, calibration);
  if (options.note) {
    for (const std::string& note : checkpoint.notes()) options.note(note);
    for (const std::string& note : texts.notes()) options.note(note);
  }
  check_source(source, built.graph);
  write_metadata(checkpoint, options, built);
  // Rows of floats have no vocabulary to draw from.
  if (options.quantize.weights && takes_tokens(built.graph)) {
    progress("measuring quality");
    const Built reference =
        build(checkpoint, options, texts, {.weights = false, .activations = false});
    add_values(built.graph.model.metadata->quality,
               measure_quality(reference.file(), built.file(), source));
  }
  progress("writing " + options.output);
  write_model(options.output, built.file());
  return built.graph.warnings;
}

}  // namespace oxbow::convert
