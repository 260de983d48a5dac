#include "converter/convert.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <system_error>

#include "converter/formats/checkpoint.h"
#include "converter/formats/sentence_model.h"
#include "converter/importers.h"
#include "converter/measure/budget.h"
#include "converter/measure/calibrate.h"
#include "converter/measure/quality.h"
#include "converter/measure/sample_text.h"
#include "converter/text/model_texts.h"
#include "converter/writer.h"
#include "host/args.h"
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

// For each matrix once: few tokens tell which of them matter.
constexpr size_t kBudgetTokens = 256;

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

/// What float runs have told.
struct Observed {
  ChannelSizes sizes;
  MatrixInputs inputs;
  /// Whether they tell what goes together, and not just how large it is.
  bool can_fit = false;
  /// Static scales only: of the graph as it is, and of the scaled one.
  Calibration plain, scaled;
};

/// A graph and the file of it.
struct Built {
  Graph graph;
  std::unique_ptr<DraftFile> file;
};

/// What is converted.
struct Source {
  /// Of a folder of sentence-transformers, or of a GGUF file of such a model.
  std::optional<SentenceModel> sentences;
  Checkpoint checkpoint;
  ModelTexts texts;

  Source(const ConvertOptions& options, bool may_lack_tensors)
      : sentences(read_sentence_model(options.directory)),
        checkpoint(checked(sentences ? sentences->transformer : options.directory),
                   options.extra_tensors, options.key, may_lack_tensors),
        texts(checkpoint, options.tokenizer, sentences ? sentences->files : FileNames()) {
    if (checkpoint.gguf() != nullptr) sentences = read_gguf_sentences(checkpoint.gguf()->gguf());
    std::string problems;
    const auto tell_together = [&](const auto& drop, const std::string& what) {
      try {
        drop(what);
      } catch (const UsageError& error) {
        problems += (problems.empty() ? "" : "\n") + std::string(error.what());
      }
    };
    const auto drop_key = [&](const std::string& key) { checkpoint.drop_key(key); };
    const auto drop_tensors = [&](const std::string& like) { checkpoint.drop_tensors(like); };
    for (const std::string& key : options.ignored_keys) tell_together(drop_key, key);
    for (const std::string& like : options.ignored_tensors) tell_together(drop_tensors, like);
    if (!problems.empty()) throw UsageError(problems);
  }

 private:
  using FileNames = std::set<std::string>;
  /// Tensors are looked for only where their model is known.
  static const std::string& checked(const std::string& directory) {
    check_model_type(directory);
    return directory;
  }
};

class Converter {
 public:
  /// The checkpoint is read into the graph here, once.
  Converter(Source& from, const ConvertOptions& options)
      : options_(options), store_(std::make_shared<FloatFile>(options.output)) {
    progress("reading " + options.directory);
    imported_ = import_checkpoint(from.checkpoint, options.import_options, store_);
    from.texts.apply(imported_);
    // Without tensors there are no numbers to find.
    if (options.quantize.weights == "int4" && !from.checkpoint.assumes_tensors()) {
      progress("looking for matrices in groups");
      groups_ = find_groups(imported_, options.quantize.keep);
    }
    // A pack of reference tensors is made for ids.
    const bool is_pack = file_exists(from.checkpoint.directory() + "/" + kReferenceFile);
    if (imported_.takes_tokens() && !imported_.model.tokenizer && options.tokenizer.empty() &&
        !is_pack) {
      imported_.warnings.push_back(
          "no tokenizer was found, so the file takes ids and no text; give --tokenizer FILE, or "
          "--tokenizer none if that is meant");
    }
  }

  const Graph& imported() const { return imported_; }
  const FoundGroups& groups() const { return groups_; }
  const std::shared_ptr<FloatFile>& store() const { return store_; }

  void progress(const std::string& what) const {
    if (options_.progress) options_.progress(what, 0, 0);
  }

  /// Float, and with everything readable that calibration looks at; scaled where there are sizes of columns.
  Built build_observed(const ChannelSizes& sizes = {}) const {
    Built built{imported_, nullptr};
    remove_dead(built.graph, true);
    if (!sizes.empty()) scale_channels(built.graph, sizes, options_.quantize);
    observe_matrices(built.graph);
    write(built, "packing float weights");
    return built;
  }

  /// Every pass, for one choice of types. `transform` becomes what has been done of it.
  Graph prepare(const QuantizeOptions& types, Transform& transform,
                const Observed& observed = {}) const {
    Graph graph = imported_;
    if (options_.debug_outputs) {
      for (const DebugOutput& output : graph.debug_outputs) {
        schema::EntryPointT& entry = *graph.model.entry_points[output.entry];
        entry.kept.push_back(output.tensor);
        entry.kept_names.push_back(output.name);
      }
    }
    fuse(graph);
    // Static scales are those of keys with biases.
    transform.unbias_keys = transform.unbias_keys && types.activations && !types.static_scales &&
                            drop_key_biases(graph) != 0;
    // A float file is the judge of memories, so it keeps even those that only others look at.
    remove_dead(graph, options_.debug_outputs || !types.activations);
    transform.keep_groups = transform.keep_groups && !groups_.empty();
    QuantizeOptions how = types;
    if (transform.keep_groups) how.groups = groups_;
    transform.scale = transform.scale && scale_channels(graph, observed.sizes, how) != 0;
    quantize(graph, how);
    const bool keep_chains = types.static_scales && makes_chains(options_.offload);
    // Static scales are those of the largest blocks.
    const MatrixInputs seen = types.static_scales ? MatrixInputs() : observed.inputs;
    transform.turn = transform.turn && turn_matrices(graph, how, seen, keep_chains) != 0;
    transform.group_rows = transform.group_rows && !types.static_scales && group_rows(graph) != 0;
    transform.turn_keys = transform.turn_keys && turn_keys(graph) != 0;
    if (types.i4_rings && narrow_rings(graph) == 0) {
      graph.warnings.push_back(
          "--kv int4 finds no ring of keys and values whose heads have a multiple of 32 columns");
    }
    if (types.static_scales) {
      const Calibration& calibration = transform.scale ? observed.scaled : observed.plain;
      if (const size_t unseen = set_static_scales(graph, calibration); unseen != 0) {
        graph.warnings.push_back(
            std::to_string(unseen) +
            " matrices saw nothing during calibration and keep a scale for each "
            "row: calibrate with a longer text");
      }
    }
    return graph;
  }

  /// What matrices are fitted to. Groups that are kept have their codes.
  MatrixInputs inputs_for(const Transform& transform, const Observed& observed) const {
    if (!transform.fit) return {};
    MatrixInputs inputs = observed.inputs;
    if (transform.keep_groups) {
      for (const auto& [name, found] : groups_) inputs.of.erase(name);
    }
    return inputs;
  }

  void write(Built& built, const std::string& what, const MatrixInputs& inputs = {}) const {
    plan(built.graph);
    built.file = std::make_unique<DraftFile>(options_.output, built.graph);
    built.file->pack(built.graph, inputs, [&](uint64_t done, uint64_t all) {
      if (options_.progress) options_.progress(what, done, all);
    });
  }

 private:
  const ConvertOptions& options_;
  std::shared_ptr<FloatFile> store_;
  Graph imported_;
  FoundGroups groups_;
};

void check_source(const TokenSource& source, const Graph& graph, const std::string& option) {
  if (!source.is_random() && !graph.takes_tokens()) {
    throw UsageError(option + " is for models that take tokens; this one takes rows of numbers");
  }
  if (!source.text.empty() && !graph.model.tokenizer) {
    throw UsageError(option +
                     " with a text needs a tokenizer: give --tokenizer FILE or --tokenizer byte, "
                     "or tokens as a .safetensors file");
  }
}

/// The sample in the tree where the model's tokenizer can read it, else random tokens.
TokenSource sample_source(const Graph& graph, const std::string& file) {
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

/// What may be tried, the most first. Attempts that come to the same are made once.
std::vector<Transform> candidates(const ConvertOptions& options) {
  if (options.transform) return {*options.transform};
  if (!options.quantize.activations) {
    return {{.scale = true}, {}, {.keep_groups = true}, {.keep_groups = true, .group_rows = true}};
  }
  std::vector<Transform> list = {
      {.unbias_keys = true, .scale = true, .turn = true, .turn_keys = true},
      {.unbias_keys = true, .scale = true, .turn = true},
      {.unbias_keys = true, .turn = true, .turn_keys = true},
      {.unbias_keys = true, .turn = true},
      {}};
  if (!weight_format(options.quantize.weights).in_groups()) return list;
  // Of those that lose the same the last is taken: groups are said to be kept where they are.
  for (const bool keep : {false, true}) {
    for (const bool turn : {true, false}) {
      if (turn && !keep) continue;
      for (const bool scale : {true, false}) {
        list.push_back({.unbias_keys = true,
                        .scale = scale,
                        .turn = turn,
                        .turn_keys = true,
                        .keep_groups = keep,
                        .group_rows = true});
      }
    }
  }
  list.push_back({.keep_groups = true});
  return list;
}

struct Chosen {
  Built built;
  Transform transform;
  Quality quality;
  /// Of matrices that --budget was spent on.
  std::map<std::string, SpentBits> spent = {};
};

/// Of all that may be tried what loses least. Whether weights are fitted is tried with the best of the rest.
Chosen choose(const Converter& converter, const ConvertOptions& options, const Observed& observed,
              const Judge& judge) {
  std::optional<Chosen> best;
  std::vector<Transform> tried;
  std::string report;
  const bool can_fit = observed.can_fit;
  const auto attempt = [&](Transform transform) {
    transform.fit = transform.fit && can_fit;
    const bool wants_groups = transform.group_rows && !options.transform;
    Built built{converter.prepare(options.quantize, transform, observed), nullptr};
    // It is not what was to be tried.
    if (wants_groups && !transform.group_rows && !transform.keep_groups) return;
    if (std::find(tried.begin(), tried.end(), transform) != tried.end()) return;
    tried.push_back(transform);
    converter.write(built, "packing weights, " + transform_text(transform),
                    converter.inputs_for(transform, observed));
    converter.progress("measuring quality, " + transform_text(transform));
    Quality quality = judge.compare(built.file->path());
    report += (report.empty() ? "" : "; ") + transform_text(transform) + ": " +
              formatted(quality.loss(), "%.4g");
    // What makes no difference, as where there is one number to compare, is not done.
    if (best && (transform.fit ? best->quality.loss() <= quality.loss()
                               : best->quality.loss() < quality.loss()))
      return;
    best = Chosen{std::move(built), transform, std::move(quality)};
  };
  for (const Transform& transform : candidates(options)) attempt(transform);
  if (!options.transform && can_fit) {
    Transform fitted = best->transform;
    fitted.fit = true;
    attempt(fitted);
  }
  if (options.note && tried.size() > 1) {
    options.note(options.quantize.weights + ": " + transform_text(best->transform) +
                 ", which loses least (" + (best->quality.chooses ? "mean KL" : "1 - cosine") +
                 ", " + best->quality.text + ": " + report + ")");
  }
  return std::move(*best);
}

/// What --budget gives each matrix, by what rounding it alone loses in the float file.
std::map<std::string, SpentBits> spend_budget(const Converter& converter,
                                              const ConvertOptions& options,
                                              const Transform& transform, const Observed& observed,
                                              const TokenSource& source) {
  std::vector<StoredMatrices> ways;
  std::set<std::string> names;
  for (const char* format : {"int4", "int4min", "int8"}) {
    QuantizeOptions types = options.quantize;
    types.weights = format;
    Transform same = transform;
    Built built{converter.prepare(types, same, observed), nullptr};
    converter.write(built, std::string("packing weights, ") + format,
                    converter.inputs_for(transform, observed));
    StoredMatrices way{format, {}, built.file->errors()};
    for (const auto& [index, weight] : built.graph.weights) {
      const schema::TensorT& tensor = built.graph.tensor(index);
      way.bytes[tensor.name] = tensor.bytes;
      const auto is_this = [&](const KeptWeights& kept) {
        return matches_pattern(kept.pattern, tensor.name);
      };
      const bool fixed = (transform.keep_groups && converter.groups().contains(tensor.name)) ||
                         std::any_of(types.keep.begin(), types.keep.end(), is_this);
      if (is_in_groups(tensor.type) && !fixed) names.insert(tensor.name);
    }
    ways.push_back(std::move(way));
  }
  if (names.empty()) {
    throw UsageError(
        "--budget has nothing to be spent on: every matrix of four bits is kept as it is, by "
        "--keep "
        "or since others have quantised it");
  }
  Transform none;
  Built floats{converter.prepare({.weights = "f32", .activations = false}, none), nullptr};
  split_shared_tables(floats.graph, options.quantize);
  converter.write(floats, "packing float weights");
  const Judge judge(floats.file->path(), source, converter.store(), kBudgetTokens);
  const MatrixCosts costs =
      measure_matrices(floats.graph, *floats.file, judge, names, [&](size_t done, size_t all) {
        if (options.progress) options.progress("measuring each matrix", done, all);
      });
  return spend_bits(floats.graph, costs, ways, options.budget);
}

std::string budget_note(const std::map<std::string, SpentBits>& spent) {
  std::map<std::string, size_t> counts;
  for (const auto& [name, one] : spent) ++counts[one.format];
  std::string text;
  for (const auto& [format, count] : counts) {
    text += (text.empty() ? "" : ", ") + std::to_string(count) + " " + format;
  }
  return "--budget is spent by what rounding each matrix alone loses: " + text;
}

/// The largest errors, or those of all that --budget was spent on.
std::map<std::string, std::string> weight_values(const WeightErrors& all,
                                                 const std::map<std::string, SpentBits>& spent) {
  std::vector<std::pair<double, std::string>> errors;
  for (const auto& [name, error] : all) {
    if (spent.empty() || spent.contains(name)) errors.emplace_back(-error, name);
  }
  std::sort(errors.begin(), errors.end());
  if (spent.empty()) errors.resize(std::min(errors.size(), kWorstWeights));
  std::map<std::string, std::string> values;
  for (const auto& [error, name] : errors) {
    values[kWeightErrorKey + name] = formatted(-error, "%.6f");
    if (!spent.empty()) values[kWeightLossKey + name] = formatted(spent.at(name).loss, "%.4g");
  }
  return values;
}

void write_metadata(const Source& from, const ConvertOptions& options, const Transform& transform,
                    Built& built, const std::map<std::string, SpentBits>& spent = {}) {
  const Checkpoint& checkpoint = from.checkpoint;
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
  std::string kept;
  for (const KeptWeights& one : options.quantize.keep) {
    kept += (kept.empty() ? "" : ",") + one.format + ":" + one.pattern;
  }
  if (!kept.empty()) add_values(metadata.settings, {{"keep", kept}});
  if (options.quantize.tie_tables) add_values(metadata.settings, {{"tie_table", "true"}});
  if (options.quantize.i4_rings) add_values(metadata.settings, {{"kv", "int4"}});
  if (!weight_format(options.quantize.weights).is_float()) {
    add_values(metadata.settings, {{"transform", transform_text(transform)}});
  }
  add_values(metadata.sizes, {{"checkpoint_bytes", std::to_string(checkpoint.tensor_bytes())}});

  if (options.budget != 0) {
    add_values(metadata.settings, {{"budget", formatted(options.budget, "%g")}});
  }
  add_values(metadata.quality, weight_values(built.file->errors(), spent));
  if (from.sentences && model.task == schema::Task::Encode) {
    add_values(metadata.settings, from.sentences->settings());
    for (const std::string& warning : from.sentences->warnings) {
      built.graph.warnings.push_back(warning);
    }
  }
}

/// What is done where nothing is run: turning needs no text, and most models lose less by it.
Transform unmeasured_transform(const ConvertOptions& options) {
  if (weight_format(options.quantize.weights).is_float()) return {};
  const bool turns = !options.measure_quality && options.quantize.activations;
  return options.transform.value_or(Transform{.unbias_keys = turns,
                                              .turn = turns,
                                              .turn_keys = turns,
                                              .keep_groups = !options.measure_quality,
                                              .group_rows = !options.measure_quality});
}

/// What has become of matrices that others have quantised in groups.
std::string groups_note(const FoundGroups& groups, const Transform& transform) {
  size_t mins = 0, exact = 0;
  for (const auto& [name, found] : groups) {
    mins += found.has_min;
    exact += found.exact;
  }
  const size_t count = groups.size();
  if (count == 0) return "";
  std::string text = std::to_string(count) + " matrices have groups of 32 columns in four bits, " +
                     std::to_string(mins) + " of them with mins: ";
  if (!transform.keep_groups) return text + "rounded again";
  text += "kept, " + std::to_string(exact) + " of them bit for bit";
  if (exact != count)
    text += "; of the others scales and mins are rounded to 16 bits, codes are not";
  return text;
}

}  // namespace

std::vector<std::string> estimate(const ConvertOptions& options,
                                  const std::function<void(const std::string& path)>& look) {
  ConvertOptions elsewhere = options;
  std::error_code code;
  const std::filesystem::path folder = std::filesystem::temp_directory_path(code);
  if (code)
    throw InputError("there is no folder for temporary files; see TMPDIR: " + code.message());
  elsewhere.output = (folder / "oxbow-estimate.oxb").string();
  Source from(options, true);
  const Converter converter(from, elsewhere);
  Transform transform = unmeasured_transform(options);
  Built built{converter.prepare(options.quantize, transform), nullptr};
  plan(built.graph);
  built.file = std::make_unique<DraftFile>(elsewhere.output, built.graph);
  write_metadata(from, options, transform, built);
  // Written again with what was learnt.
  built.file = std::make_unique<DraftFile>(elsewhere.output, built.graph);
  if (options.note) {
    if (from.checkpoint.assumes_tensors()) {
      options.note("there are no weights: tensors are taken to be as config.json has them");
    }
    for (const std::string& note : from.checkpoint.notes()) options.note(note);
    for (const std::string& note : from.texts.notes()) options.note(note);
  }
  look(built.file->path());
  return built.graph.warnings;
}

std::vector<std::string> convert(const ConvertOptions& options) {
  if (options.quantize.static_scales && options.calibration_file.empty()) {
    throw UsageError(
        "--activations static needs --calibrate FILE: scales are found by running a text");
  }
  // Before the work begins.
  for (const std::string& target : options.offload.targets) {
    (void)make_npu_compiler(target, options.offload);
  }
  Source from(options, false);
  TokenSource source = read_tokens(options.calibration_file, "calibration text");
  const TokenSource quality_source = read_tokens(options.quality_file, "quality text");
  const Converter converter(from, options);
  check_source(source, converter.imported(), "--calibrate");
  check_source(quality_source, converter.imported(), "--quality-text");

  const bool is_float = weight_format(options.quantize.weights).is_float();
  // Rows of floats have no vocabulary to draw from.
  const bool measures = !is_float && options.measure_quality && converter.imported().takes_tokens();
  if (options.budget != 0 && !measures) {
    throw UsageError("--budget is for models that take tokens; this one takes rows of numbers");
  }
  Observed observed;
  Built reference;
  if (measures || options.quantize.static_scales) {
    reference = converter.build_observed();
    const std::string& file = reference.file->path();
    if (source.is_random()) source = sample_source(reference.graph, file);
    converter.progress("calibrating");
    if (measures) observed.sizes = measure_channels(reference.graph, file, source);
    if (measures) {
      observed.inputs = record_inputs(reference.graph, file, source, converter.store());
    }
    // Random tokens say too little of what goes together; for few bits so does the sample of the converter's own.
    const bool told = options.quantize.weights == "int8" || !options.calibration_file.empty();
    observed.can_fit = !source.is_random() && (options.transform ? options.transform->fit : told);
    if (options.quantize.static_scales) observed.plain = calibrate(reference.graph, file, source);
  }
  if (options.quantize.static_scales && !observed.sizes.empty()) {
    const Built scaled = converter.build_observed(observed.sizes);
    observed.scaled = calibrate(scaled.graph, scaled.file->path(), source);
  }

  Chosen chosen;
  std::string complaint;
  if (observed.sizes.empty()) {
    chosen.transform = unmeasured_transform(options);
    chosen.built.graph = converter.prepare(options.quantize, chosen.transform, observed);
    converter.write(chosen.built, "packing weights");
    write_metadata(from, options, chosen.transform, chosen.built);
  } else {
    if (!converter.imported().ternary.empty()) {
      // Such a model was trained with int8 rows: only with them it is what it was.
      Transform none;
      reference.graph = converter.prepare({.weights = "f32", .activations = false}, none);
      converter.write(reference, "packing float weights");
    }
    const auto judge = [&](const TokenSource& with) {
      converter.progress("measuring quality, float");
      return Judge(reference.file->path(), with, converter.store());
    };
    const Judge first = judge(source);
    chosen = choose(converter, options, observed, first);
    if (options.budget != 0) {
      const auto spent = spend_budget(converter, options, chosen.transform, observed, source);
      ConvertOptions with = options;
      with.transform = chosen.transform;
      for (const auto& [name, one] : spent) with.quantize.keep.push_back({name, one.format});
      chosen = choose(converter, with, observed, first);
      chosen.spent = spent;
      if (options.note) options.note(budget_note(spent));
    }
    write_metadata(from, options, chosen.transform, chosen.built, chosen.spent);
    if (!quality_source.is_random()) {
      chosen.quality = judge(quality_source).compare(chosen.built.file->path());
    }
    add_values(chosen.built.graph.model.metadata->quality, chosen.quality.values());
    complaint = chosen.quality.complaint(weight_format(options.quantize.weights));
  }
  Graph& graph = chosen.built.graph;
  if (options.note) {
    if (const std::string note = groups_note(converter.groups(), chosen.transform); !note.empty()) {
      options.note(note);
    }
    for (const std::string& note : from.checkpoint.notes()) options.note(note);
    for (const std::string& note : from.texts.notes()) options.note(note);
  }
  if (!complaint.empty()) graph.warnings.push_back(complaint);
  const std::string offloaded = add_offloads(
      options.offload, graph.model, *chosen.built.file, [&](uint64_t done, uint64_t all) {
        if (options.progress) options.progress("compiling layers for NPUs", done, all);
      });
  if (!offloaded.empty() && options.note) options.note(offloaded);
  converter.progress("writing " + options.output);
  chosen.built.file->finish(graph.model);
  return graph.warnings;
}

}  // namespace oxbow::convert
