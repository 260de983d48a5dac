// oxbow eval --classify: the classes of many texts, and how often they are those that were expected.

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "host/describe.h"
#include "tools/classes.h"
#include "tools/eval/eval.h"
#include "tools/interrupt.h"
#include "tools/text.h"

namespace oxbow::tools {
namespace {

/// One line of the file: a text, and behind a tab the class it should get.
struct Sample {
  std::string text;
  std::optional<std::string> label;
};

struct Result {
  size_t index = 0;
  double probability = 0.0;
  std::optional<bool> right;
};

/// The next line that is not empty; nothing: there is none.
std::optional<Sample> next_sample(TextSource& source) {
  std::string line;
  while (source.read_line(&line)) {
    if (line.ends_with('\r')) line.pop_back();
    if (line.empty()) continue;
    const size_t tab = line.rfind('\t');
    if (tab == line.npos) return Sample{line, std::nullopt};
    return Sample{line.substr(0, tab), line.substr(tab + 1)};
  }
  return std::nullopt;
}

class Classifier {
 public:
  Classifier(const oxb::Model& model, std::string path, const CommonOptions& common, bool as_ids)
      : model_(model),
        path_(std::move(path)),
        session_(open_session(model, path_, common)),
        info_(model.info()),
        as_ids_(as_ids),
        logits_(info_.output_width) {}

  /// `where` is what a message calls the line.
  Result classify(const Sample& sample, const std::string& where) {
    const std::vector<int32_t> ids = tokens(sample.text, where);
    check(session_.run(ids, logits_), where);
    const std::vector<double> shares = probabilities(logits_);
    Result result;
    result.index = best_first(shares, 1)[0];
    result.probability = shares[result.index];
    if (sample.label) result.right = expected_class(*sample.label, where) == result.index;
    return result;
  }

 private:
  std::vector<int32_t> tokens(const std::string& text, const std::string& where) const {
    std::vector<int32_t> ids;
    if (as_ids_) {
      try {
        ids = parse_ids(text, info_.vocabulary, where);
      } catch (const UsageError& error) {
        throw InputError(error.what());  // What stands in a file is no usage.
      }
    } else {
      ids.resize(size_t{info_.max_segment} + 1);
      TextReader reader(model_, TextSource::words(where, text));
      ids.resize(reader.read(ids));
    }
    if (ids.empty() || ids.size() > info_.max_segment) {
      throw InputError(
          format("%s: the model takes 1 to %u tokens", where.c_str(), info_.max_segment));
    }
    return ids;
  }

  size_t expected_class(const std::string& label, const std::string& where) const {
    for (size_t i = 0; i < info_.label_count; ++i) {
      if (class_name(model_, i) == label) return i;
    }
    const std::optional<uint64_t> number = parse_integer(label);
    if (number && *number < info_.output_width) return *number;
    throw InputError(format("%s: '%s' is not a class; expected its name or a number from 0 to %u",
                            where.c_str(), printable(label, 40).c_str(), info_.output_width - 1));
  }

  const oxb::Model& model_;
  std::string path_;
  oxb::Session session_;
  oxb_model_info info_ = OXB_MODEL_INFO_INIT;
  bool as_ids_;
  std::vector<float> logits_;
};

}  // namespace

int eval_classify(const Args& args, const oxb::Model& model, const std::string& path,
                  const CommonOptions& common) {
  const oxb_model_info info = model.info();
  if (info.task != OXB_TASK_CLASSIFY || info.output_width < 2) {
    throw InputError(path + ": the model has no classes; --classify needs a classifier");
  }
  if (!args.has("ids")) need_tokenizer(model, path, ", or give lines of ids with --ids");
  const std::string file = *args.text("classify");
  TextSource source = TextSource::file(file);
  Classifier classifier(model, path, common, args.has("ids"));
  nlohmann::json lines = nlohmann::json::array();
  uint64_t judged = 0, right = 0, texts = 0;
  const Stopwatch time;
  stop_on_interrupt();
  // Classes that are printed on a terminal show how far it is.
  const bool silent = args.has("json") || ::isatty(STDOUT_FILENO) != 1;
  std::optional<Progress> progress(std::in_place);
  while (!stop_wanted()) {
    const std::optional<Sample> sample = next_sample(source);
    if (!sample) break;
    const Result result = classifier.classify(
        *sample, format("%s, text %llu", file.c_str(), static_cast<unsigned long long>(++texts)));
    judged += result.right.has_value();
    right += result.right.value_or(false);
    const std::string name = class_name(model, result.index);
    if (args.has("json")) {
      nlohmann::json line = {{"class", name}, {"probability", result.probability}};
      if (result.right) line["right"] = *result.right;
      lines.push_back(line);
    } else {
      std::printf("%.6f  %s%s\n", result.probability, name.c_str(),
                  !result.right || *result.right ? "" : "  (wrong)");
    }
    if (silent) progress->show("texts: byte", source.bytes_of_lines(), source.size());
  }
  progress.reset();
  if (texts == 0 && !stop_wanted()) throw InputError(file + ": no text in it");
  const double seconds = time.seconds();
  const double accuracy =
      judged == 0 ? 0.0 : static_cast<double>(right) / static_cast<double>(judged);
  if (args.has("json")) {
    nlohmann::json out = {{"model", path}, {"texts", texts}, {"lines", lines}};
    if (judged > 0) out["accuracy"] = accuracy;
    out["interrupted"] = stop_wanted();
    std::fputs(json_text(out).c_str(), stdout);
    return stop_wanted() ? kExitInterrupted : kExitGood;
  }
  std::printf("%s, %.1f texts/s", count_text(texts, "text").c_str(),
              seconds > 0.0 ? static_cast<double>(texts) / seconds : 0.0);
  if (judged > 0) {
    std::printf("; accuracy %.4f (%llu of %llu)", accuracy, static_cast<unsigned long long>(right),
                static_cast<unsigned long long>(judged));
  }
  std::printf("\n");
  if (!stop_wanted()) return kExitGood;
  std::fflush(stdout);
  std::fputs("interrupted: this is of the texts that were read until then\n", stderr);
  return kExitInterrupted;
}

}  // namespace oxbow::tools
