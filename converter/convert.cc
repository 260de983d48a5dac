#include "converter/convert.h"

#include <algorithm>
#include <map>

#include "converter/checkpoint.h"
#include "converter/describe.h"
#include "converter/errors.h"
#include "converter/importers.h"
#include "converter/io_file.h"
#include "converter/quality.h"
#include "converter/tokenizer.h"
#include "converter/writer.h"

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

/// What a tokenizer must know: the tokens a model gives, or takes when it gives something else.
uint32_t vocabulary(const Graph& graph) {
  const bool gives_tokens =
      graph.model.task != schema::Task::Classify && graph.model.task != schema::Task::Encode;
  const schema::EntryPointT& entry = graph.main_entry();
  return gives_tokens ? graph.tensor(entry.logits).width : graph.tensor(entry.tokens).limit;
}

bool takes_tokens(const Graph& graph) {
  return graph.tensor(graph.main_entry().tokens).type == schema::DataType::I32;
}

std::string tokenizer_source(const ConvertOptions& options) {
  if (!options.tokenizer.empty()) return options.tokenizer;
  const std::string beside = options.directory + "/char_vocab.json";
  return file_exists(beside) ? beside : "";
}

/// Every pass, for one choice of types.
Built build(const Checkpoint& checkpoint, const ConvertOptions& options,
            const QuantizeOptions& types) {
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
  plan(graph);
  built.packed = pack(graph);
  if (const std::string source = tokenizer_source(options); !source.empty()) {
    graph.model.tokenizer = read_tokenizer(source, vocabulary(graph));
  }
  return built;
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
                                 {"activations", options.quantize.activations ? "dynamic" : "f32"},
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
  const auto progress = [&](const std::string& what) {
    if (options.progress) options.progress(what);
  };
  progress("reading " + options.directory);
  const Checkpoint checkpoint(options.directory, options.extra_tensors);
  std::string text;
  if (!options.calibration_file.empty()) {
    text = read_file(options.calibration_file, kMaxCalibrationBytes);
    if (text.empty()) throw InputError(options.calibration_file + " is empty, expected a text");
  }

  progress("building the graph");
  Built built = build(checkpoint, options, options.quantize);
  if (!text.empty() && !built.graph.model.tokenizer) {
    throw UsageError("--calibrate needs a tokenizer: give --tokenizer FILE or --tokenizer byte");
  }
  write_metadata(checkpoint, options, built);
  // Rows of floats have no vocabulary to draw from.
  if (options.quantize.weights && takes_tokens(built.graph)) {
    progress("measuring quality");
    const Built reference = build(checkpoint, options, {.weights = false, .activations = false});
    add_values(built.graph.model.metadata->quality,
               measure_quality(reference.file(), built.file(), text));
  }
  progress("writing " + options.output);
  write_model(options.output, built.file());
  return built.graph.warnings;
}

}  // namespace oxbow::convert
