// oxbow verify: feeds a model what a reference implementation was fed and compares what comes out.

#include <cstdio>
#include <limits>

#include "tools/commands.h"
#include "tools/verify/report.h"
#include "tools/verify/verifier.h"

namespace oxbow::tools {
namespace {

/// Before anything is opened, so that wrong usage is told first.
Tolerance read_tolerance(const Args& args) {
  Tolerance tolerance;
  tolerance.atol = args.number("atol", 0.0, 0.0, std::numeric_limits<double>::max());
  tolerance.rtol = args.number("rtol", 0.0, 0.0, std::numeric_limits<double>::max());
  if (args.has("min-cosine")) tolerance.min_cosine = args.number("min-cosine", 0.0, -1.0, 1.0);
  // A cosine takes the place of the default tolerance; what is asked for holds beside it.
  tolerance.judges_error = !tolerance.min_cosine || args.has("atol") || args.has("rtol");
  return tolerance;
}

BeamSettings read_beam_settings(const Args& args) {
  BeamSettings settings;
  if (args.has("beams")) {
    settings.beams = static_cast<uint32_t>(args.integer("beams", 1, 1, 64));
  }
  if (args.has("max-tokens")) {
    settings.max_tokens = static_cast<uint32_t>(args.integer("max-tokens", 2, 2, 1u << 20));
  }
  if (args.has("length-penalty")) {
    settings.length_penalty = args.number("length-penalty", 1.0, -10.0, 10.0);
  }
  settings.early_stopping = args.has("early-stopping");
  return settings;
}

/// What the reference itself suggests.
double default_atol(const Safetensors& io, const Tolerance& tolerance) {
  const auto found = io.metadata().find("atol_fp32");
  const std::optional<double> given =
      found == io.metadata().end() ? std::nullopt : parse_number(found->second);
  const bool usable = given && *given >= 0.0;
  if (!usable && !tolerance.min_cosine) {
    throw InputError(io.path() +
                     ": no atol_fp32 that is a number, 0 or more, in its metadata; give --atol X");
  }
  return usable ? *given : 0.0;
}

}  // namespace

void declare_verify(Args& args) {
  args.positional("model.oxb", "the model file");
  args.positional("io.safetensors", "inputs and expected outputs");
  args.option("atol", "X", "allowed absolute error (default: atol_fp32 of the io file's metadata)");
  args.option("rtol", "X", "allowed error relative to the expected value, added to it (default 0)");
  args.option("min-cosine", "X",
              "judge each tensor by its cosine instead; --atol and --rtol hold too when given");
  args.option("beams", "N", "beams that found beam.sequences (default: try 1 to 8)");
  args.option("length-penalty", "X", "their length penalty (default: try 1, 0.6, 0.8, 1.2, 2, 0)");
  args.option("max-tokens", "N", "greatest length of their texts (default: try what fits them)");
  args.flag("early-stopping", "they stopped with enough texts (default: try both)");
  args.flag("json", "print JSON");
  add_common_options(args);
}

int verify_command(const Args& args) {
  const CommonOptions common = read_common_options(args);
  Verification verification;
  verification.tolerance = read_tolerance(args);
  const BeamSettings beam_settings = read_beam_settings(args);
  const std::string path = *args.text("model.oxb");
  const oxb::Model model = open_model(path, &common);
  const Safetensors io(*args.text("io.safetensors"));
  verification.model = path;
  verification.io = io.path();
  if (!args.has("atol")) verification.tolerance.atol = default_atol(io, verification.tolerance);

  oxb::Session session = open_session(model, path, common);
  const schema::ModelT graph = describe_file(path).model;
  Runner runner(model, path, session, graph);
  Verifier verifier(runner, graph, io, verification.tolerance, beam_settings);
  verifier.run();
  report_npu(session);
  verification.outcomes = verifier.outcomes();
  verification.not_produced = verifier.not_produced();
  summarize(verification);
  args.has("json") ? print_json(verification) : print_text(verification);
  if (verification.outcomes.empty()) {
    throw CheckFailed("no output was checked: " + io.path() + " expects none the model produces");
  }
  if (verification.failed != 0) {
    throw CheckFailed(format("%zu of %zu tensors are not as expected", verification.failed,
                             verification.outcomes.size()));
  }
  return kExitGood;
}

}  // namespace oxbow::tools
