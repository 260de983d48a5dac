// oxbow run: the options, and what the ways of running share.

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <utility>

#include "host/io_file.h"
#include "tools/chat/talk.h"
#include "tools/commands.h"
#include "tools/inputs.h"
#include "tools/run/run.h"

namespace oxbow::tools {
namespace {

/// Something was piped into the program, or a file was redirected. Whoever gives neither types, or has nothing to say.
bool input_is_piped() {
  struct stat status = {};
  return ::fstat(STDIN_FILENO, &status) == 0 &&
         (S_ISFIFO(status.st_mode) || S_ISREG(status.st_mode));
}

bool somebody_types() { return ::isatty(STDIN_FILENO) == 1 && ::isatty(STDERR_FILENO) == 1; }

/// A text by turns: what is typed is added, and the model goes on.
int write_together(const Request& request) {
  oxb::Session session = open_session(request.model, request.path, request.common);
  // The limit is one of each turn, and no text ends by it.
  oxb::Generator generator = open_generator(request, session, 0);
  if (request.args.has("resume")) {
    const std::string path = *request.args.text("resume");
    check(generator.load(read_state_file(path)), path);
  }
  TalkOptions how;
  how.chat = false;
  how.most = request.tokens;
  how.undo_turns = static_cast<uint32_t>(request.args.integer("undo", how.undo_turns, 0, 1000));
  return Talk(request.path, session, generator, how).run();
}

}  // namespace

void add_sampling_options(Args& args) {
  args.option("temperature", "X",
              "0 always takes the most likely token (default: what the model's makers advise, else "
              "0.8; 0 for translators)");
  args.option("top-k", "K",
              "choose among the K most likely tokens; 0 means all (default: advised, else 0); of "
              "masks, how many to print (default 5)");
  args.option(
      "top-p", "P",
      "choose among the most likely that reach this probability (default: advised, else 1)");
  args.option("repetition-penalty", "X",
              "makes the last 64 tokens less likely when above 1 (default: advised, else 1)");
  args.option("seed", "S", "same seed, same text (default 0)");
}

oxb::SamplerOptions sampler_options(const Args& args, const oxb::Model& model) {
  oxb::SamplerOptions options = model.sampler_options();
  options.temperature = static_cast<float>(
      args.number("temperature", static_cast<double>(options.temperature), 0.0, 1e6));
  options.top_k = static_cast<uint32_t>(args.integer("top-k", options.top_k, 0, UINT32_MAX));
  options.top_p =
      static_cast<float>(args.number("top-p", static_cast<double>(options.top_p), 1e-6, 1.0));
  options.repetition_penalty = static_cast<float>(args.number(
      "repetition-penalty", static_cast<double>(options.repetition_penalty), 1e-3, 1e3));
  options.seed = args.integer("seed", 0, 0, UINT64_MAX);
  return options;
}

TextReader open_prompt(const Request& request) {
  const Args& args = request.args;
  TextSource source = request.file ? TextSource::file(*request.file)
                                   : TextSource::words("the prompt", request.words.value_or(""));
  if (args.has("echo")) source.echo(&request.out);
  oxb::EncoderOptions options;
  if (args.has("chat")) {
    const char* before = oxb_model_chat_before(request.model.get());
    const char* after = oxb_model_chat_after(request.model.get());
    if (before == nullptr && after == nullptr) {
      throw InputError(request.path +
                       ": the file does not say how to ask the model, so --chat has no use: it was "
                       "not trained to answer, or was converted without its chat template");
    }
    source.surround(before == nullptr ? "" : before, after == nullptr ? "" : after);
    // They bring their own special tokens.
    options.add_template = 0;
  }
  if (args.has("second")) options.add_template = OXB_TEMPLATE_FIRST;
  return TextReader(request.model, std::move(source), options);
}

/// With the model's padding token up to --pad-to.
static void pad(const Request& request, std::vector<int32_t>& ids, uint32_t most) {
  const Description description = describe_file(request.path);
  const schema::GenerationT* rules = description.model.generation.get();
  if (rules == nullptr || rules->pad_token < 0) {
    throw InputError(request.path + ": the file has no padding token, so --pad-to has no use");
  }
  ids.resize(std::max<size_t>(ids.size(), request.args.integer("pad-to", 0, 1, most)),
             rules->pad_token);
}

TextReader open_second(const Request& request) {
  oxb::EncoderOptions options;
  options.add_template = OXB_TEMPLATE_SECOND;
  return TextReader(request.model,
                    TextSource::words("the second text", request.args.text("second", "")), options);
}

std::vector<int32_t> read_prompt(const Request& request, uint32_t most, size_t* first) {
  std::vector<int32_t> ids;
  if (request.as_ids) {
    ids = parse_ids(*request.args.text("ids"), request.model.input_info(0, 0)->limit, "--ids");
  } else if (request.has_prompt()) {
    TextReader reader = open_prompt(request);
    // One more tells that it is too long, however long it is.
    ids.resize(size_t{most} + 1);
    ids.resize(reader.read(ids));
    if (first != nullptr) *first = ids.size();
    if (request.args.has("second")) {
      TextReader second = open_second(request);
      std::vector<int32_t> more(size_t{most} + 1);
      more.resize(second.read(more));
      ids.insert(ids.end(), more.begin(), more.end());
    }
  }
  if (ids.empty()) throw UsageError("give a text with --prompt, --file or --ids");
  if (request.args.has("pad-to")) pad(request, ids, most);
  if (ids.size() > most) {
    throw InputError(
        format("%s: the text has %s%zu tokens and the model takes %u at once; convert with "
               "--max-segment where it allows more",
               request.path.c_str(), request.as_ids ? "" : "at least ", ids.size(), most));
  }
  return ids;
}

std::vector<std::byte> read_state_file(const std::string& path) {
  const std::string bytes = read_file(path, SIZE_MAX / 2);
  const auto* begin = reinterpret_cast<const std::byte*>(bytes.data());
  return {begin, begin + bytes.size()};
}

void write_state_file(const std::string& path, std::span<const std::byte> state) {
  write_atomically(path, std::array{state});
}

std::string rate_text(uint64_t tokens, double seconds) {
  if (tokens == 0 || seconds <= 0.0) return {};
  char text[48];
  std::snprintf(text, sizeof(text), ", %.1f tokens/s", static_cast<double>(tokens) / seconds);
  return text;
}

void print_speed(const Speed& speed) {
  // The first token comes from the prompt's logits, so a run of n tokens decodes n - 1 steps.
  const uint64_t steps = speed.generated > 0 ? speed.generated - 1 : 0;
  std::string prompt;
  if (speed.prompt_tokens > 0) {
    prompt = "prompt " + count_text(speed.prompt_tokens, "token") +
             rate_text(speed.prompt_tokens, speed.prompt_seconds) + "; ";
  }
  print_note(prompt + "generated " + count_text(speed.generated, "token") +
             rate_text(steps, speed.decode_seconds) + "; arena " + bytes_text(speed.arena_bytes) +
             "; resident " + bytes_text(resident_memory().bytes));
}

/// An option that has no effect on this model is a mistake.
static void refuse_options_of_other_tasks(const Args& args, oxb_task task) {
  if (args.has("chat") && task != OXB_TASK_GENERATE) {
    throw UsageError("--chat is for models that generate; this one does not");
  }
  for (const char* name : {"save", "resume", "json", "echo"}) {
    if (args.has(name) && task != OXB_TASK_GENERATE) {
      throw UsageError(std::string("--") + name +
                       " is for models that generate; this one does not");
    }
  }
  if (args.has("stop") && task != OXB_TASK_GENERATE && task != OXB_TASK_TRANSLATE) {
    throw UsageError("--stop is for models that generate or translate; this one does not");
  }
  for (const char* name : {"beams", "n-best", "length-penalty"}) {
    if (args.has(name) && task != OXB_TASK_TRANSLATE) {
      throw UsageError(std::string("--") + name +
                       " is for models that translate; this one does not");
    }
  }
  if (args.has("pad-to") && task != OXB_TASK_FILL_MASK && task != OXB_TASK_CLASSIFY) {
    throw UsageError("--pad-to is for models that read a text as a whole; this one does not");
  }
  if (args.has("second") && (task != OXB_TASK_CLASSIFY || args.has("ids") || args.has("input"))) {
    throw UsageError("--second is for a model that classifies, beside --prompt or --file");
  }
  if (args.has("mask") && task != OXB_TASK_FILL_MASK) {
    throw UsageError("--mask is for models that fill masks; this one does not");
  }
}

void declare_run(Args& args) {
  args.positional("model.oxb", "the model file");
  args.positional("PROMPT",
                  "the same as --prompt; without any, standard input: a pipe, or a person", false);
  args.option("prompt", "TEXT",
              "what to continue, translate or classify; --prompt=TEXT when it "
              "begins with --",
              'p');
  args.option("file", "FILE", "the same from a file of any length; - reads standard input");
  args.option("ids", "1,2,3", "the same as token ids; ids are then printed");
  args.option("input", "FILE",
              "for a model that takes no text: numbers as .npy or .safetensors, a picture as PNG, "
              "JPEG or PNM, a recording as WAV");
  add_picture_options(args);
  args.option("pad-to", "N",
              "fill the text up with padding to N tokens, as a model without a mask was trained");
  args.flag("chat", "the prompt is a question to a model that was trained to answer");
  args.option("tokens", "N", "how many tokens to generate at most (default 200)", 'n');
  args.flag("echo", "print the prompt in front of the text");
  args.flag("json", "print the text, its tokens, speed and memory as JSON");
  args.option("save", "FILE", "save the text where it was cut off, to go on later");
  args.option("resume", "FILE", "go on with a text that was saved, in the same model");
  args.alias("resume", "load");
  args.option("undo", "N", "turns that /undo can take back when lines are typed (default 8)");
  args.repeated("stop", "TEXT", "end before this text; may be given several times");
  add_sampling_options(args);
  args.option("beams", "N",
              "translate by following N texts at a time, 1 to 64 (default: advised, else 1)");
  args.option("length-penalty", "X",
              "of --beams: above 0 prefers longer texts (default: advised, else 1)");
  args.option("n-best", "N", "of --beams: print the N best with their scores (default 1)");
  args.option("second", "TEXT",
              "classify the prompt and this text as a pair, such as a question and a passage");
  args.option("mask", "ID",
              "the token to replace, of a model that fills masks (default: the tokenizer's own)");
  add_common_options(args);
}

int run_command(const Args& args) {
  const CommonOptions common = read_common_options(args);
  const uint64_t tokens = args.integer("tokens", 200, 0, UINT64_MAX);
  const int prompts = args.has("PROMPT") + args.has("prompt") + args.has("file") + args.has("ids") +
                      args.has("input");
  if (prompts > 1) throw UsageError("give one of --prompt, --file, --ids and --input");
  std::optional<std::string> file = args.text("file");
  // A text that is resumed goes on by itself.
  if (prompts == 0 && !args.has("resume") && input_is_piped()) file = "-";
  if (args.has("chat") && !args.has("PROMPT") && !args.has("prompt") && !file) {
    throw UsageError("--chat needs a question: --prompt TEXT or --file FILE; oxbow chat asks many");
  }
  if (args.has("json") && args.has("echo"))
    throw UsageError("--echo is for text; --json has the prompt");
  for (const std::string& word : args.texts("stop")) {
    if (word.empty()) throw UsageError("--stop is empty, expected a text");
    if (args.has("ids")) throw UsageError("--stop is for text; --ids prints ids");
  }

  const std::string path = *args.text("model.oxb");
  const oxb::Model model = open_model(path, &common);
  oxb::SamplerOptions sampling = sampler_options(args, model);
  const oxb_model_info info = model.info();
  // A translation has one text that is right, more or less.
  if (info.task == OXB_TASK_TRANSLATE && !args.has("temperature")) sampling.temperature = 0.0f;
  const bool numbers = model.input_info(0, 0)->type != OXB_TYPE_I32;
  if (numbers != args.has("input")) {
    throw UsageError(numbers ? "the model takes numbers: give them with --input FILE"
                             : "--input is for models that take numbers; this one takes text");
  }
  // What is written down is text where the model can say how.
  const bool as_ids = args.has("ids") || (numbers && info.tokenizer == OXB_TOKENIZER_NONE);
  const std::optional<std::string> words =
      args.has("PROMPT") ? args.text("PROMPT") : args.text("prompt");
  if (args.has("save")) refuse_overwriting(*args.text("save"), {path});
  TextOutput out(stdout);
  const Request request{args,   model,  path,  common, sampling, info,
                        as_ids, tokens, words, file,   out};
  if (info.task == OXB_TASK_ENCODE && !numbers) {
    throw InputError(path +
                     ": the model gives hidden states, which oxbow run has no use for; call "
                     "oxb_session_run_entry, or compare with oxbow verify");
  }
  refuse_options_of_other_tasks(args, request.info.task);
  if (!request.as_ids) need_tokenizer(model, path, ", or give and get ids with --ids 1,2,3");
  switch (request.info.task) {
    case OXB_TASK_TRANSLATE:
      return run_translate(request);
    case OXB_TASK_CLASSIFY:
      return run_classify(request);
    case OXB_TASK_FILL_MASK:
      return run_fill_mask(request);
    case OXB_TASK_ENCODE: {
      oxb::Session session = open_session(model, path, common);
      run_numbers(request, session, true);
      return kExitGood;
    }
    default:
      if (prompts == 0 && !file && !args.has("save") && !args.has("json") && somebody_types()) {
        return write_together(request);
      }
      return run_generate(request);
  }
}

}  // namespace oxbow::tools
