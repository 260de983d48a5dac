#include "converter/text/tokenizer/sentencepiece_model.h"

#include <cmath>
#include <unordered_set>

#include "converter/formats/protobuf.h"
#include "host/errors.h"
#include "host/io_file.h"

namespace oxbow::convert {
namespace {

constexpr size_t kMaxPieceBytes = 8000;
constexpr size_t kMaxPieces = size_t{1} << 22;

SentencePiece read_piece(ProtobufReader reader) {
  SentencePiece piece;
  while (reader.next()) {
    if (reader.field() == 1) {
      piece.text = reader.bytes();
    } else if (reader.field() == 2) {
      piece.score = reader.floating();
    } else if (reader.field() == 3) {
      const uint64_t type = reader.integer();
      if (type < 1 || type > 6) {
        reader.refuse("a piece of type " + std::to_string(type) + ", expected 1 to 6");
      }
      piece.type = static_cast<PieceType>(type);
    }
  }
  return piece;
}

void read_trainer(ProtobufReader reader, SentencePieceModel& model) {
  while (reader.next()) {
    if (reader.field() == 3) {
      const uint64_t type = reader.integer();
      if (type == 3 || type == 4) {
        reader.refuse(std::string("a model of type ") + (type == 3 ? "word" : "char") +
                      ", which is not supported; expected unigram or bpe");
      }
      if (type != 1 && type != 2) {
        reader.refuse("a model of type " + std::to_string(type) +
                      ", expected 1 (unigram) or 2 (bpe)");
      }
      model.algorithm = static_cast<SentencePieceModel::Algorithm>(type);
    } else if (reader.field() == 24) {
      model.space_behind_word = reader.boolean();
    } else if (reader.field() == 35) {
      model.byte_fallback = reader.boolean();
    } else if (reader.field() == 44) {
      model.unknown_text = reader.bytes();
    }
  }
}

void read_normalizer(ProtobufReader reader, SentencePieceModel& model) {
  while (reader.next()) {
    if (reader.field() == 2) {
      model.char_map = reader.bytes();
    } else if (reader.field() == 3) {
      model.space_before_text = reader.boolean();
    } else if (reader.field() == 4) {
      model.single_spaces = reader.boolean();
    } else if (reader.field() == 5 && !reader.boolean()) {
      reader.refuse("spaces that are not escaped (escape_whitespaces) are not supported");
    }
  }
}

void read_denormalizer(ProtobufReader reader) {
  while (reader.next()) {
    if (reader.field() == 2 && !reader.bytes().empty()) {
      reader.refuse("replacements in decoded text (denormalizer_spec) are not supported");
    }
  }
}

[[noreturn]] void refuse(const SentencePieceModel& model, size_t piece, const std::string& what) {
  throw InputError(model.name + ": piece " + std::to_string(piece) + ", '" +
                   printable(model.pieces[piece].text, 40) + "', " + what);
}

}  // namespace

SentencePieceModel parse_sentencepiece_model(const std::string& name, std::string_view bytes) {
  SentencePieceModel model;
  model.name = name;
  ProtobufReader reader(name, bytes);
  while (reader.next()) {
    switch (reader.field()) {
      case 1:
        if (model.pieces.size() == kMaxPieces) reader.refuse("more than 2^22 pieces");
        model.pieces.push_back(read_piece(reader.message()));
        break;
      case 2:
        read_trainer(reader.message(), model);
        break;
      case 3:
        read_normalizer(reader.message(), model);
        break;
      case 5:
        read_denormalizer(reader.message());
        break;
      default:  // texts the file is tested with, and what later versions add
        break;
    }
  }
  check_pieces(model);
  return model;
}

SentencePieceModel read_sentencepiece_model(const std::string& path) {
  return parse_sentencepiece_model(path, read_file(path));
}

int byte_of_piece(const std::string& text) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  if (text.size() != 6 || !text.starts_with("<0x") || text[5] != '>') return -1;
  const size_t high = kDigits.find(text[3]);
  const size_t low = kDigits.find(text[4]);
  if (high == std::string_view::npos || low == std::string_view::npos) return -1;
  return static_cast<int>(high << 4 | low);
}

void check_pieces(const SentencePieceModel& model) {
  size_t unknown = 0;
  size_t bytes = 0;
  std::unordered_set<std::string_view> texts[2];
  for (size_t i = 0; i < model.pieces.size(); ++i) {
    const auto& [text, score, type] = model.pieces[i];
    if (text.empty() || text.size() >= kMaxPieceBytes || text.find('\0') != std::string::npos) {
      refuse(model, i,
             "has " + std::to_string(text.size()) + " bytes, expected 1 to " +
                 std::to_string(kMaxPieceBytes - 1) + ", none of them zero");
    }
    if (!std::isfinite(score)) refuse(model, i, "has a score that is no finite number");
    // Where scores decide, what is made of text may have the name of what is not.
    const bool reserved =
        type == PieceType::kUnknown || type == PieceType::kControl || type == PieceType::kByte;
    const bool apart = reserved && model.algorithm == SentencePieceModel::Algorithm::kUnigram;
    if (!texts[apart ? 1 : 0].insert(text).second) refuse(model, i, "is there twice");
    unknown += type == PieceType::kUnknown ? 1 : 0;
    if (type == PieceType::kByte) {
      if (!model.byte_fallback) refuse(model, i, "is a byte in a vocabulary without bytes");
      if (byte_of_piece(text) < 0) refuse(model, i, "is no byte, expected <0x00> to <0xFF>");
      ++bytes;
    }
  }
  if (unknown != 1) {
    throw InputError(model.name + ": " + std::to_string(unknown) +
                     " pieces for unknown text, expected 1");
  }
  if (model.byte_fallback && bytes != 256) {
    throw InputError(model.name + ": " + std::to_string(bytes) + " pieces for bytes, expected 256");
  }
}

}  // namespace oxbow::convert
