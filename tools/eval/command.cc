// oxbow eval: how well a model, or each of two, predicts a text; classifiers are in eval_classify.cc.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "host/describe.h"
#include "host/divergence.h"
#include "tools/commands.h"
#include "tools/common.h"
#include "tools/eval/eval.h"
#include "tools/interrupt.h"
#include "tools/text.h"

namespace oxbow::tools {
namespace {

struct Quality {
  std::string path;
  uint32_t segment = 0;
  /// Tokens of the text that were predicted, and the characters and bytes of the text that they
  /// stand for: all of it when the tokenizer puts something before a text, else all but the first
  /// token. What it puts around a text is fed, where it has an effect, and counts for nothing.
  uint64_t tokens = 0;
  uint64_t characters = 0;
  uint64_t bytes = 0;
  /// How often the stream was full.
  uint64_t restarts = 0;
  uint64_t fed = 0;
  double bits = 0.0;
  double seconds = 0.0;

  double bits_per_token() const { return bits / static_cast<double>(tokens); }
  double bits_per_character() const {
    return bits / static_cast<double>(std::max<uint64_t>(characters, 1));
  }
  double bits_per_byte() const { return bits / static_cast<double>(bytes); }
  double perplexity() const { return std::exp2(bits_per_token()); }
  double tokens_per_second() const {
    return seconds > 0.0 ? static_cast<double>(fed) / seconds : 0.0;
  }
};

/// -log2 of the probability that softmax(logits) gives to `token`.
double surprise(std::span<const float> logits, int32_t token) {
  return (log_sum_exp(logits) - static_cast<double>(logits[static_cast<size_t>(token)])) /
         std::log(2.0);
}

/// The text that the first token of a text stands for, at least its bytes.
std::string first_text(const oxb::Model& model, int32_t token) {
  const oxb_tokenizer_kind kind = model.info().tokenizer;
  if (kind != OXB_TOKENIZER_UNIGRAM && kind != OXB_TOKENIZER_BPE) return token_bytes(model, token);
  // Their tokens have a mark for a space, which need not have been in the text.
  oxb::Decoder decoder = open_decoder(model);
  const oxb::Expected<std::string_view> text = decoder.run(token);
  check(text.status(), "the tokenizer");
  // A token for a single byte waits for the rest of its character.
  return text->empty() ? "?" : std::string(*text);
}

/// The text to measure, from its beginning.
TextSource open_text(const Args& args) {
  TextSource source = TextSource::file(*args.text("text"));
  source.limit(args.integer("limit", UINT64_MAX, 1, UINT64_MAX));
  return source;
}

/// Feeds a text in segments, and asks how probable each token was.
class Evaluation {
 public:
  Evaluation(const oxb::Model& model, const std::string& path, uint32_t segment,
             const CommonOptions& common)
      : model_(model),
        width_(model.info().output_width),
        session_(open_session(model, path, common)),
        before_(template_of(model).before),
        ids_(segment),
        logits_(size_t{segment} * width_),
        last_(width_) {
    quality_.path = path;
    quality_.segment = segment;
  }

  /// Before the first step.
  void open(TextSource source) {
    name_ = source.name();
    oxb::EncoderOptions options;
    // What goes before the text is fed here, and what goes behind it changes nothing. What is
    // measured is text, whatever it looks like.
    options.add_template = options.parse_special = 0;
    reader_.emplace(model_, std::move(source), options);
  }

  /// Feeds the next segment; false: there is none.
  bool step() {
    if (stop_wanted()) reader_->stop();
    if (count_ > 0) {
      const std::span<const float> last = row(count_ - 1);
      std::copy(last.begin(), last.end(), last_.begin());
    }
    count_ = next_segment(*reader_);
    if (count_ == 0) return false;
    run(count_);
    first_predicted_ = count_;
    for (size_t i = 0; i < count_; ++i, ++quality_.fed) {
      if (quality_.fed == 0 || quality_.fed < before_.size()) continue;
      first_predicted_ = std::min(first_predicted_, i);
      quality_.bits += surprise(prediction(i), ids_[i]);
      ++quality_.tokens;
    }
    progress_.show("byte", reader_->bytes(), reader_->size());
    return true;
  }

  Quality finish() {
    count_text(*reader_, name_);
    return quality_;
  }

  size_t width() const { return width_; }
  /// Of the segment fed last: its tokens, the first of them that was predicted, and the row that predicted one.
  std::span<const int32_t> ids() const { return std::span(ids_).first(count_); }
  size_t first_predicted() const { return first_predicted_; }
  std::span<const float> prediction(size_t index) const {
    return index == 0 ? std::span<const float>(last_) : row(index - 1);
  }

 private:
  std::span<const float> row(size_t index) const {
    return std::span(logits_).subspan(index * width_, width_);
  }

  /// Shorter than a segment only at the end of the text.
  size_t next_segment(TextReader& reader) {
    size_t count = 0;
    for (; quality_.fed + count < before_.size() && count < ids_.size(); ++count) {
      ids_[count] = before_[quality_.fed + count];
    }
    const size_t read = reader.read(std::span(ids_).subspan(count));
    if (quality_.fed == 0 && before_.empty() && read > 0) first_ = first_text(model_, ids_[0]);
    return count + read;
  }

  void run(size_t count) {
    const Stopwatch time;
    const std::span<const int32_t> ids = std::span(ids_).first(count);
    const std::span<float> logits = std::span(logits_).first(count * width_);
    oxb::Status status = session_.run(ids, logits);
    if (status.code() == OXB_STREAM_FULL && session_.position() > 0) {
      // The stream begins anew; what is predicted then comes from an empty memory.
      session_.reset();
      ++quality_.restarts;
      if (!before_.empty()) check(session_.run(before_), quality_.path);
      status = session_.run(ids, logits);
    }
    check(status, quality_.path);
    quality_.seconds += time.seconds();
  }

  void count_text(const TextReader& reader, const std::string& name) {
    quality_.bytes = reader.bytes() - std::min<uint64_t>(first_.size(), reader.bytes());
    quality_.characters =
        reader.characters() - std::min(count_characters(first_), reader.characters());
    if (quality_.tokens == 0 || quality_.bytes == 0) {
      throw InputError(name + (before_.empty()
                                   ? ": the text has fewer than 2 tokens; at least 2 are needed"
                                   : ": the text is empty"));
    }
    if (!std::isfinite(quality_.bits)) {
      throw CheckFailed(quality_.path + ": the model gave logits that are no numbers");
    }
  }

  const oxb::Model& model_;
  size_t width_;
  oxb::Session session_;
  /// What the tokenizer puts before a text.
  std::vector<int32_t> before_;
  std::vector<int32_t> ids_;
  std::vector<float> logits_;
  /// The row that predicts the first token of the next segment.
  std::vector<float> last_;
  /// What the first token stands for when nothing predicts it.
  std::string first_;
  std::string name_;
  std::optional<TextReader> reader_;
  size_t count_ = 0, first_predicted_ = 0;
  Progress progress_;
  Quality quality_;
};

/// Feeds both a segment at a time, as long as they see the same tokens. Nothing: they do not.
std::optional<Divergence> compare(Evaluation& judge, Evaluation& other) {
  Divergence divergence;
  bool same = judge.width() == other.width();
  for (;;) {
    const bool more = judge.step(), other_more = other.step();
    if (!more && !other_more) break;
    same = same && std::ranges::equal(judge.ids(), other.ids());
    for (size_t i = judge.first_predicted(); same && i < judge.ids().size(); ++i) {
      divergence.add(judge.prediction(i), other.prediction(i), judge.ids()[i]);
    }
  }
  return same ? std::optional(divergence) : std::nullopt;
}

nlohmann::json to_json(const Divergence& divergence) {
  nlohmann::json out;
  const auto add = [&](const std::string& name, const Estimate& estimate) {
    out[name] = estimate.value;
    out[name + "_error"] = estimate.error;
  };
  add("perplexity_change", divergence.perplexity_change());
  add("mean_kl", divergence.kl());
  add("rms_delta_p", divergence.rms_delta_p());
  add("same_top", divergence.same_top());
  add("overturned_lead", divergence.overturned_lead());
  out["overturned_lead_largest"] = divergence.largest_overturned_lead();
  return out;
}

void print(const Divergence& divergence) {
  const auto row = [](const char* name, const std::string& text) {
    std::printf("%-20s%s\n", name, text.c_str());
  };
  row("perplexity change",
      estimate_text(divergence.perplexity_change(), "%+.3f", 100) + " %, as seen from the first");
  row("mean KL", estimate_text(divergence.kl(), "%.5f") + " nats");
  row("RMS change of p", estimate_text(divergence.rms_delta_p(), "%.3f", 100) + " %");
  row("same top token", estimate_text(divergence.same_top(), "%.2f", 100) + " %");
  char largest[48];
  std::snprintf(largest, sizeof(largest), "%.3f", divergence.largest_overturned_lead());
  row("lead overturned",
      estimate_text(divergence.overturned_lead(), "%.3f") + " nats, at most " + largest);
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

void declare_eval(Args& args) {
  args.positional("model.oxb", "the model file");
  args.option("text", "FILE", "the text; - reads standard input");
  args.option("classify", "FILE",
              "of a classifier: a text in each line, and behind a tab its class where it is known");
  args.flag("ids", "the lines of --classify are token ids, with commas between");
  args.option("compare", "OTHER.oxb", "measure this one too and print both side by side");
  args.option("limit", "N", "use only the first N characters");
  args.flag("json", "print JSON");
  add_common_options(args);
}

int eval_command(const Args& args) {
  const CommonOptions common = read_common_options(args);
  if (args.has("text") + args.has("classify") != 1) {
    throw UsageError("give --text FILE, or --classify FILE for a classifier");
  }
  if (args.has("classify")) {
    const std::string path = *args.text("model.oxb");
    return eval_classify(args, open_model(path, &common), path, common);
  }

  TextSource source = open_text(args);
  if (args.has("compare") && *args.text("text") == "-") {
    throw UsageError("--compare reads the text twice: give --text a file, not standard input");
  }
  std::vector<std::string> paths = {*args.text("model.oxb")};
  if (args.has("compare")) paths.push_back(*args.text("compare"));
  std::vector<oxb::Model> models;
  uint32_t segment = UINT32_MAX;
  for (const std::string& path : paths) {
    models.push_back(open_model(path, &common));
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
      // Where the stream begins anew, what goes before a text goes first.
      const size_t before = template_of(models.back()).before.size();
      segment = static_cast<uint32_t>(
          std::min<uint64_t>(segment, capacity > before ? capacity - before : 1));
    }
  }
  std::vector<std::unique_ptr<Evaluation>> evaluations;
  for (size_t i = 0; i < models.size(); ++i) {
    if (i > 0) source = open_text(args);
    evaluations.push_back(std::make_unique<Evaluation>(models[i], paths[i], segment, common));
    evaluations[i]->open(std::move(source));
  }
  // What was read until then is judged.
  stop_on_interrupt();
  std::optional<Divergence> divergence;
  if (evaluations.size() == 2) divergence = compare(*evaluations[0], *evaluations[1]);
  while (evaluations[0]->step()) {
  }
  std::vector<Quality> all;
  for (const auto& evaluation : evaluations) all.push_back(evaluation->finish());

  if (args.has("json")) {
    nlohmann::json out = {{"text", *args.text("text")}, {"models", nlohmann::json::array()}};
    for (const Quality& quality : all) out["models"].push_back(to_json(quality));
    if (all.size() == 2) {
      const double a = all[0].bits_per_character(), b = all[1].bits_per_character();
      out["difference"] = {{"bits_per_character", b - a},
                           {"relative", a != 0.0 ? (b - a) / a : 0.0}};
    }
    if (divergence) out["divergence"] = to_json(*divergence);
    out["interrupted"] = stop_wanted();
    std::fputs(json_text(out).c_str(), stdout);
    return stop_wanted() ? kExitInterrupted : kExitGood;
  }
  for (const Quality& quality : all) {
    std::printf("%s: %s, %s, %s, in segments of %u\n", quality.path.c_str(),
                oxbow::count_text(quality.tokens, "token").c_str(),
                oxbow::count_text(quality.characters, "character").c_str(),
                oxbow::count_text(quality.bytes, "byte").c_str(), quality.segment);
    if (quality.restarts > 0) {
      std::printf("  the stream was full and began anew %s\n",
                  oxbow::count_text(quality.restarts, "time").c_str());
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
  if (divergence) print(*divergence);
  if (!stop_wanted()) return kExitGood;
  std::fputs("interrupted: this is of the text that was read until then\n", stderr);
  return kExitInterrupted;
}

}  // namespace oxbow::tools
