// oxbow-convert: a checkpoint becomes one .oxb file.

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <string>
#include <vector>

#include "converter/blocks/parts.h"
#include "converter/convert.h"
#include "converter/importers.h"
#include "converter/passes/weight_formats.h"
#include "host/args.h"
#include "host/describe.h"
#include "host/errors.h"
#include "host/folder.h"
#include "host/io_file.h"
#include "host/manual.h"
#include "host/page.h"
#include "host/progress.h"
#include "host/summary.h"

namespace oxbow::convert {
namespace {

constexpr const char* kProgram = "oxbow-convert";
// A handful does; more belong to the context.
constexpr uint32_t kMaxSinks = 1024;
// As many as a session looks at.
constexpr size_t kMaxNpuRows = 8;

/// "f32, int8 (default)".
std::string weights_help() {
  std::string text;
  for (const WeightFormat& format : weight_formats()) {
    text += (text.empty() ? "" : ", ") + std::string(format.name) +
            (std::string_view(format.name) == kDefaultWeights ? " (default)" : "");
  }
  return text;
}

Args declare() {
  Args args(kProgram,
            "Converts a checkpoint directory (config.json and tensors as .safetensors, or as "
            "torch.save writes them), a GGUF file or an ONNX file to one .oxb file.");
  args.positional("DIR", "the checkpoint directory, a tensor file in it, or a .gguf or .onnx file",
                  false);
  args.option("output", "FILE", "the model file to write, by convention *.oxb (required)", 'o');
  args.option("weights", "TYPE", weights_help());
  args.repeated("keep", "TYPE:PATTERN",
                "store the weights whose names match, with * and ?, as another type than the rest; "
                "several patterns have commas between them");
  args.option(
      "budget", "BITS",
      "with int4: so many bits for each weight of a matrix on average, more than 4.5, spent "
      "where they are measured to save most");
  args.option("activations", "TYPE",
              "dynamic (default with weights of few bits: int8, scaled per row), static "
              "(scales from --calibrate) or f32");
  args.option("max-segment", "N",
              "most tokens of one run (default: from the checkpoint, at least 64)");
  args.option("context", "N", "tokens in the KV cache (default: the model's maximum)");
  args.flag("ring", "a sliding window: the oldest of them leave, so that the stream is endless");
  args.option("sinks", "N", "with --ring: attention sinks, the first N tokens, never leave");
  args.flag(
      "tie-table",
      "a table of words that is the head too is stored once, in the head's bits (default: a copy "
      "of its rows in eight)");
  args.option("kv", "TYPE",
              "how keys and values are remembered beside int8 activations: int8 (default) or int4, "
              "which halves the KV cache and loses more");
  args.option(
      "tokenizer", "FILE",
      "tokenizer.json, vocab.json (beside merges.txt), vocab.txt, a SentencePiece model, a JSON "
      "array of characters, or a folder that has one of them; byte or none (default: what DIR "
      "has)");
  args.option(
      "calibrate", "FILE",
      "a text, or tokens as .safetensors: what int8 is fitted to and measured on, and static "
      "scales are found on (default: a sample in several languages)");
  args.option("quality-text", "FILE", "the same, only to measure quality on");
  args.option("transform", "WHAT",
              "auto (default: what loses least), none, or all: what is done to rows and weights so "
              "that int8 loses less");
  args.option("tensors", "EXTRA", "a tensor file that completes or replaces tensors by name");
  args.option("key", "NAME",
              "which dictionary of a torch checkpoint holds the tensors, e.g. model or ema.model "
              "(default: the only one that does)");
  args.repeated("ignore-key", "NAME", "take this key of config.json as not there");
  args.repeated("ignore-tensor", "PATTERN",
                "take the tensors whose names match, with * and ?, as not there");
  args.flag("dry-run",
            "tell size, memory and work of the result and write nothing; config.json is enough");
  args.flag("no-quality",
            "do not run the result: faster, and nobody knows what it loses; int8 rows are turned");
  args.flag("list", "print the model types that can be converted, and do nothing else");
  args.repeated("npu", "TARGET",
                "also compile the dense int8 layers for an accelerator (docs/npu.md)");
  args.option("npu-rows", "LIST",
              "numbers of rows to compile them for (default 16,64; at most --max-segment)");
  args.flag("npu-chains",
            "static layers that follow one another go to Ethos-U as one, rounded between them");
  args.option("npu-cache", "FILE", "keep compiled layers there, and take those that are");
  args.option("vela", "PROGRAM", "Arm's compiler for Ethos-U (default vela)");
  args.option("vela-system", "NAME",
              "its system configuration (default what it takes for the chip)");
  args.option("vela-memory", "NAME", "its memory mode (default what it takes for the chip)");
  args.option("litert-tool", "COMMAND",
              "for --npu litert-compiled: LiteRT's apply_plugin_main and its arguments");
  args.flag("debug-outputs", "keep hidden activations and all memories readable");
  args.option("report", "FILE.html", "write a page with sizes, quality, memory plan and graph");
  args.flag("json", "print the summary as JSON only");
  return args;
}

std::vector<std::string> weight_names() {
  std::vector<std::string> names;
  for (const WeightFormat& format : weight_formats()) names.push_back(format.name);
  return names;
}

/// FORMAT:PATTERN,PATTERN and so on.
std::vector<KeptWeights> read_kept(const std::vector<std::string>& texts) {
  const std::vector<std::string> names = weight_names();
  std::vector<KeptWeights> kept;
  for (const std::string& text : texts) {
    const size_t colon = text.find(':');
    const std::string format = text.substr(0, colon);
    if (colon == std::string::npos || colon + 1 == text.size() ||
        std::find(names.begin(), names.end(), format) == names.end()) {
      throw UsageError("--keep is " + printable(text) +
                       ", expected a type of --weights, a colon and patterns of names with commas "
                       "between them, such as int8:lm_head*");
    }
    for (size_t first = colon + 1; first <= text.size();) {
      const size_t comma = std::min(text.find(',', first), text.size());
      if (comma > first) kept.push_back({text.substr(first, comma - first), format});
      first = comma + 1;
    }
  }
  return kept;
}

/// "1,16" -> {1, 16}.
std::vector<uint32_t> read_rows(const std::string& text) {
  std::vector<uint32_t> rows;
  for (size_t first = 0; first < text.size();) {
    const size_t comma = std::min(text.find(',', first), text.size());
    uint32_t value = 0;
    const auto [stop, error] = std::from_chars(text.data() + first, text.data() + comma, value);
    if (error != std::errc() || stop != text.data() + comma || value == 0 || value > kMaxSize) {
      throw UsageError("--npu-rows is " + printable(text) +
                       ", expected numbers with commas between them");
    }
    rows.push_back(value);
    first = comma + 1;
  }
  if (rows.empty() || rows.size() > kMaxNpuRows) {
    throw UsageError("--npu-rows needs 1 to " + std::to_string(kMaxNpuRows) + " numbers");
  }
  return rows;
}

ConvertOptions read_options(const Args& args) {
  ConvertOptions options;
  options.directory = args.text("DIR", "");
  if (!args.has("DIR")) throw UsageError("DIR is missing: the checkpoint to convert; see --help");
  const bool writes = !args.has("dry-run");
  if (writes && !args.has("output")) {
    throw UsageError("-o FILE is missing: the model file to write; see --help");
  }
  options.output = args.text("output", "");
  if (writes && options.output.empty()) throw UsageError("-o needs the name of a file");
  const WeightFormat& weights =
      weight_format(args.choice("weights", kDefaultWeights, weight_names()));
  options.quantize.keep = read_kept(args.texts("keep"));
  options.quantize.weights = weights.name;
  options.budget = args.number("budget", 0, 4.5, 9);
  if (options.budget != 0 &&
      (options.quantize.weights != "int4" || !writes || args.has("no-quality"))) {
    throw UsageError(
        "--budget needs --weights int4, and to run the result: no --no-quality or --dry-run");
  }
  // Float weights go with float activations; only asking for the opposite is a mistake.
  const std::string activations = args.choice("activations", weights.is_float() ? "f32" : "dynamic",
                                              {"f32", "dynamic", "static"});
  options.quantize.activations = activations != "f32";
  options.quantize.static_scales = activations == "static";
  if (options.quantize.activations && weights.is_float()) {
    throw UsageError(
        "--activations " + activations +
        " needs --weights int8, int4, int4min or ternary: int8 activations are multiplied with "
        "such weights only; use --activations f32 with --weights " +
        weights.name);
  }
  options.quantize.tie_tables = args.has("tie-table");
  options.quantize.i4_rings = args.choice("kv", "int8", {"int8", "int4"}) == "int4";
  if (options.quantize.i4_rings && !options.quantize.activations) {
    throw UsageError("--kv int4 needs --activations dynamic or static: others remember floats");
  }
  options.import_options.max_segment =
      static_cast<uint32_t>(args.integer("max-segment", 0, 1, kMaxSize));
  options.import_options.context = static_cast<uint32_t>(args.integer("context", 0, 1, kMaxSize));
  options.import_options.ring = args.has("ring");
  options.import_options.sinks = static_cast<uint32_t>(args.integer("sinks", 0, 1, kMaxSinks));
  if (options.import_options.sinks != 0 && !options.import_options.ring) {
    throw UsageError("--sinks needs --ring: without it no token leaves");
  }
  options.tokenizer = args.text("tokenizer", "");
  options.calibration_file = args.text("calibrate", "");
  options.quality_file = args.text("quality-text", "");
  const std::string transform = args.choice("transform", "auto", {"auto", "none", "all"});
  if (transform != "auto") {
    const bool all = transform == "all";
    options.transform = Transform{
        .unbias_keys = all && options.quantize.activations,
        .scale = all,
        .turn = all && options.quantize.activations,
        .turn_keys = all && options.quantize.activations,
        // With none a matrix that others have quantised is what they made it.
        .keep_groups = !all,
        .group_rows = all,
        .fit = all,
    };
  }
  options.extra_tensors = args.text("tensors", "");
  options.key = args.text("key", "");
  if (args.has("key") && options.key.empty()) throw UsageError("--key needs a name");
  options.ignored_keys = args.texts("ignore-key");
  options.ignored_tensors = args.texts("ignore-tensor");
  options.debug_outputs = args.has("debug-outputs");
  options.offload.targets = args.texts("npu");
  if (args.has("npu-rows")) options.offload.rows = read_rows(args.text("npu-rows", ""));
  options.offload.chains = args.has("npu-chains");
  options.offload.cache = args.text("npu-cache", "");
  options.offload.vela = args.text("vela", options.offload.vela);
  options.offload.vela_system = args.text("vela-system", "");
  options.offload.vela_memory = args.text("vela-memory", "");
  options.offload.litert_tool = args.text("litert-tool", "");
  for (const char* name : {"npu-rows", "npu-chains", "npu-cache", "vela", "vela-system",
                           "vela-memory", "litert-tool"}) {
    if (args.has(name) && options.offload.targets.empty()) {
      throw UsageError(std::string("--") + name + " needs --npu");
    }
  }
  options.measure_quality = writes && !args.has("no-quality");
  if (!options.measure_quality && args.has("quality-text")) {
    throw UsageError("--quality-text cannot go with --no-quality or --dry-run");
  }
  for (const char* name : {"tokenizer", "calibrate", "quality-text", "tensors", "report"}) {
    if (args.has(name) && args.text(name, "").empty()) {
      throw UsageError(std::string("--") + name + " needs the name of a file");
    }
  }
  std::vector<std::string> inputs = {options.directory, options.tokenizer, options.calibration_file,
                                     options.quality_file, options.extra_tensors};
  for (const std::string& name : names_in(options.directory)) {
    inputs.push_back(options.directory + "/" + name);
  }
  // A model file in the checkpoint's own directory may be written again.
  std::erase_if(inputs, [](const std::string& name) { return name.ends_with(".oxb"); });
  if (writes) refuse_overwriting(options.output, inputs);
  if (args.has("report")) {
    std::erase_if(inputs, [](const std::string& name) { return name.ends_with(".html"); });
    inputs.push_back(options.output);
    refuse_overwriting(args.text("report", ""), inputs);
  }
  return options;
}

/// What an installation makes from the same table as --help: the manual, and completion for bash and zsh.
bool print_generated(const Args& args, int argc, char** argv) {
  const std::string word = argc > 1 ? argv[1] : "", shell = argc > 2 ? argv[2] : "";
  if (word == "--man") {
    std::fputs(manual_page(args, {"oxbow"}).c_str(), stdout);
  } else if (word == "--completion" && (shell == "bash" || shell == "zsh")) {
    std::fputs(
        (shell == "bash" ? bash_completion : zsh_completion)(kProgram, {{"", "", &args}}).c_str(),
        stdout);
  } else {
    return false;
  }
  return true;
}

int run(int argc, char** argv) {
  Args args = declare();
  if (print_generated(args, argc, argv)) return kExitGood;
  args.parse(argc, argv);
  if (args.help_wanted()) {
    std::fputs(args.help().c_str(), stdout);
    return kExitGood;
  }
  if (args.has("list")) {
    for (const std::string& type : supported_model_types()) std::printf("%s\n", type.c_str());
    return kExitGood;
  }
  ConvertOptions options = read_options(args);
  std::vector<std::string> warnings, notes;
  options.note = [&](const std::string& note) { notes.push_back(note); };
  Description description;
  try {
    // Its line must not stay in front of a message, whichever way this ends.
    ProgressLine line;
    if (!args.has("json")) {
      options.progress = [&](const std::string& what, uint64_t done, uint64_t all) {
        line.show(what, done, all);
      };
    }
    if (args.has("dry-run")) {
      warnings =
          estimate(options, [&](const std::string& file) { description = describe_file(file); });
    } else {
      warnings = convert(options);
      description = describe_file(options.output);
    }
  } catch (const InputError& error) {
    if (options.output.empty() || !file_exists(options.output)) throw;
    throw InputError(std::string(error.what()) + "; " + options.output + " is still the older one");
  }
  for (const std::string& note : notes) {
    std::fprintf(stderr, "%s: note: %s\n", kProgram, note.c_str());
  }
  for (const std::string& warning : warnings) {
    std::fprintf(stderr, "%s: warning: %s\n", kProgram, warning.c_str());
  }
  if (args.has("report")) {
    // A dry run has no output.
    const std::string& name = options.output.empty() ? options.directory : options.output;
    nlohmann::json described = to_json(description);
    described["path"] = name;
    write_atomically(args.text("report", ""),
                     to_html(page_data(made_by(kProgram, args.words()), {described}, {}), name));
  }
  const std::string text = args.has("json") ? json_text(summary_json(description, warnings, notes))
                                            : summary_table(description);
  std::fputs(text.c_str(), stdout);
  return kExitGood;
}

}  // namespace
}  // namespace oxbow::convert

int main(int argc, char** argv) {
  return oxbow::run_program(oxbow::convert::kProgram, oxbow::convert::run, argc, argv);
}
