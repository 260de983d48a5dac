#pragma once

// oxbow run: what a model is for decides what is done with the prompt.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "host/describe.h"
#include "tools/common.h"
#include "tools/interrupt.h"
#include "tools/terminal.h"
#include "tools/text.h"

namespace oxbow::tools {

struct Request {
  const Args& args;
  const oxb::Model& model;
  std::string path;
  CommonOptions common;
  oxb::SamplerOptions sampling;
  oxb_model_info info = OXB_MODEL_INFO_INIT;
  /// The prompt was given as ids, and ids are printed.
  bool as_ids = false;
  /// Most tokens to generate.
  uint64_t tokens = 0;
  /// The prompt: words, or a file of any length ("-": standard input), or neither.
  std::optional<std::string> words, file;
  TextOutput& out;
  bool has_prompt() const { return words || file; }

  /// The model takes numbers and no text.
  bool takes_numbers() const { return args.has("input"); }
};

struct Speed {
  uint64_t prompt_tokens = 0, generated = 0;
  double prompt_seconds = 0.0, decode_seconds = 0.0;
  size_t arena_bytes = 0;
};
/// Behind a number of tokens: ", 12.3 tokens/s"; nothing where no time was measured.
std::string rate_text(uint64_t tokens, double seconds);
/// One line about speed and memory, on standard error.
void print_speed(const Speed& speed);

/// With --stop, and a limit unless it is 0.
oxb::Generator open_generator(const Request& request, oxb::Session& session, uint64_t most);
/// What was written, when it is not printed as it comes.
struct Written {
  std::string text;
  std::vector<int32_t> tokens;
  oxb_end end = OXB_END_NONE;
};
/// Prints what it gives: `most` pieces, or until the text ends or somebody interrupts. With `kept` it is kept instead.
Speed print_text(const Request& request, oxb::Generator& generator, uint64_t most,
                 Written* kept = nullptr);

/// How tokens are picked: what the options say, else what the model's makers advise.
void add_sampling_options(Args& args);
oxb::SamplerOptions sampler_options(const Args& args, const oxb::Model& model);

/// What --save wrote. Throw InputError.
std::vector<std::byte> read_state_file(const std::string& path);
void write_state_file(const std::string& path, std::span<const std::byte> state);

/// Each prints what comes out and returns an exit code.
int run_generate(const Request& request);
int run_translate(const Request& request);
int run_classify(const Request& request);
int run_fill_mask(const Request& request);

/// Feeds the numbers of --input to the first entry point and gives the output of its last run, which is printed with
/// those before it if `print`.
std::vector<float> run_numbers(const Request& request, oxb::Session& session, bool print);

/// --beams, --n-best and --length-penalty, or what the model's makers advised.
oxb::BeamOptions beam_options(const Args& args, const schema::GenerationT& advised);
/// Of a text that the session has encoded: at most `most` tokens.
int run_beams(const Request& request, oxb::BeamOptions options, oxb::Session& session,
              uint64_t most, Speed speed);

/// The text of the prompt, echoed if that is wanted; with --chat between what the model wants around a question.
TextReader open_prompt(const Request& request);
/// The whole prompt, with the text of --second behind it. Throws InputError when there is none, or more than `most`
/// tokens. `first`: set to how many tokens are not of the second text.
std::vector<int32_t> read_prompt(const Request& request, uint32_t most, size_t* first = nullptr);

/// Prints what is generated as it comes: text, or ids with spaces between.
class Printer {
 public:
  explicit Printer(const Request& request) : request_(request) {}
  /// False when nothing can be written any more.
  bool add(const oxb::Piece& piece);
  /// Ends the line where one is open and it is wanted.
  void finish();

 private:
  const Request& request_;
  uint64_t count_ = 0;
};

}  // namespace oxbow::tools
