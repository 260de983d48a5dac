#include "converter/convert.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <optional>

#include "converter/formats/checkpoint.h"
#include "converter/formats/sentence_model.h"
#include "converter/importers.h"
#include "converter/measure/calibrate.h"
#include "converter/measure/quality.h"
#include "converter/measure/sample_text.h"
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
// What oxbow verify compares with.
constexpr const char* kReferenceFile = "io.safetensors";
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

TokenSource read_tokens(const std::string& path, const std::string& label) {
  TokenSource source;
  if (path.empty()) return source;
  source.label = label;
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

/// Float, and with everything readable that calibration looks at; scaled where there are sizes of columns.
Built build_observed(const Checkpoint& checkpoint, const ConvertOptions& options, ModelTexts& texts,
                     const ChannelSizes& sizes = {}) {
  Built built;
  built.graph = import_checkpoint(checkpoint, options.import_options);
  remove_dead(built.graph, true);
  if (!sizes.empty()) scale_channels(built.graph, sizes, options.quantize);
  observe_matrices(built.graph);
  plan(built.graph);
  built.packed = pack(built.graph);
  texts.apply(built.graph);
  return built;
}

/// What float runs have told.
struct Observed {
  ChannelSizes sizes;
  /// Static scales only: of the graph as it is, and of the scaled one.
  Calibration plain, scaled;
};

/// Every pass, for one choice of types. `transform` becomes what has been done of it.
Built build(const Checkpoint& checkpoint, const ConvertOptions& options, ModelTexts& texts,
            const QuantizeOptions& types, Transform& transform, const Observed& observed = {}) {
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
  transform.scale = transform.scale && scale_channels(graph, observed.sizes, types) != 0;
  quantize(graph, types);
  transform.turn = transform.turn && turn_matrices(graph) != 0;
  transform.turn_keys = transform.turn_keys && turn_keys(graph) != 0;
  if (types.static_scales) {
    const Calibration& calibration = transform.scale ? observed.scaled : observed.plain;
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

void check_source(const TokenSource& source, const Graph& graph, const std::string& option) {
  if (!source.is_random() && !takes_tokens(graph)) {
    throw UsageError(option + " is for models that take tokens; this one takes rows of numbers");
  }
  if (!source.text.empty() && !graph.model.tokenizer) {
    throw UsageError(option +
                     " with a text needs a tokenizer: give --tokenizer FILE or --tokenizer byte, "
                     "or tokens as a .safetensors file");
  }
}

/// The sample in the tree where the model's tokenizer can read it, else random tokens.
TokenSource sample_source(const Graph& graph, std::span<const std::byte> file) {
  TokenSource source;
  if (!graph.model.tokenizer) return source;
  source.text = sample_text();
  source.label = "the converter's sample text";
  try {
    (void)source.take(Runner(file), source.text.size());
  } catch (const InputError&) {
    return {};
  }
  return source;
}

/// What may be tried, the most first.
std::vector<Transform> candidates(const ConvertOptions& options) {
  if (options.transform) return {*options.transform};
  if (!options.quantize.activations) return {{.scale = true}, {}};
  return {{.scale = true, .turn = true, .turn_keys = true},
          {.scale = true, .turn = true},
          {.turn = true, .turn_keys = true},
          {.turn = true},
          {}};
}

struct Chosen {
  Built built;
  Transform transform;
  Quality quality;
};

/// Of all that may be tried what loses least.
Chosen choose(const Checkpoint& checkpoint, const ConvertOptions& options, ModelTexts& texts,
              const Observed& observed, const Judge& judge) {
  std::optional<Chosen> best;
  std::vector<Transform> tried;
  std::string report;
  for (Transform transform : candidates(options)) {
    Built built = build(checkpoint, options, texts, options.quantize, transform, observed);
    if (std::find(tried.begin(), tried.end(), transform) != tried.end()) continue;
    tried.push_back(transform);
    Quality quality = judge.compare(built.file());
    char loss[32];
    std::snprintf(loss, sizeof(loss), "%.4g", quality.loss());
    report += (report.empty() ? "" : "; ") + transform_text(transform) + ": " + loss;
    if (best && best->quality.loss() <= quality.loss()) continue;
    best = Chosen{std::move(built), transform, std::move(quality)};
  }
  if (options.note && tried.size() > 1) {
    options.note("int8: " + transform_text(best->transform) + ", which loses least (" +
                 (best->quality.chooses ? "mean KL" : "1 - cosine") + ", " + best->quality.text +
                 ": " + report + ")");
  }
  return std::move(*best);
}

void write_metadata(const Checkpoint& checkpoint, const ConvertOptions& options,
                    const Transform& transform, Built& built) {
  schema::ModelT& model = built.graph.model;
  schema::MetadataT& metadata = *model.metadata;
  metadata.parameters = checkpoint.parameters();
  metadata.macs_per_token = macs_per_token(model);
  metadata.source_hash = checkpoint.source_hash();
  metadata.converter = "oxbow-convert " + std::to_string(OXB_VERSION_MAJOR) + "." +
                       std::to_string(OXB_VERSION_MINOR) + "." + std::to_string(OXB_VERSION_PATCH);
  add_values(metadata.settings, {{"weights", options.quantize.weights},
                                 {"activations", !options.quantize.activations    ? "f32"
                                                 : options.quantize.static_scales ? "static"
                                                                                  : "dynamic"},
                                 {"debug_outputs", options.debug_outputs ? "true" : "false"}});
  if (!weight_format(options.quantize.weights).is_float()) {
    add_values(metadata.settings, {{"transform", transform_text(transform)}});
  }
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
  const std::optional<SentenceModel> sentences = read_sentence_model(options.directory);
  const std::string& directory = sentences ? sentences->transformer : options.directory;
  check_model_type(directory);
  Checkpoint checkpoint(directory, options.extra_tensors, options.key);
  for (const std::string& key : options.ignored_keys) checkpoint.drop_key(key);
  for (const std::string& pattern : options.ignored_tensors) checkpoint.drop_tensors(pattern);
  TokenSource source = read_tokens(options.calibration_file, "calibration text");
  const TokenSource quality_source = read_tokens(options.quality_file, "quality text");
  ModelTexts texts(checkpoint, options.tokenizer,
                   sentences ? sentences->files : std::set<std::string>());
  Transform none;
  progress("building the graph");
  Built built;
  std::string complaint;
  if (weight_format(options.quantize.weights).is_float()) {
    built = build(checkpoint, options, texts, options.quantize, none);
    check_source(source, built.graph, "--calibrate");
    write_metadata(checkpoint, options, none, built);
  } else {
    Observed observed;
    {
      const Built plain = build_observed(checkpoint, options, texts);
      const std::vector<std::byte> file = plain.file();
      check_source(source, plain.graph, "--calibrate");
      check_source(quality_source, plain.graph, "--quality-text");
      if (source.is_random()) source = sample_source(plain.graph, file);
      progress("calibrating");
      // Rows of floats have no vocabulary to draw from.
      if (takes_tokens(plain.graph)) observed.sizes = measure_channels(plain.graph, file, source);
      if (options.quantize.static_scales) observed.plain = calibrate(plain.graph, file, source);
    }
    if (options.quantize.static_scales && !observed.sizes.empty()) {
      const Built scaled = build_observed(checkpoint, options, texts, observed.sizes);
      observed.scaled = calibrate(scaled.graph, scaled.file(), source);
    }
    progress("measuring quality");
    const std::vector<std::byte> float_file =
        build(checkpoint, options, texts, {.weights = "f32", .activations = false}, none).file();
    if (observed.sizes.empty()) {
      Transform transform = options.transform.value_or(none);
      built = build(checkpoint, options, texts, options.quantize, transform, observed);
      write_metadata(checkpoint, options, transform, built);
    } else {
      Chosen chosen = choose(checkpoint, options, texts, observed, Judge(float_file, source));
      built = std::move(chosen.built);
      write_metadata(checkpoint, options, chosen.transform, built);
      if (!quality_source.is_random()) {
        chosen.quality = Judge(float_file, quality_source).compare(built.file());
      }
      add_values(built.graph.model.metadata->quality, chosen.quality.values());
      complaint = chosen.quality.complaint();
    }
  }
  if (options.note) {
    for (const std::string& note : checkpoint.notes()) options.note(note);
    for (const std::string& note : texts.notes()) options.note(note);
  }
  if (!complaint.empty()) built.graph.warnings.push_back(complaint);
  // A pack of reference tensors is made for ids.
  const bool is_pack = file_exists(checkpoint.directory() + "/" + kReferenceFile);
  if (takes_tokens(built.graph) && !built.graph.model.tokenizer && options.tokenizer.empty() &&
      !is_pack) {
    built.graph.warnings.push_back(
        "no tokenizer was found, so the file takes ids and no text; give --tokenizer FILE, or "
        "--tokenizer none if that is meant");
  }
  if (sentences && built.graph.model.task == schema::Task::Encode) {
    add_values(built.graph.model.metadata->settings, sentences->settings());
    for (const std::string& warning : sentences->warnings) built.graph.warnings.push_back(warning);
  }
  progress("writing " + options.output);
  write_model(options.output, built.file());
  return built.graph.warnings;
}

}  // namespace oxbow::convert
