#include "converter/text/tokenizer/gguf_tokenizer.h"

#include <algorithm>

#include "converter/text/tokenizer/byte_bpe.h"
#include "converter/text/tokenizer/sentencepiece.h"
#include "converter/text/tokenizer/wordpiece.h"
#include "converter/text/tokenizer/world.h"
#include "host/errors.h"
#include "runtime/text/sentencepiece.h"

namespace oxbow::convert {
namespace {

std::vector<uint32_t> list(const std::optional<uint32_t>& token) {
  return token ? std::vector<uint32_t>{*token} : std::vector<uint32_t>{};
}

/// Tokens that text names: they have a meaning, or somebody added them.
std::vector<AddedTokenSetting> named_tokens(const GgufVocabulary& vocabulary,
                                            bool with_user_defined) {
  std::vector<AddedTokenSetting> added;
  for (uint32_t id = 0; id < vocabulary.tokens.size(); ++id) {
    const bool control = vocabulary.types[id] == PieceType::kControl;
    const bool user = vocabulary.types[id] == PieceType::kUserDefined && with_user_defined;
    if (!control && !user) continue;
    AddedTokenSetting token;
    token.text = vocabulary.tokens[id];
    token.id = id;
    token.special = control;
    added.push_back(token);
  }
  return added;
}

std::unique_ptr<schema::TokenizerT> make_byte_level(const std::string& source,
                                                    const GgufVocabulary& vocabulary,
                                                    uint32_t tokens) {
  ByteBpeVocabulary out;
  out.source = source;
  out.tokens = vocabulary.tokens;
  for (size_t id = 0; id < out.tokens.size(); ++id) {
    if (vocabulary.types[id] == PieceType::kUnused) out.tokens[id].clear();
  }
  for (size_t i = 0; i < vocabulary.merges.size(); ++i) {
    const std::string& merge = vocabulary.merges[i];
    const size_t space = merge.find(' ');
    if (space == std::string::npos || merge.find(' ', space + 1) != std::string::npos) {
      throw InputError(source + ": merge " + std::to_string(i + 1) + " is '" +
                       printable(merge, 60) + "', expected two tokens with a space between them");
    }
    out.merges.emplace_back(merge.substr(0, space), merge.substr(space + 1));
  }
  out.added = named_tokens(vocabulary, true);
  out.patterns = patterns_of(*vocabulary.cut);
  name_split(out);
  out.whole_words = vocabulary.cut->whole_words;
  if (vocabulary.cut->composes) out.form = composed_form();
  out.before = list(vocabulary.before);
  out.after = list(vocabulary.after);
  return build_byte_bpe(std::move(out), tokens);
}

std::unique_ptr<schema::TokenizerT> make_pieces(const std::string& source,
                                                const GgufVocabulary& vocabulary, uint32_t tokens) {
  SentencePieceModel model;
  model.name = source;
  model.algorithm = vocabulary.kind == GgufVocabulary::Kind::kUnigram
                        ? SentencePieceModel::Algorithm::kUnigram
                        : SentencePieceModel::Algorithm::kBpe;
  model.char_map = vocabulary.char_map;
  for (size_t id = 0; id < vocabulary.tokens.size(); ++id) {
    PieceType type = vocabulary.types[id];
    // Some files call places that are free unknown, and the token that is meant something else.
    if (vocabulary.unknown_token == id) {
      type = PieceType::kUnknown;
    } else if (vocabulary.unknown_token && type == PieceType::kUnknown) {
      type = PieceType::kUnused;
    }
    model.pieces.push_back({vocabulary.tokens[id], vocabulary.scores[id], type});
  }
  model.byte_fallback = std::any_of(vocabulary.types.begin(), vocabulary.types.end(),
                                    [](PieceType type) { return type == PieceType::kByte; });
  model.space_before_text = vocabulary.space_before_text;
  model.single_spaces = vocabulary.single_spaces;
  SentencePieceOptions options;
  // The pieces that users defined are found as such.
  options.added = named_tokens(vocabulary, false);
  options.before = list(vocabulary.before);
  options.after = list(vocabulary.after);
  return make_sentencepiece(model, options, tokens);
}

/// As in BERT's own files: pieces that begin a word have nothing before them, the others "##".
std::unique_ptr<schema::TokenizerT> make_wordpiece(const std::string& source,
                                                   const GgufVocabulary& vocabulary,
                                                   uint32_t tokens) {
  const std::string mark(kSpaceMark);
  WordPieceParts parts;
  parts.path = source;
  parts.normalizer.lower_case = vocabulary.lower_case;
  parts.normalizer.strip_accents = vocabulary.strip_accents;
  for (uint32_t id = 0; id < vocabulary.tokens.size(); ++id) {
    std::string text = vocabulary.tokens[id];
    const bool named = vocabulary.types[id] == PieceType::kControl ||
                       vocabulary.types[id] == PieceType::kUnknown ||
                       (text.starts_with('[') && text.ends_with(']'));
    if (text.starts_with(mark)) {
      text = text.substr(mark.size());
    } else if (!named) {
      text = parts.prefix + text;
    }
    if (text.empty()) throw InputError(source + ": token " + std::to_string(id) + " is empty");
    parts.tokens.push_back(text);
  }
  std::vector<bool> known(parts.tokens.size());
  const auto special = [&](const std::optional<uint32_t>& id) {
    if (!id) return std::string();
    AddedTokenSetting token;
    token.text = parts.tokens[*id];
    token.id = *id;
    token.special = true;
    if (!known[*id]) parts.added.push_back(token);
    known[*id] = true;
    return token.text;
  };
  parts.unknown = vocabulary.unknown_token ? special(vocabulary.unknown_token) : "[UNK]";
  if (vocabulary.before) parts.before = {special(vocabulary.before)};
  if (vocabulary.after) parts.after = {special(vocabulary.after)};
  parts.pair_between = parts.pair_after = parts.after;
  if (vocabulary.mask_token) parts.mask = special(vocabulary.mask_token);
  for (uint32_t id = 0; id < vocabulary.tokens.size(); ++id) {
    if (vocabulary.types[id] == PieceType::kControl) special(id);
  }
  return make_wordpiece_tokenizer(std::move(parts), tokens);
}

/// The bytes of a token, which the file has as Python writes them between quotes.
std::string unescaped(const std::string& text) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string out;
  for (size_t at = 0; at < text.size(); ++at) {
    if (text[at] != '\\' || at + 1 == text.size()) {
      out.push_back(text[at]);
      continue;
    }
    const char next = text[++at];
    const size_t high = at + 2 < text.size() ? kDigits.find(text[at + 1]) : kDigits.npos;
    const size_t low = at + 2 < text.size() ? kDigits.find(text[at + 2]) : kDigits.npos;
    if (next == 'x' && high != kDigits.npos && low != kDigits.npos) {
      out.push_back(static_cast<char>(high << 4 | low));
      at += 2;
    } else {
      out.push_back(next == 't' ? '\t' : next == 'n' ? '\n' : next == 'r' ? '\r' : next);
    }
  }
  return out;
}

std::unique_ptr<schema::TokenizerT> make_longest(const std::string& source,
                                                 const GgufVocabulary& vocabulary,
                                                 uint32_t tokens) {
  if (vocabulary.tokens.size() > tokens) {
    throw InputError(source + ": " + std::to_string(vocabulary.tokens.size()) +
                     " tokens, the model has only " + std::to_string(tokens));
  }
  std::vector<std::string> texts;
  for (size_t id = 0; id < vocabulary.tokens.size(); ++id) {
    const bool plain = vocabulary.types[id] == PieceType::kNormal ||
                       vocabulary.types[id] == PieceType::kUserDefined;
    texts.push_back(plain ? unescaped(vocabulary.tokens[id]) : "");
  }
  std::unique_ptr<schema::TokenizerT> tokenizer = make_world_tokenizer(source, texts);
  tokenizer->before = list(vocabulary.before);
  tokenizer->after = list(vocabulary.after);
  return tokenizer;
}

}  // namespace

std::unique_ptr<schema::TokenizerT> make_gguf_tokenizer(const std::string& source,
                                                        const GgufVocabulary& vocabulary,
                                                        uint32_t tokens) {
  switch (vocabulary.kind) {
    case GgufVocabulary::Kind::kByteLevel:
      return make_byte_level(source, vocabulary, tokens);
    case GgufVocabulary::Kind::kSentencePiece:
    case GgufVocabulary::Kind::kUnigram:
      return make_pieces(source, vocabulary, tokens);
    case GgufVocabulary::Kind::kWordPiece:
      return make_wordpiece(source, vocabulary, tokens);
    case GgufVocabulary::Kind::kLongest:
      return make_longest(source, vocabulary, tokens);
  }
  return nullptr;
}

}  // namespace oxbow::convert
