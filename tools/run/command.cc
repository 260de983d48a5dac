// oxbow run: the options, and what the ways of running share.

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "tools/commands.h"
#include "tools/run/run.h"

namespace oxbow::tools {
namespace {

volatile sig_atomic_t interrupted = 0;

oxb::SamplerOptions sampler_options(const Args& args) {
  oxb::SamplerOptions options;
  options.temperature = static_cast<float>(
      args.number("temperature", static_cast<double>(options.temperature), 0.0, 1e6));
  options.top_k = static_cast<uint32_t>(args.integer("top-k", options.top_k, 0, UINT32_MAX));
  options.top_p = static_cast<float>(args.number("top-p", 1.0, 1e-6, 1.0));
  options.repetition_penalty =
      static_cast<float>(args.number("repetition-penalty", 1.0, 1e-3, 1e3));
  options.seed = args.integer("seed", 0, 0, UINT64_MAX);
  return options;
}

double rate(uint64_t tokens, double seconds) {
  return seconds > 0.0 ? static_cast<double>(tokens) / seconds : 0.0;
}

void add_options(Args& args) {
  args.positional("model.oxb", "the model file");
  args.option("prompt", "TEXT",
              "what to continue, translate or classify; --prompt=TEXT when it "
              "begins with --");
  args.option("file", "FILE", "the same from a file of any length; - reads standard input");
  args.option("ids", "1,2,3", "the same as token ids; ids are then printed");
  args.option("tokens", "N", "how many tokens to generate at most (default 200)");
  args.option("temperature", "X",
              "0 always takes the most likely token (default 0.8; 0 for translators)");
  args.option("top-k", "K", "choose among the K most likely tokens; 0 means all (default 0)");
  args.option("top-p", "P", "choose among the most likely that reach this probability (default 1)");
  args.option("repetition-penalty", "X",
              "makes the last 64 tokens less likely when above 1 (default 1)");
  args.option("seed", "S", "same seed, same text (default 0)");
  args.option("beams", "N", "translate by following N texts at a time, 1 to 64 (default 1)");
  args.option("length-penalty", "X", "of --beams: above 0 prefers longer texts (default 1)");
  args.option("n-best", "N", "of --beams: print the N best with their scores (default 1)");
  args.option("mask", "ID", "the token to replace, of a model that fills masks");
  add_common_options(args);
}

}  // namespace

void stop_on_interrupt() {
  struct sigaction action = {};
  action.sa_handler = [](int) { interrupted = 1; };
  action.sa_flags = SA_RESETHAND | SA_RESTART;
  ::sigaction(SIGINT, &action, nullptr);
}

bool stop_wanted() { return interrupted != 0; }

std::vector<int32_t> parse_ids(const std::string& text, uint32_t limit, const std::string& what) {
  std::vector<int32_t> ids;
  for (size_t begin = 0; begin <= text.size() && !text.empty();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const std::string word = text.substr(begin, end - begin);
    const std::optional<uint64_t> value = convert::parse_integer(word);
    if (!value || *value >= limit) {
      throw UsageError(
          format("%s: '%s' is no token; expected numbers from 0 to %u with commas between",
                 what.c_str(), convert::printable(word, 40).c_str(), limit - 1));
    }
    ids.push_back(static_cast<int32_t>(*value));
    begin = end + 1;
  }
  return ids;
}

std::vector<int32_t> read_prompt(const Request& request, uint32_t most) {
  const Args& args = request.args;
  std::vector<int32_t> ids;
  if (request.as_ids) {
    ids = parse_ids(*args.text("ids"), request.model.input_info(0, 0)->limit, "--ids");
  } else {
    const std::string prompt = args.text("prompt", "");
    std::optional<TextSource> file;
    if (args.has("file")) file.emplace(*args.text("file"));
    TextReader reader(request.model, file ? *args.text("file") : "the prompt",
                      file ? file->text() : prompt);
    std::vector<int32_t> piece(4096);
    for (size_t count; (count = reader.read(piece)) > 0;) {
      ids.insert(ids.end(), piece.begin(), piece.begin() + static_cast<ptrdiff_t>(count));
    }
  }
  if (ids.empty()) throw UsageError("give a text with --prompt, --file or --ids");
  if (ids.size() > most) {
    throw InputError(
        format("%s: the text has %zu tokens and the model takes %u at once; convert "
               "with --max-segment where it allows more",
               request.path.c_str(), ids.size(), most));
  }
  return ids;
}

std::string token_text(const Request& request, int32_t token) {
  if (request.as_ids) return std::to_string(token);
  char bytes[256];
  const oxb::Expected<size_t> count = request.model.token_bytes(token, bytes);
  check(count.status(), request.path);
  return std::string(bytes, std::min(*count, sizeof(bytes)));
}

bool Printer::add(int32_t token) {
  const std::string piece = request_.as_ids ? (count_ > 0 ? " " : "") + std::to_string(token)
                                            : text_.add(token_text(request_, token));
  ++count_;
  if (piece.empty()) return true;
  std::fwrite(piece.data(), 1, piece.size(), stdout);
  line_open_ = piece.back() != '\n';
  return std::fflush(stdout) == 0;
}

void Printer::finish() {
  if (line_open_ && (request_.as_ids || ::isatty(STDOUT_FILENO) == 1)) std::fputc('\n', stdout);
  std::fflush(stdout);
}

void print_speed(const Speed& speed) {
  // The first token comes from the prompt's logits, so a run of n tokens decodes n - 1 steps.
  const uint64_t steps = speed.generated > 0 ? speed.generated - 1 : 0;
  std::fprintf(
      stderr,
      "prompt %llu tokens, %.1f tokens/s; generated %llu tokens, %.1f tokens/s; arena %zu bytes; "
      "resident %llu bytes\n",
      static_cast<unsigned long long>(speed.prompt_tokens),
      rate(speed.prompt_tokens, speed.prompt_seconds),
      static_cast<unsigned long long>(speed.generated), rate(steps, speed.decode_seconds),
      speed.arena_bytes, static_cast<unsigned long long>(resident_memory().bytes));
}

/// An option that has no effect on this model is a mistake.
static void refuse_options_of_other_tasks(const Args& args, oxb_task task) {
  for (const char* name : {"beams", "n-best", "length-penalty"}) {
    if (args.has(name) && task != OXB_TASK_TRANSLATE) {
      throw UsageError(std::string("--") + name +
                       " is for models that translate; this one does not");
    }
  }
  if (args.has("mask") && task != OXB_TASK_FILL_MASK) {
    throw UsageError("--mask is for models that fill masks; this one does not");
  }
}

int run_command(int argc, char** argv) {
  Args args("oxbow run", "continues a text, or does with it what the model is for");
  add_options(args);
  args.parse(argc, argv, 2);
  if (args.help_wanted()) {
    std::fputs(args.help().c_str(), stdout);
    return convert::kExitGood;
  }
  const CommonOptions common = read_common_options(args);
  const uint64_t tokens = args.integer("tokens", 200, 0, UINT64_MAX);
  const oxb::SamplerOptions sampling = sampler_options(args);
  beam_options(args);
  if (args.has("prompt") + args.has("file") + args.has("ids") > 1) {
    throw UsageError("give one of --prompt, --file and --ids");
  }

  const std::string path = *args.text("model.oxb");
  const oxb::Model model = open_model(path);
  const Request request{args, model, path, common, sampling, model.info(), args.has("ids"), tokens};
  if (request.info.task == OXB_TASK_ENCODE || model.input_info(0, 0)->type != OXB_TYPE_I32) {
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
    default:
      return run_generate(request);
  }
}

}  // namespace oxbow::tools
