#include "converter/text/tokenizer/sentencepiece_merges.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "host/errors.h"
#include "runtime/text/sentencepiece.h"

namespace oxbow::convert {
namespace {

/// All parts of all pieces are looked up, which takes the square of a piece's length.
constexpr uint64_t kMaxWork = uint64_t{1} << 32;

size_t first_character(const std::string& text, size_t at) {
  return std::min(character_bytes(text[at]), text.size() - at);
}

/// Orders scores as SentencePiece does, the highest first.
uint32_t order_of(float score) {
  const auto bits = std::bit_cast<uint32_t>(score);
  return bits >> 31 != 0 ? bits : ~bits & 0x7fffffff;
}

/// The rank of each piece among those of other scores; equal scores have equal ranks.
std::vector<uint32_t> rank_scores(const std::vector<SentencePiece>& pieces) {
  std::vector<uint32_t> orders;
  orders.reserve(pieces.size());
  for (const SentencePiece& piece : pieces) orders.push_back(order_of(piece.score));
  std::vector<uint32_t> sorted = orders;
  std::sort(sorted.begin(), sorted.end());
  sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
  for (uint32_t& order : orders) {
    order = static_cast<uint32_t>(std::lower_bound(sorted.begin(), sorted.end(), order) -
                                  sorted.begin());
  }
  return orders;
}

class Finder {
 public:
  Finder(const SentencePieceModel& model, uint32_t first_character)
      : model_(model), first_character_(first_character) {}

  SentencePieceMerges find() {
    const std::vector<SentencePiece>& pieces = model_.pieces;
    check_work();
    const std::vector<uint32_t> ranks = rank_scores(pieces);
    // Parts before what is made of them.
    std::vector<uint32_t> order(pieces.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
      return pieces[a].text.size() < pieces[b].text.size();
    });
    for (const uint32_t piece : order) {
      if (first_character(pieces[piece].text, 0) < pieces[piece].text.size()) continue;
      // Text that is a user-defined piece is taken out before anything is joined.
      const bool user_defined = pieces[piece].type == PieceType::kUserDefined;
      parts_[pieces[piece].text] = user_defined ? kNone : piece;
    }
    for (const uint32_t piece : order) {
      if (pieces[piece].type == PieceType::kNormal || pieces[piece].type == PieceType::kUnused) {
        split(piece, ranks[piece]);
      }
    }
    return std::move(result_);
  }

 private:
  void check_work() const {
    uint64_t work = 0;
    for (const SentencePiece& piece : model_.pieces) {
      work += uint64_t{piece.text.size()} * piece.text.size();
    }
    if (work > kMaxWork) throw InputError(model_.name + ": pieces are too long to be split");
  }

  void split(uint32_t piece, uint32_t rank) {
    const std::string& text = model_.pieces[piece].text;
    const size_t first = first_character(text, 0);
    if (first == text.size()) return;
    bool found = false;
    for (size_t at = first; at < text.size(); at += first_character(text, at)) {
      const uint32_t left = part(text.substr(0, at));
      if (left == kNone) continue;
      const uint32_t right = part(text.substr(at));
      if (right == kNone) continue;
      result_.merges.emplace_back(left, right, rank, piece);
      found = true;
    }
    if (!found) return;
    if (model_.pieces[piece].type == PieceType::kUnused) {
      throw InputError(model_.name + ": piece " + std::to_string(piece) + ", '" +
                       printable(text, 40) +
                       "', is unused, but others join to it, which is not supported");
    }
    parts_[text] = piece;
  }

  /// The number of a text that can be there when it is joined with another.
  uint32_t part(const std::string& text) {
    const auto found = parts_.find(text);
    if (found != parts_.end()) return found->second;
    if (first_character(text, 0) != text.size()) return kNone;
    const auto number = first_character_ + static_cast<uint32_t>(result_.characters.size());
    result_.characters.push_back(text);
    parts_[text] = number;
    return number;
  }

  static constexpr uint32_t kNone = 0xffffffff;

  const SentencePieceModel& model_;
  uint32_t first_character_;
  std::unordered_map<std::string, uint32_t> parts_;
  SentencePieceMerges result_;
};

}  // namespace

SentencePieceMerges find_merges(const SentencePieceModel& model, uint32_t first_character) {
  return Finder(model, first_character).find();
}

}  // namespace oxbow::convert
