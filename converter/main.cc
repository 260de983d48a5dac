// oxbow-convert: a checkpoint becomes one .oxb file.

#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "converter/blocks/parts.h"
#include "converter/convert.h"
#include "converter/importers.h"
#include "converter/passes/weight_formats.h"
#include "host/args.h"
#include "host/describe.h"
#include "host/errors.h"
#include "host/io_file.h"
#include "host/report.h"
#include "host/summary.h"

namespace oxbow::convert {
namespace {

constexpr const char* kProgram = "oxbow-convert";
// A handful does; more belong to the context.
constexpr uint32_t kMaxSinks = 1024;

/// "f32, int8 (default)".
std::string weights_help() {
  std::string text;
  for (const WeightFormat& format : weight_formats()) {
    if (!format.is_made) continue;
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
  args.option("activations", "TYPE",
              "dynamic (default with int8 weights: int8, scaled per row), static (scales from "
              "--calibrate) or f32");
  args.option("max-segment", "N",
              "most tokens of one run (default: from the checkpoint, at least 64)");
  args.option("context", "N", "tokens in the KV cache (default: the model's maximum)");
  args.flag("ring", "a sliding window: the oldest of them leave, so that the stream is endless");
  args.option("sinks", "N", "with --ring: attention sinks, the first N tokens, never leave");
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
  args.flag("list", "print the model types that can be converted, and do nothing else");
  args.flag("debug-outputs", "keep hidden activations and all memories readable");
  args.option("report", "FILE.html", "write a page with sizes, quality, memory plan and graph");
  args.flag("json", "print the summary as JSON only");
  return args;
}

/// Some that are foreseen are not made yet.
const WeightFormat& weights_choice(const Args& args) {
  std::vector<std::string> names;
  std::string list;
  for (const WeightFormat& format : weight_formats()) {
    if (!format.is_made) continue;
    names.push_back(format.name);
    list += (list.empty() ? "" : ", ") + names.back();
  }
  for (const WeightFormat& format : weight_formats()) {
    if (format.is_made || args.text("weights", "") != format.name) continue;
    throw UsageError(std::string("--weights ") + format.name +
                     " is not supported yet, supported: " + list);
  }
  return weight_format(args.choice("weights", kDefaultWeights, names));
}

ConvertOptions read_options(const Args& args) {
  ConvertOptions options;
  options.directory = args.text("DIR", "");
  if (!args.has("DIR")) throw UsageError("missing DIR: the checkpoint to convert; see --help");
  if (!args.has("output")) throw UsageError("missing -o FILE: the model file to write; see --help");
  options.output = args.text("output", "");
  if (options.output.empty()) throw UsageError("-o needs the name of a file");
  const WeightFormat& weights = weights_choice(args);
  options.quantize.weights = weights.name;
  // Float weights go with float activations; only asking for the opposite is a mistake.
  const std::string activations = args.choice("activations", weights.is_float() ? "f32" : "dynamic",
                                              {"f32", "dynamic", "static"});
  options.quantize.activations = activations != "f32";
  options.quantize.static_scales = activations == "static";
  if (options.quantize.activations && weights.is_float()) {
    throw UsageError("--activations " + activations +
                     " needs --weights int8: int8 activations are multiplied with "
                     "int8 weights only; use --activations f32 with --weights f32");
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
        .scale = all,
        .turn = all && options.quantize.activations,
        .turn_keys = all && options.quantize.activations,
    };
  }
  options.extra_tensors = args.text("tensors", "");
  options.key = args.text("key", "");
  if (args.has("key") && options.key.empty()) throw UsageError("--key needs a name");
  options.ignored_keys = args.texts("ignore-key");
  options.ignored_tensors = args.texts("ignore-tensor");
  options.debug_outputs = args.has("debug-outputs");
  for (const char* name : {"tokenizer", "calibrate", "quality-text", "tensors", "report"}) {
    if (args.has(name) && args.text(name, "").empty()) {
      throw UsageError(std::string("--") + name + " needs the name of a file");
    }
  }
  std::vector<std::string> inputs = {options.directory, options.tokenizer, options.calibration_file,
                                     options.quality_file, options.extra_tensors};
  std::error_code unreadable;
  for (const auto& entry : std::filesystem::directory_iterator(options.directory, unreadable)) {
    inputs.push_back(entry.path().string());
  }
  // A model file in the checkpoint's own directory may be written again.
  std::erase_if(inputs, [](const std::string& name) { return name.ends_with(".oxb"); });
  refuse_overwriting(options.output, inputs);
  if (args.has("report")) {
    std::erase_if(inputs, [](const std::string& name) { return name.ends_with(".html"); });
    inputs.push_back(options.output);
    refuse_overwriting(args.text("report", ""), inputs);
  }
  return options;
}

int run(int argc, char** argv) {
  Args args = declare();
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
  const bool terminal = ::isatty(STDERR_FILENO) != 0;
  if (terminal) {
    options.progress = [](const std::string& what) {
      std::fprintf(stderr, "\r\033[K%s ...", printable(what, 70).c_str());
    };
  }
  // The line of progress must not stay in front of a message, whichever way this ends.
  struct ClearLine {
    bool on;
    ~ClearLine() {
      if (on) std::fputs("\r\033[K", stderr);
    }
  };
  std::vector<std::string> warnings, notes;
  options.note = [&](const std::string& note) { notes.push_back(note); };
  try {
    const ClearLine clear{terminal};
    warnings = convert(options);
  } catch (const InputError& error) {
    if (!file_exists(options.output)) throw;
    throw InputError(std::string(error.what()) + "; " + options.output + " is still the older one");
  }
  for (const std::string& note : notes) {
    std::fprintf(stderr, "%s: note: %s\n", kProgram, note.c_str());
  }
  for (const std::string& warning : warnings) {
    std::fprintf(stderr, "%s: warning: %s\n", kProgram, warning.c_str());
  }
  const Description description = describe_file(options.output);
  if (args.has("report")) {
    write_atomically(args.text("report", ""), to_html(description, options.output));
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
