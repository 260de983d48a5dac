// oxbow embed: one row of numbers for each text, as the model's makers make it.

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "host/describe.h"
#include "host/errors.h"
#include "host/io_file.h"
#include "host/npy.h"
#include "tools/commands.h"
#include "tools/common.h"
#include "tools/interrupt.h"
#include "tools/text.h"

namespace oxbow::tools {
namespace {

struct PoolingRow {
  const char* name;
  oxb_pooling pooling;
};
constexpr PoolingRow kPoolings[] = {{"mean", OXB_POOLING_MEAN},
                                    {"first", OXB_POOLING_FIRST},
                                    {"last", OXB_POOLING_LAST},
                                    {"max", OXB_POOLING_MAX}};

/// What the file says, as far as the command line does not say otherwise.
struct Settings {
  oxb::EmbedOptions embed;
  std::string pooling;
  /// Put before every text.
  std::string prefix;
  uint32_t max_tokens = 0;
};

std::string stored(const oxb::Model& model, const std::string& key) {
  const char* value = model.find_metadata(("settings.embed_" + key).c_str());
  return value == nullptr ? "" : value;
}

Settings read_settings(const Args& args, const oxb::Model& model, const std::string& path) {
  Settings out;
  std::vector<std::string> names;
  for (const PoolingRow& row : kPoolings) names.push_back(row.name);
  out.pooling = args.has("pooling") ? args.choice("pooling", "", names) : stored(model, "pooling");
  const PoolingRow* chosen = nullptr;
  for (const PoolingRow& row : kPoolings) {
    if (out.pooling == row.name) chosen = &row;
  }
  if (chosen == nullptr) {
    throw UsageError(path +
                     ": the file does not say how the rows of a text become one; give --pooling "
                     "mean, first, last or max as the model's makers do");
  }
  out.embed.pooling = chosen->pooling;
  out.embed.normalise =
      args.has("normalise") || (stored(model, "normalise") == "true" && !args.has("no-normalise"));
  if (args.has("normalise") && args.has("no-normalise")) {
    throw UsageError("give one of --normalise and --no-normalise");
  }
  const std::string prompt = args.text("prompt-name", stored(model, "default_prompt"));
  if (args.has("prefix")) {
    if (args.has("prompt-name")) throw UsageError("give one of --prefix and --prompt-name");
    out.prefix = args.text("prefix", "");
  } else if (!prompt.empty()) {
    const char* words = model.find_metadata(("settings.embed_prompt." + prompt).c_str());
    if (words == nullptr) {
      throw UsageError("--prompt-name " + printable(prompt) + ": " + path +
                       " has no prompt of this name");
    }
    out.prefix = words;
  }
  const uint32_t most = model.info().max_segment;
  const std::string kept = stored(model, "max_tokens");
  const uint64_t stored_most = parse_integer(kept).value_or(most);
  out.max_tokens = static_cast<uint32_t>(args.integer(
      "max-tokens", std::min<uint64_t>(std::max<uint64_t>(stored_most, 1), most), 1, most));
  return out;
}

class Embedder {
 public:
  Embedder(const oxb::Model& model, oxb::Session session, Settings settings)
      : model_(model),
        session_(std::move(session)),
        settings_(std::move(settings)),
        around_(template_of(model)) {}

  std::vector<float> embed(const std::string& text) {
    TextReader reader(model_, TextSource::words("the text", settings_.prefix + text));
    // One more tells that it is too long, however long it is.
    std::vector<int32_t> ids(size_t{settings_.max_tokens} + 1);
    ids.resize(reader.read(ids));
    if (ids.size() > settings_.max_tokens) cut(ids);
    if (ids.empty()) throw InputError("a text without tokens has no embedding; leave it out");
    tokens_ += ids.size();
    oxb::Expected<std::vector<float>> row = session_.embed(ids, settings_.embed);
    check(row.status(), "the text");
    return std::move(*row);
  }

  uint64_t tokens() const { return tokens_; }
  uint64_t cut_texts() const { return cut_texts_; }

 private:
  /// The tokens behind a text stay behind it.
  void cut(std::vector<int32_t>& ids) {
    ++cut_texts_;
    const std::vector<int32_t>& after = around_.after;
    const size_t kept = settings_.max_tokens - std::min<size_t>(after.size(), settings_.max_tokens);
    ids.resize(kept);
    ids.insert(ids.end(), after.begin(),
               after.begin() + static_cast<ptrdiff_t>(settings_.max_tokens - kept));
  }

  const oxb::Model& model_;
  oxb::Session session_;
  const Settings settings_;
  const Template around_;
  uint64_t tokens_ = 0, cut_texts_ = 0;
};

double cosine(const std::vector<float>& a, const std::vector<float>& b) {
  double ab = 0, aa = 0, bb = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double x = static_cast<double>(a[i]), y = static_cast<double>(b[i]);
    ab += x * y, aa += x * x, bb += y * y;
  }
  return aa == 0 || bb == 0 ? 0 : ab / std::sqrt(aa * bb);
}

void print_row(const std::vector<float>& row) {
  std::string line;
  for (const float value : row) {
    line += (line.empty() ? "" : " ") + format("%.9g", static_cast<double>(value));
  }
  std::printf("%s\n", line.c_str());
}

void print_json(const std::vector<std::string>& texts, const std::vector<std::vector<float>>& rows,
                const Settings& settings) {
  nlohmann::json list = nlohmann::json::array();
  for (size_t i = 0; i < rows.size(); ++i) {
    list.push_back({{"text", texts[i]}, {"embedding", rows[i]}});
  }
  std::fputs(json_text({{"pooling", settings.pooling},
                        {"normalised", settings.embed.normalise != 0},
                        {"prefix", settings.prefix},
                        {"texts", list}})
                 .c_str(),
             stdout);
}

/// Cosines of all pairs, a line for each text.
void print_similarity(const std::vector<std::string>& texts,
                      const std::vector<std::vector<float>>& rows) {
  for (size_t i = 0; i < rows.size(); ++i) {
    std::string line;
    for (size_t j = 0; j < rows.size(); ++j) line += format("%8.4f", cosine(rows[i], rows[j]));
    std::printf("%s  %s\n", line.c_str(), printable(texts[i], 60).c_str());
  }
}

}  // namespace

void declare_embed(Args& args) {
  args.positional("model.oxb", "the model file: an encoder whose output is its hidden states");
  args.repeated("text", "TEXT", "a text; may be given several times");
  args.option("file", "FILE", "a text in each line; - reads standard input");
  args.option("pooling", "NAME",
              "how the rows of a text become one: mean, first, last or max (default: the file's)");
  args.flag("normalise", "to the length 1 (default: as the file says)");
  args.flag("no-normalise", "as it is");
  args.option("prompt-name", "NAME", "put this prompt of the file before every text");
  args.option("prefix", "TEXT", "put this before every text, and no prompt of the file");
  args.option("max-tokens", "N", "cut longer texts off (default: as the file says)");
  args.option("npy", "FILE", "write a NumPy array of a row for each text, and print nothing");
  args.flag("similarity", "print the cosines of all pairs instead");
  args.flag("json", "print JSON");
  add_common_options(args);
}

int embed_command(const Args& args) {
  const std::string path = *args.text("model.oxb");
  if (args.has("npy") + args.has("similarity") + args.has("json") > 1) {
    throw UsageError("give one of --npy, --similarity and --json");
  }
  if (args.has("text") == args.has("file")) throw UsageError("give --text or --file");
  if (args.has("npy")) refuse_overwriting(args.text("npy", ""), {path, args.text("file", "")});

  const CommonOptions common = read_common_options(args);
  const oxb::Model model = open_model(path, &common);
  const oxb_model_info info = model.info();
  if (info.task != OXB_TASK_ENCODE || info.label_count != 0) {
    throw InputError(path +
                     " gives something else than hidden states, which cannot be compared; "
                     "convert the model without its head");
  }
  need_tokenizer(model, path, "");
  const Settings settings = read_settings(args, model, path);
  Embedder embedder(model, open_session(model, path, common), settings);

  std::vector<std::string> texts = args.texts("text");
  const bool keeps = args.has("npy") || args.has("similarity") || args.has("json");
  std::vector<std::vector<float>> rows;
  uint64_t count = 0;
  const Stopwatch watch;
  const auto take = [&](const std::string& text) {
    std::vector<float> row = embedder.embed(text);
    ++count;
    if (keeps) {
      rows.push_back(std::move(row));
    } else {
      print_row(row);
    }
  };
  stop_on_interrupt();
  {
    Progress progress;
    // Rows that are printed on a terminal show how far it is.
    const bool silent = keeps || ::isatty(STDOUT_FILENO) != 1;
    if (args.has("file")) {
      TextSource source = TextSource::file(*args.text("file"));
      for (std::string line; !stop_wanted() && source.read_line(&line);) {
        take(line);
        if (keeps) texts.push_back(line);
        if (silent) progress.show("texts: byte", source.bytes_of_lines(), source.size());
      }
    } else {
      for (size_t i = 0; i < texts.size() && !stop_wanted(); ++i) {
        take(texts[i]);
        if (silent) progress.show("text", i + 1, texts.size());
      }
    }
  }
  if (count == 0 && !stop_wanted()) throw InputError("there is no text");
  const double seconds = watch.seconds();
  if (args.has("npy")) write_atomically(args.text("npy", ""), npy_bytes(rows));
  if (args.has("json")) print_json(texts, rows, settings);
  if (args.has("similarity")) print_similarity(texts, rows);
  std::fflush(stdout);
  std::fprintf(stderr, "%s, %s, %.1f ms each%s\n", count_text(count, "text").c_str(),
               count_text(embedder.tokens(), "token").c_str(),
               1e3 * seconds / static_cast<double>(std::max<uint64_t>(count, 1)),
               embedder.cut_texts() == 0 ? ""
                                         : format("; %s cut off behind %s",
                                                  count_text(embedder.cut_texts(), "text").c_str(),
                                                  count_text(settings.max_tokens, "token").c_str())
                                               .c_str());
  if (!stop_wanted()) return kExitGood;
  std::fputs("interrupted: this is of the texts that were read until then\n", stderr);
  return kExitInterrupted;
}

}  // namespace oxbow::tools
