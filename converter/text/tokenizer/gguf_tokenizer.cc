#include "converter/text/tokenizer/gguf_tokenizer.h"

#include <algorithm>

#include "converter/text/tokenizer/byte_bpe.h"
#include "converter/text/tokenizer/sentencepiece.h"
#include "host/errors.h"

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
  for (const char* pattern : vocabulary.cut->patterns) out.patterns.push_back({pattern});
  name_split(out);
  out.whole_words = vocabulary.cut->whole_words;
  if (vocabulary.cut->composes) {
    out.form.decompose = NormalForm::Decompose::kCanonical;
    out.form.compose = true;
  }
  out.before = list(vocabulary.before);
  out.after = list(vocabulary.after);
  return build_byte_bpe(std::move(out), tokens);
}

std::unique_ptr<schema::TokenizerT> make_pieces(const std::string& source,
                                                const GgufVocabulary& vocabulary, uint32_t tokens) {
  SentencePieceModel model;
  model.name = source;
  model.algorithm = SentencePieceModel::Algorithm::kBpe;
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

}  // namespace

std::unique_ptr<schema::TokenizerT> make_gguf_tokenizer(const std::string& source,
                                                        const GgufVocabulary& vocabulary,
                                                        uint32_t tokens) {
  return vocabulary.kind == GgufVocabulary::Kind::kByteLevel
             ? make_byte_level(source, vocabulary, tokens)
             : make_pieces(source, vocabulary, tokens);
}

}  // namespace oxbow::convert
