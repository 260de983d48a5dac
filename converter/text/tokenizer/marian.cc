// Marian's translators have two SentencePiece vocabularies, whose pieces have their ids in a file of
// both languages.

#include <cmath>
#include <nlohmann/json.hpp>

#include "converter/text/tokenizer/piece_tables.h"
#include "converter/text/tokenizer/sentencepiece.h"
#include "host/errors.h"
#include "host/json_file.h"

namespace oxbow::convert {
namespace {

using schema::TokenRole;
using Ids = std::map<std::string, uint32_t>;

Ids read_ids(const std::string& path, uint32_t vocabulary) {
  const nlohmann::json list = read_json(path);
  if (!list.is_object()) throw InputError(path + " is not a JSON object of tokens and ids");
  Ids ids;
  std::vector<bool> taken(vocabulary);
  for (const auto& [text, id] : list.items()) {
    if (!id.is_number_unsigned() || id.get<uint64_t>() >= vocabulary) {
      throw InputError(path + ": token '" + printable(text, 40) + "' has id " +
                       printable(id.dump(-1, ' ', true), 40) + ", expected 0 to " +
                       std::to_string(int64_t{vocabulary} - 1));
    }
    const auto number = id.get<uint32_t>();
    if (taken[number]) throw InputError(path + ": two tokens have id " + std::to_string(number));
    taken[number] = true;
    ids[text] = number;
  }
  return ids;
}

uint32_t id_of(const Ids& ids, const std::string& path, const std::string& text) {
  const auto found = ids.find(text);
  if (found == ids.end()) throw InputError(path + ": no token " + text);
  return found->second;
}

/// A token that says which language the translation shall have.
bool is_language(const std::string& text) {
  return text.size() > 4 && text.starts_with(">>") && text.ends_with("<<");
}

void check_models(const SentencePieceModel& source, const SentencePieceModel& target) {
  for (const SentencePieceModel* model : {&source, &target}) {
    if (model->algorithm != SentencePieceModel::Algorithm::kUnigram || model->byte_fallback) {
      throw InputError(
          model->name +
          ": a vocabulary of type bpe, or with bytes, is not supported for a translator");
    }
  }
  // Decoding asks only whether one of them is set.
  if ((source.space_before_text || source.single_spaces) !=
          (target.space_before_text || target.single_spaces) ||
      source.single_spaces != target.single_spaces) {
    throw InputError(target.name + ": spaces are treated in another way than in " + source.name +
                     ", which is not supported");
  }
}

}  // namespace

std::unique_ptr<schema::TokenizerT> read_marian(const std::string& source,
                                                const std::string& target, const std::string& vocab,
                                                uint32_t vocabulary) {
  const SentencePieceModel source_model = read_sentencepiece_model(source);
  const SentencePieceModel target_model = read_sentencepiece_model(target);
  check_models(source_model, target_model);
  const Ids ids = read_ids(vocab, vocabulary);
  const uint32_t unknown = id_of(ids, vocab, "<unk>");
  const uint32_t end = id_of(ids, vocab, "</s>");

  std::unique_ptr<schema::TokenizerT> tokenizer = begin_tokenizer(source_model);
  tokenizer->unknown_text = target_model.unknown_text;
  tokenizer->unknown_token = static_cast<int32_t>(unknown);
  tokenizer->after = {end};

  PieceTables tables;
  const float lowest = unknown_score(source_model);
  for (const auto& [text, id] : ids) {
    if (id >= tables.tokens.size()) tables.tokens.resize(id + 1);
    // Text of the other language becomes a token only where nothing of this one is known.
    tables.tokens[id] = {text, TokenRole::Unused, -INFINITY};
    if (is_language(text)) {
      tables.tokens[id].role = TokenRole::Added;
      AddedTokenSetting setting;
      setting.text = text;
      tables.add_added(setting, id);
    } else if (text == "</s>" || text == "<pad>") {
      tables.tokens[id].role = TokenRole::Control;
    } else if (id != unknown) {
      tables.look_up(text, id);
    }
  }
  tables.tokens[unknown] = {"<unk>", TokenRole::Unknown, lowest};
  for (const SentencePiece& piece : source_model.pieces) {
    const bool user_defined = piece.type == PieceType::kUserDefined;
    if (piece.type != PieceType::kNormal && !user_defined) continue;
    const TokenRole role = user_defined ? TokenRole::Added : TokenRole::Plain;
    const float score = score_of(piece, lowest);
    if (const auto found = ids.find(piece.text); found != ids.end()) {
      PieceTables::Piece& token = tables.tokens[found->second];
      if (token.role == TokenRole::Unused) token.role = role;
      token.score = score;
      tables.look_up(piece.text, found->second);
    } else {
      tables.look_up(piece.text, tables.add_alias({piece.text, role, score}, unknown));
    }
  }
  tables.write(*tokenizer, true);
  return tokenizer;
}

}  // namespace oxbow::convert
