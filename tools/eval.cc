// oxbow eval: how well a model, or each of two, predicts a text; classifiers are in eval_classify.cc.

#include "tools/eval.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "converter/describe.h"
#include "tools/commands.h"
#include "tools/common.h"

namespace oxbow::tools {
namespace {

using convert::grouped_text;

struct Quality {
  std::string path;
  uint32_t segment = 0;
  /// Tokens that were predicted: all but the first. Characters and bytes are those of the same
  /// tokens.
  uint64_t tokens = 0;
  uint64_t characters = 0;
  uint64_t bytes = 0;
  /// How often the stream was full.
  uint64_t restarts = 0;
  double bits = 0.0;
  double seconds = 0.0;

  double bits_per_token() const { return bits / static_cast<double>(tokens); }
  double bits_per_character() const {
    return bits / static_cast<double>(std::max<uint64_t>(characters, 1));
  }
  double bits_per_byte() const { return bits / static_cast<double>(bytes); }
  double perplexity() const { return std::exp2(bits_per_token()); }
  double tokens_per_second() const {
    return seconds > 0.0 ? static_cast<double>(tokens + 1) / seconds : 0.0;
  }
};

/// -log2 of the probability that softmax(logits) gives to `token`.
double surprise(std::span<const float> logits, int32_t token) {
  const double most = static_cast<double>(*std::max_element(logits.begin(), logits.end()));
  double sum = 0.0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit) - most);
  return (std::log(sum) + most - static_cast<double>(logits[static_cast<size_t>(token)])) /
         std::log(2.0);
}

uint64_t count_characters(std::string_view bytes) {
  return static_cast<uint64_t>(
      std::count_if(bytes.begin(), bytes.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

Quality evaluate(const oxb::Model& model, const std::string& path, uint32_t segment,
                 const CommonOptions& common, const std::string& text_path, std::string_view text) {
  const oxb_model_info info = model.info();
  oxb::Session session = open_session(model, path, common);
  TextReader reader(model, text_path, text);
  Quality quality;
  quality.path = path;
  quality.segment = segment;

  std::vector<int32_t> ids(segment);
  std::vector<float> logits(size_t{segment} * info.output_width);
  // The row that predicts the first token of the next segment.
  std::vector<float> last(info.output_width);
  bool first = true;
  Progress progress;
  for (size_t count; (count = reader.read(ids)) > 0;) {
    // What a reader gives may be shorter than the segment only at the end of the text.
    const Stopwatch time;
    oxb::Status status = session.run(std::span(ids).first(count),
                                     std::span(logits).first(count * info.output_width));
    if (status.code() == OXB_STREAM_FULL && session.position() > 0) {
      // The stream begins anew; what is predicted then comes from an empty memory.
      session.reset();
      ++quality.restarts;
      status = session.run(std::span(ids).first(count),
                           std::span(logits).first(count * info.output_width));
    }
    check(status, path);
    quality.seconds += time.seconds();
    for (size_t i = 0; i < count; ++i) {
      const std::span<const float> predicting =
          i == 0 ? std::span<const float>(last)
                 : std::span<const float>(logits).subspan((i - 1) * info.output_width,
                                                          info.output_width);
      if (first) {
        first = false;
        continue;
      }
      quality.bits += surprise(predicting, ids[i]);
      char token[256];
      const oxb::Expected<size_t> bytes = model.token_bytes(ids[i], token);
      check(bytes.status(), path);
      quality.tokens += 1;
      quality.bytes += *bytes;
      quality.characters += count_characters({token, std::min(*bytes, sizeof(token))});
    }
    std::copy_n(logits.begin() + static_cast<ptrdiff_t>((count - 1) * info.output_width),
                info.output_width, last.begin());
    progress.show("byte", reader.consumed(), text.size());
  }
  if (quality.tokens == 0) {
    throw InputError(text_path + ": the text has fewer than 2 tokens; at least 2 are needed");
  }
  if (!std::isfinite(quality.bits)) {
    throw CheckFailed(path + ": the model gave logits that are no numbers");
  }
  return quality;
}

/// The first `limit` characters.
std::string_view shortened(std::string_view text, uint64_t limit) {
  uint64_t seen = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if ((text[i] & 0xc0) != 0x80 && seen++ == limit) return text.substr(0, i);
  }
  return text;
}

nlohmann::json to_json(const Quality& quality) {
  return {{"model", quality.path},
          {"segment", quality.segment},
          {"tokens", quality.tokens},
          {"characters", quality.characters},
          {"bytes", quality.bytes},
          {"restarts", quality.restarts},
          {"bits_per_token", quality.bits_per_token()},
          {"bits_per_character", quality.bits_per_character()},
          {"bits_per_byte", quality.bits_per_byte()},
          {"perplexity", quality.perplexity()},
          {"tokens_per_second", quality.tokens_per_second()}};
}

void print_row(const char* name, const std::vector<Quality>& all,
               double (Quality::*value)() const) {
  std::printf("%-20s", name);
  for (const Quality& quality : all) std::printf("%14.4f", (quality.*value)());
  if (all.size() == 2) {
    const double a = (all[0].*value)(), b = (all[1].*value)();
    std::printf("%+14.4f  (%+.2f %%)", b - a, a != 0.0 ? 100.0 * (b - a) / a : 0.0);
  }
  std::printf("\n");
}

/// The file's name without its folders, cut to the width of a column.
std::string column_name(const std::string& path) {
  return path.substr(path.rfind('/') + 1).substr(0, 13);
}

}  // namespace

int eval_command(int argc, char** argv) {
  Args args("oxbow eval", "measures how well a model predicts a text");
  args.positional("model.oxb", "the model file");
  args.option("text", "FILE", "the text; - reads standard input");
  args.option("classify", "FILE",
              "of a classifier: a text in each line, and behind a tab its class where it is known");
  args.flag("ids", "the lines of --classify are token ids, with commas between");
  args.option("compare", "OTHER.oxb", "measure this one too and print both side by side");
  args.option("limit", "N", "use only the first N characters");
  args.flag("json", "print JSON");
  add_common_options(args);
  args.parse(argc, argv, 2);
  if (args.help_wanted()) {
    std::fputs(args.help().c_str(), stdout);
    return convert::kExitGood;
  }
  const CommonOptions common = read_common_options(args);
  const uint64_t limit = args.integer("limit", UINT64_MAX, 1, UINT64_MAX);
  if (args.has("text") + args.has("classify") != 1) {
    throw UsageError("give --text FILE, or --classify FILE for a classifier");
  }
  if (args.has("classify")) {
    const std::string path = *args.text("model.oxb");
    return eval_classify(args, open_model(path), path, common);
  }

  const TextSource source(*args.text("text"));
  const std::string_view text = shortened(source.text(), limit);
  std::vector<std::string> paths = {*args.text("model.oxb")};
  if (args.has("compare")) paths.push_back(*args.text("compare"));
  std::vector<oxb::Model> models;
  uint32_t segment = UINT32_MAX;
  for (const std::string& path : paths) {
    models.push_back(open_model(path));
    if (models.back().info().task != OXB_TASK_GENERATE) {
      throw InputError(path + ": only a model that continues text predicts one" +
                       (models.back().info().task == OXB_TASK_CLASSIFY
                            ? "; a classifier is measured with --classify FILE"
                            : ""));
    }
    need_tokenizer(models.back(), path, "");
    // How the text is cut changes what a model remembers: the same for both.
    segment = std::min(segment, models.back().info().max_segment);
    if (const uint64_t capacity = models.back().info().capacity; capacity != 0) {
      segment = static_cast<uint32_t>(std::min<uint64_t>(segment, capacity));
    }
  }
  std::vector<Quality> all;
  for (size_t i = 0; i < models.size(); ++i) {
    all.push_back(evaluate(models[i], paths[i], segment, common, *args.text("text"), text));
  }

  if (args.has("json")) {
    nlohmann::json out = {{"text", *args.text("text")}, {"models", nlohmann::json::array()}};
    for (const Quality& quality : all) out["models"].push_back(to_json(quality));
    if (all.size() == 2) {
      const double a = all[0].bits_per_character(), b = all[1].bits_per_character();
      out["difference"] = {{"bits_per_character", b - a},
                           {"relative", a != 0.0 ? (b - a) / a : 0.0}};
    }
    std::fputs(convert::json_text(out).c_str(), stdout);
    return convert::kExitGood;
  }
  for (const Quality& quality : all) {
    std::printf("%s: %s tokens, %s characters, %s bytes, in segments of %u\n", quality.path.c_str(),
                grouped_text(quality.tokens).c_str(), grouped_text(quality.characters).c_str(),
                grouped_text(quality.bytes).c_str(), quality.segment);
    if (quality.restarts > 0) {
      std::printf("  the stream was full and began anew %s times\n",
                  grouped_text(quality.restarts).c_str());
    }
  }
  if (all.size() == 2) {
    std::printf("%-20s%14s%14s%14s\n", "", column_name(paths[0]).c_str(),
                column_name(paths[1]).c_str(), "difference");
  }
  print_row("bits per token", all, &Quality::bits_per_token);
  print_row("bits per character", all, &Quality::bits_per_character);
  print_row("bits per byte", all, &Quality::bits_per_byte);
  print_row("perplexity", all, &Quality::perplexity);
  std::printf("%-20s", "tokens/s");
  for (const Quality& quality : all) std::printf("%14.0f", quality.tokens_per_second());
  std::printf("\n");
  return convert::kExitGood;
}

}  // namespace oxbow::tools
