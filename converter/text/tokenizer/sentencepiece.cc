#include "converter/text/tokenizer/sentencepiece.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <unordered_map>

#include "converter/text/tokenizer/merge_table.h"
#include "converter/text/tokenizer/piece_tables.h"
#include "converter/text/tokenizer/sentencepiece_merges.h"
#include "host/errors.h"

namespace oxbow::convert {
namespace {

using schema::TokenRole;

TokenRole role_of(PieceType type) {
  switch (type) {
    case PieceType::kNormal:
      return TokenRole::Plain;
    case PieceType::kUnknown:
      return TokenRole::Unknown;
    case PieceType::kControl:
      return TokenRole::Control;
    case PieceType::kUserDefined:
      return TokenRole::Added;
    case PieceType::kUnused:
      return TokenRole::Unused;
    case PieceType::kByte:
      return TokenRole::Byte;
  }
  return TokenRole::Unused;
}

std::string byte_text(const SentencePiece& piece) {
  return piece.type == PieceType::kByte
             ? std::string(1, static_cast<char>(byte_of_piece(piece.text)))
             : piece.text;
}

void check_ids(const std::string& name, uint64_t tokens, const std::vector<uint32_t>& ids,
               uint32_t vocabulary) {
  if (tokens > vocabulary) {
    throw InputError(name + ": " + std::to_string(tokens) + " tokens, the model has only " +
                     std::to_string(vocabulary));
  }
  for (const uint32_t id : ids) {
    if (id >= vocabulary) {
      throw InputError(name + ": a text is put between tokens such as " + std::to_string(id) +
                       ", the model has only " + std::to_string(vocabulary));
    }
  }
}

/// N of T5's "<extra_id_N>".
std::optional<uint32_t> extra_number(const std::string& text) {
  constexpr std::string_view kBegin = "<extra_id_";
  uint32_t number = 0;
  if (!text.starts_with(kBegin)) return std::nullopt;
  const char* begin = text.data() + kBegin.size();
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(begin, end, number);
  if (error != std::errc() || end - stop != 1 || *stop != '>') return std::nullopt;
  return number;
}

/// The ids of added tokens, those that have none in the settings included.
std::vector<uint32_t> find_added_ids(const SentencePieceModel& model,
                                     const std::vector<AddedTokenSetting>& added) {
  std::unordered_map<std::string, uint32_t> pieces;
  for (uint32_t id = 0; id < model.pieces.size(); ++id) pieces[model.pieces[id].text] = id;
  const auto extra = [&](const AddedTokenSetting& token) {
    return !token.id && !pieces.contains(token.text) ? extra_number(token.text) : std::nullopt;
  };
  uint64_t extras = 0;
  for (const AddedTokenSetting& token : added) extras += extra(token) ? 1 : 0;
  std::vector<uint32_t> ids;
  for (const AddedTokenSetting& token : added) {
    if (token.id) {
      ids.push_back(*token.id);
    } else if (const auto piece = pieces.find(token.text); piece != pieces.end()) {
      ids.push_back(piece->second);
    } else if (const auto number = extra(token); number && *number < extras) {
      ids.push_back(static_cast<uint32_t>(model.pieces.size() + extras - 1 - *number));
    } else {
      throw InputError(model.name + ": no id for the added token '" + printable(token.text, 40) +
                       "'");
    }
  }
  return ids;
}

void set_added(const SentencePieceModel& model, const AddedTokenSetting& token, uint32_t id,
               PieceTables& tables) {
  PieceTables::Piece& piece = tables.tokens[id];
  if (!piece.text.empty() && piece.text != token.text) {
    throw InputError(model.name + ": the added token '" + printable(token.text, 40) + "' has id " +
                     std::to_string(id) + ", which is '" + printable(piece.text, 40) + "'");
  }
  if (piece.text.empty()) piece.role = TokenRole::Added;
  piece.text = token.text;
  // Unknown text keeps its own way to be decoded, and what is made of text stays text.
  if (token.special && piece.role != TokenRole::Unknown && piece.role != TokenRole::Plain) {
    piece.role = TokenRole::Special;
  }
  tables.add_added(token, id);
}

/// Characters that pieces are made of stand for unknown text where they are left alone.
void add_merges(const SentencePieceModel& model, uint32_t unknown, PieceTables& tables,
                schema::TokenizerT& tokenizer) {
  const SentencePieceMerges found = find_merges(model, static_cast<uint32_t>(tables.tokens.size()));
  for (const std::string& character : found.characters) {
    tables.look_up(character, tables.add_alias({character, TokenRole::Plain, 0}, unknown));
  }
  tokenizer.merges = build_merge_table(found.merges);
}

}  // namespace

std::unique_ptr<schema::TokenizerT> make_sentencepiece(const SentencePieceModel& model,
                                                       const SentencePieceOptions& options,
                                                       uint32_t vocabulary) {
  check_pieces(model);
  std::unique_ptr<schema::TokenizerT> tokenizer = begin_tokenizer(model);
  const bool unigram = tokenizer->kind == schema::TokenizerKind::Unigram;
  const std::vector<uint32_t> added_ids = find_added_ids(model, options.added);
  uint64_t tokens = model.pieces.size();
  for (const uint32_t id : added_ids) tokens = std::max<uint64_t>(tokens, uint64_t{id} + 1);
  check_ids(model.name, tokens, options.before, vocabulary);
  check_ids(model.name, tokens, options.after, vocabulary);

  PieceTables tables;
  tables.tokens.resize(tokens);
  const float unknown = unknown_score(model);
  for (uint32_t id = 0; id < model.pieces.size(); ++id) {
    const SentencePiece& piece = model.pieces[id];
    tables.tokens[id] = {byte_text(piece), role_of(piece.type), score_of(piece, unknown)};
    if (piece.type == PieceType::kUnknown) tokenizer->unknown_token = static_cast<int32_t>(id);
    if (piece.type == PieceType::kByte) {
      tokenizer->byte_pieces.resize(256);
      tokenizer->byte_pieces[static_cast<size_t>(byte_of_piece(piece.text))] = id;
    }
    // Joining begins with single characters, whatever they are otherwise.
    const bool made_of_text =
        piece.type == PieceType::kNormal || piece.type == PieceType::kUserDefined;
    if (made_of_text || !unigram) tables.look_up(piece.text, id);
  }
  for (size_t i = 0; i < added_ids.size(); ++i) {
    set_added(model, options.added[i], added_ids[i], tables);
  }
  if (!unigram) {
    add_merges(model, static_cast<uint32_t>(tokenizer->unknown_token), tables, *tokenizer);
  }
  tables.write(*tokenizer, unigram);
  tokenizer->before = options.before;
  tokenizer->after = options.after;
  tokenizer->space_at_start_only = options.space_at_start_only;
  return tokenizer;
}

std::unique_ptr<schema::TokenizerT> read_sentencepiece(const std::string& path,
                                                       const SentencePieceOptions& options,
                                                       uint32_t vocabulary) {
  return make_sentencepiece(read_sentencepiece_model(path), options, vocabulary);
}

}  // namespace oxbow::convert
