#include "converter/text/tokenizer/rank_files.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <unordered_map>
#include <utility>

#include "converter/text/tokenizer/byte_bpe.h"
#include "converter/text/tokenizer/gguf_patterns.h"
#include "converter/text/tokenizer/tokenizer_json.h"
#include "host/base64.h"
#include "host/errors.h"

namespace oxbow::convert {
namespace {

using nlohmann::json;

// No token of a vocabulary in use has as many bytes. Ways to cut a token in two are in proportion to it.
constexpr size_t kMaxTokenBytes = 1024;
// For each token. Of lists in use they are some three; tokens that are parts of each other have as many as bytes.
constexpr size_t kMaxWays = 64;

/// A list that is known: how it cuts text, and its special tokens.
struct KnownList {
  /// Part of the file's name; empty: any.
  std::string_view name;
  /// Tokens of the list; 0: any.
  size_t count;
  /// A name of gguf_patterns.h.
  std::string_view cut;
  std::vector<std::pair<uint32_t, std::string>> special;
};

const std::vector<KnownList>& known_lists() {
  static const std::vector<KnownList> lists = {
      {"",
       100256,
       "llama-bpe",
       {{100257, "<|endoftext|>"},
        {100258, "<|fim_prefix|>"},
        {100259, "<|fim_middle|>"},
        {100260, "<|fim_suffix|>"},
        {100276, "<|endofprompt|>"}}},
      {"", 199998, "gpt-4o", {{199999, "<|endoftext|>"}, {200018, "<|endofprompt|>"}}},
      {"", 50256, "gpt-2", {{50256, "<|endoftext|>"}}},
      {"p50k", 50280, "gpt-2", {{50256, "<|endoftext|>"}}},
      {"", 50257, "gpt-2", {}},
      {"qwen",
       151643,
       "qwen2",
       {{151643, "<|endoftext|>"}, {151644, "<|im_start|>"}, {151645, "<|im_end|>"}}},
      {"",
       128000,
       "llama-bpe",
       {{128000, "<|begin_of_text|>"},
        {128001, "<|end_of_text|>"},
        {128006, "<|start_header_id|>"},
        {128007, "<|end_header_id|>"},
        {128009, "<|eot_id|>"}}},
  };
  return lists;
}

/// Adds the tokens, by id and the bytes they stand for, and all ways two of them make a third.
class RankedTokens {
 public:
  RankedTokens(std::string source, uint32_t tokens) : tokens_(tokens) {
    out.source = std::move(source);
    out.whole_words = true;
  }

  [[noreturn]] void fail(const std::string& what) const {
    throw InputError(out.source + ": " + what);
  }

  void add(uint64_t id, const std::string& bytes) {
    if (id >= tokens_) {
      fail("token " + std::to_string(id) + ", expected ids below the " + std::to_string(tokens_) +
           " of the model");
    }
    if (bytes.empty() || bytes.size() > kMaxTokenBytes) {
      fail("token " + std::to_string(id) + " has " + std::to_string(bytes.size()) +
           " bytes, expected 1 to " + std::to_string(kMaxTokenBytes));
    }
    if (id >= out.tokens.size()) out.tokens.resize(id + 1);
    if (!out.tokens[id].empty()) fail("token " + std::to_string(id) + " is there twice");
    out.tokens[id] = printable_of_bytes(bytes);
    if (!ids_.emplace(bytes, static_cast<uint32_t>(id)).second) {
      fail("token " + std::to_string(id) + " is as another is");
    }
  }

  void add_special(uint32_t id, const std::string& text) {
    // One that is a plain token too stays one.
    if (id >= tokens_ || (id < out.tokens.size() && !out.tokens[id].empty())) return;
    AddedTokenSetting token;
    token.text = text;
    token.id = id;
    token.special = true;
    out.added.push_back(token);
  }

  std::unique_ptr<schema::TokenizerT> build() {
    std::vector<std::pair<uint32_t, const std::string*>> by_id;
    for (const auto& [bytes, id] : ids_) by_id.emplace_back(id, &bytes);
    std::sort(by_id.begin(), by_id.end());
    for (const auto& [id, bytes] : by_id) {
      if (out.merges.size() > kMaxWays * by_id.size()) {
        fail("its tokens can be cut in more than " + std::to_string(kMaxWays) +
             " times as many ways, which is not supported");
      }
      for (size_t cut = 1; cut < bytes->size(); ++cut) {
        const auto left = ids_.find(bytes->substr(0, cut));
        if (left == ids_.end()) continue;
        const auto right = ids_.find(bytes->substr(cut));
        if (right == ids_.end()) continue;
        out.merges.emplace_back(out.tokens[left->second], out.tokens[right->second]);
        out.ranks.push_back(id);
      }
    }
    name_split(out);
    return build_byte_bpe(std::move(out), tokens_);
  }

  ByteBpeVocabulary out;

 private:
  uint32_t tokens_;
  std::unordered_map<std::string, uint32_t> ids_;
};

}  // namespace

bool is_tiktoken(std::string_view bytes) {
  const std::string_view line = bytes.substr(0, std::min<size_t>(bytes.find('\n'), 256));
  const size_t space = line.find(' ');
  if (space == std::string_view::npos || space == 0 || space + 1 == line.size()) return false;
  return decode_base64(line.substr(0, space)).has_value() &&
         std::all_of(line.begin() + static_cast<ptrdiff_t>(space) + 1, line.end(),
                     [](char c) { return (c >= '0' && c <= '9') || c == '\r'; });
}

std::unique_ptr<schema::TokenizerT> read_tiktoken(const std::string& path, std::string_view bytes,
                                                  const TokenizerSettings& settings,
                                                  uint32_t tokens) {
  RankedTokens ranked(path, tokens);
  size_t count = 0;
  for (size_t number = 1; !bytes.empty(); ++number) {
    const size_t end = std::min(bytes.find('\n'), bytes.size());
    std::string_view line = bytes.substr(0, end);
    bytes.remove_prefix(std::min(end + 1, bytes.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty()) continue;
    const size_t space = std::min(line.find(' '), line.size());
    const std::optional<std::string> text = decode_base64(line.substr(0, space));
    uint32_t rank = 0;
    const char* const begin = line.data() + std::min(space + 1, line.size());
    const auto [stop, error] = std::from_chars(begin, line.data() + line.size(), rank);
    if (!text || error != std::errc() || stop != line.data() + line.size()) {
      ranked.fail("line " + std::to_string(number) + " is not base64 and a number");
    }
    // Whisper's has an id that stands for nothing.
    if (!text->empty()) ranked.add(rank, *text);
    ++count;
  }
  const std::string name = path.substr(path.find_last_of('/') + 1);
  const auto& lists = known_lists();
  const auto list = std::find_if(lists.begin(), lists.end(), [&](const KnownList& known) {
    return (known.count == 0 || known.count == count) && name.find(known.name) != std::string::npos;
  });
  if (list == lists.end()) {
    ranked.fail("how text is cut is not in the file, and a list of " + std::to_string(count) +
                " tokens is none that is known; put the model's tokenizer.json beside it");
  }
  const GgufCut& cut = *find_gguf_cut(list->cut);
  ranked.out.patterns = patterns_of(cut);
  if (cut.composes) ranked.out.form = composed_form();
  for (const AddedTokenSetting& token : settings.added) {
    if (token.id) ranked.add_special(*token.id, token.text);
  }
  if (ranked.out.added.empty()) {
    for (const auto& [id, text] : list->special) ranked.add_special(id, text);
  }
  return ranked.build();
}

std::unique_ptr<schema::TokenizerT> read_tekken(const std::string& path, const json& file,
                                                uint32_t tokens) {
  const TokenizerJson in(path, file, tokens);
  RankedTokens ranked(path, tokens);
  const json& config = in.member(file, "", "config");
  const auto size = [&](const char* key) {
    const json& value = in.member(config, "config.", key);
    if (!value.is_number_unsigned() || value.get<uint64_t>() > UINT32_MAX) {
      in.fail(std::string("config.") + key + " is " + TokenizerJson::shown(value) +
              ", expected a number");
    }
    return value.get<uint64_t>();
  };
  const uint64_t specials = size("default_num_special_tokens");
  const uint64_t all = size("default_vocab_size");
  if (specials > all || all > tokens) {
    in.fail("config.default_vocab_size is " + std::to_string(all) + ", expected at most the " +
            std::to_string(tokens) + " of the model");
  }
  const json& vocab = in.member(file, "", "vocab");
  if (!vocab.is_array()) in.fail("vocab is no list");
  for (size_t i = 0; i < vocab.size() && i < all - specials; ++i) {
    const json& rank = TokenizerJson::optional(vocab[i], "rank");
    const std::optional<std::string> bytes =
        decode_base64(in.text(TokenizerJson::optional(vocab[i], "token_bytes"), "token_bytes"));
    if (!bytes || !rank.is_number_unsigned() || rank.get<uint64_t>() != i) {
      in.fail("vocab[" + std::to_string(i) + "] is not base64 and its place");
    }
    ranked.add(specials + i, *bytes);
  }
  const json& named = TokenizerJson::optional(file, "special_tokens");
  std::vector<std::string> texts(specials);
  for (size_t id = 0; id < texts.size(); ++id) texts[id] = "<SPECIAL_" + std::to_string(id) + ">";
  // Older files do not list them.
  constexpr const char* kFirst[] = {"<unk>",
                                    "<s>",
                                    "</s>",
                                    "[INST]",
                                    "[/INST]",
                                    "[AVAILABLE_TOOLS]",
                                    "[/AVAILABLE_TOOLS]",
                                    "[TOOL_RESULTS]",
                                    "[/TOOL_RESULTS]",
                                    "[TOOL_CALLS]",
                                    "[IMG]",
                                    "<pad>",
                                    "[IMG_BREAK]",
                                    "[IMG_END]",
                                    "[PREFIX]",
                                    "[MIDDLE]",
                                    "[SUFFIX]",
                                    "[SYSTEM_PROMPT]",
                                    "[/SYSTEM_PROMPT]",
                                    "[TOOL_CONTENT]"};
  if (named.is_null()) {
    for (size_t id = 0; id < std::min(std::size(kFirst), texts.size()); ++id)
      texts[id] = kFirst[id];
  } else if (!named.is_array()) {
    in.fail("special_tokens is no list");
  }
  for (const json& entry : named) {
    const json& rank = TokenizerJson::optional(entry, "rank");
    if (!rank.is_number_unsigned() || rank.get<uint64_t>() >= specials) {
      in.fail("special_tokens has the rank " + TokenizerJson::shown(rank) +
              ", expected numbers below " + std::to_string(specials));
    }
    texts[rank.get<size_t>()] =
        in.text(TokenizerJson::optional(entry, "token_str"), "token_str of a special token");
  }
  for (uint32_t id = 0; id < texts.size(); ++id) ranked.add_special(id, texts[id]);
  ranked.out.patterns.push_back(
      {in.text(in.member(config, "config.", "pattern"), "config.pattern")});
  const auto begin = std::find(texts.begin(), texts.end(), "<s>");
  if (begin != texts.end()) {
    ranked.out.before = {static_cast<uint32_t>(begin - texts.begin())};
  }
  return ranked.build();
}

}  // namespace oxbow::convert
