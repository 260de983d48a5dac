// oxbow tokenize: a text as the tokens a model sees, and the other way.

#include <charconv>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "host/describe.h"
#include "tools/commands.h"
#include "tools/common.h"
#include "tools/text.h"

namespace oxbow::tools {
namespace {

/// Bytes that are no character become U+FFFD, as JSON has only characters.
std::string quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

/// A line for each token, or an element of a JSON array.
void print_token(const oxb::Model& model, int32_t id, bool json, bool first) {
  char digits[16];
  const auto [end, error] = std::to_chars(std::begin(digits), std::end(digits), id);
  const std::string number(digits, end);
  const std::string bytes = token_bytes(model, id);
  std::string line;
  if (json) {
    line = std::string(first ? "\n" : ",\n") + R"(    {"id": )" + number + R"(, "text": )" +
           quoted(bytes) + "}";
  } else {
    line = std::string(number.size() < 8 ? 8 - number.size() : 0, ' ') + number + "  \"" +
           visible(bytes) + "\"\n";
  }
  std::fwrite(line.data(), 1, line.size(), stdout);
}

int print_tokens(const Args& args, const oxb::Model& model) {
  const bool json = args.has("json");
  oxb::EncoderOptions options;
  options.add_template = args.has("no-template") ? 0 : 1;
  options.parse_special = args.has("no-special") ? 0 : 1;
  TextReader reader(model,
                    args.has("file") ? TextSource::file(*args.text("file"))
                                     : TextSource::words("the prompt", *args.text("prompt")),
                    options);
  std::vector<int32_t> ids(4096);
  uint64_t tokens = 0;
  if (json) std::fputs("{\n  \"tokens\": [", stdout);
  for (size_t count; (count = reader.read(ids)) > 0;) {
    for (size_t i = 0; i < count; ++i) print_token(model, ids[i], json, tokens++ == 0);
    if (std::ferror(stdout) != 0) break;  // Nobody reads on.
  }
  const double ratio =
      tokens == 0 ? 0.0 : static_cast<double>(reader.bytes()) / static_cast<double>(tokens);
  if (json) {
    std::printf("%s],\n  \"count\": %llu,\n  \"bytes\": %llu,\n  \"bytes_per_token\": %.6g\n}\n",
                tokens == 0 ? "" : "\n  ", static_cast<unsigned long long>(tokens),
                static_cast<unsigned long long>(reader.bytes()), ratio);
  } else {
    std::fflush(stdout);
    std::fprintf(stderr, "%s, %s, %.3f bytes per token\n", count_text(tokens, "token").c_str(),
                 count_text(reader.bytes(), "byte").c_str(), ratio);
  }
  return kExitGood;
}

int print_text(const Args& args, const oxb::Model& model) {
  oxb::DecoderOptions options;
  options.skip_special = args.has("no-special") ? 1 : 0;
  oxb::Decoder decoder = open_decoder(model, options);
  const std::string text =
      decode(decoder, parse_ids(*args.text("ids"), model.info().vocabulary, "--ids"));
  if (args.has("json")) {
    std::fputs(json_text({{"text", text}}).c_str(), stdout);
  } else {
    std::printf("%s\n", text.c_str());
  }
  return kExitGood;
}

}  // namespace

void declare_tokenize(Args& args) {
  args.positional("model.oxb", "the model file");
  args.option("prompt", "TEXT", "the text; --prompt=TEXT when it begins with --");
  args.option("file", "FILE", "the same from a file of any length; - reads standard input");
  args.option("ids", "1,2,3", "the other way: print the text of these tokens");
  args.flag("no-template", "without the tokens that the model expects before and behind a text");
  args.flag("no-special",
            "what looks like a special token is text like any other; of --ids: special tokens are "
            "left out");
  args.flag("json", "print JSON");
}

int tokenize_command(const Args& args) {
  if (args.has("prompt") + args.has("file") + args.has("ids") != 1) {
    throw UsageError("give one of --prompt, --file and --ids");
  }
  if (args.has("ids") && args.has("no-template")) {
    throw UsageError("--no-template is for text; --ids are taken as they are");
  }
  const std::string path = *args.text("model.oxb");
  const oxb::Model model = open_model(path);
  need_tokenizer(model, path, "");
  return args.has("ids") ? print_text(args, model) : print_tokens(args, model);
}

}  // namespace oxbow::tools
