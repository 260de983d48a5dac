#pragma once

// The vocabulary of a tokenizer.json whose tokens are made of characters: its tokens, those that were added, what is
// unknown, and merges.

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "converter/text/tokenizer/piece_tables.h"
#include "converter/text/tokenizer/tokenizer_json.h"

namespace oxbow::convert {

class PiecesModel {
 public:
  using json = nlohmann::json;

  PiecesModel(const TokenizerJson& in, uint32_t tokens) : in_(in), tokens_(tokens) {}

  /// Of "vocab", an object; or texts and their scores, in the order of their ids.
  void read_vocabulary();
  void read_scores();

  /// The token for unknown text, by its text or by its id, which is below texts().size().
  void read_unknown(const std::string& text, schema::TokenizerT& out);
  void set_unknown(uint32_t id, schema::TokenizerT& out);
  /// A token for each byte, as "<0x41>".
  void read_bytes(schema::TokenizerT& out);
  void read_added();
  /// All plain tokens are looked up as they are.
  void look_up_all();
  /// Pieces are joined; those that would cross `no_mark_inside`, the mark of a space, never are. `prefix` is what
  /// pieces inside of words begin with.
  void read_merges(const std::string& no_mark_inside, const std::string& prefix,
                   const std::string& suffix, schema::TokenizerT& out);
  void write(schema::TokenizerT& out);

  const std::vector<std::string>& texts() const { return texts_; }

 private:
  uint32_t piece(const std::string& text, uint32_t id);
  uint32_t piece_of(size_t merge, const std::string& text);

  const TokenizerJson& in_;
  uint32_t tokens_;
  /// By id; empty where there is none.
  std::vector<std::string> texts_;
  /// Of tokens, then of those that stand for them.
  std::vector<double> scores_;
  std::unordered_map<std::string, uint32_t> ids_;
  std::unordered_map<uint32_t, uint32_t> pieces_;
  PieceTables tables_;
};

}  // namespace oxbow::convert
