// SentencePiece's unigram model: of all ways to cut a text into pieces the one whose scores have the
// highest sum.
//
// The best way to each place is known when all places before it were looked at. All places from which
// the text can go on have their best ways in common up to some place; what comes before that can be
// given out and forgotten. Sums are made in the order and the precision of SentencePiece, for the
// whole text: rounding decides between ways that are equally good.

#include <algorithm>
#include <cmath>

#include "runtime/text/decoder.h"
#include "runtime/text/encoder.h"
#include "runtime/text/sentencepiece.h"
#include "runtime/text/utf8.h"

namespace oxbow {
namespace {

constexpr uint32_t kNowhere = 0xffffffff;
/// Sums are made smaller when they leave this range, so that they keep their precision.
constexpr double kLargestSum = 100000.0;

/// The best way to a place.
struct Place {
  double score;
  /// Where its last piece begins; once it is to be given out, where the piece behind it ends.
  uint32_t link;
  /// kNoPiece: unknown text.
  uint32_t piece;
};

struct Lattice {
  std::span<Place> places;
  std::span<char> buffer;

  explicit Lattice(EncoderState& state) {
    // The places come first, for they must be aligned.
    const size_t count = (state.scratch.size() - sizeof(Place)) / (sizeof(Place) + 1);
    places = {reinterpret_cast<Place*>(state.scratch.data()), count + 1};
    buffer = {reinterpret_cast<char*>(places.data() + places.size()), count};
  }
};

size_t scratch_bytes(const Tokenizer& tokenizer, size_t max_word_bytes) {
  const size_t bytes = buffer_bytes(tokenizer, max_word_bytes);
  return (bytes + 1) * sizeof(Place) + bytes;
}

/// What decides between pieces. SentencePiece has scores and sums of single precision; `tokenizers` has both in double
/// precision, and sums for each word.
class Scores {
 public:
  explicit Scores(const schema::Tokenizer& table)
      : exact_(table.exact_scores()), single_(table.scores()) {}

  size_t size() const {
    return exact_ != nullptr ? exact_->size() : single_ != nullptr ? single_->size() : 0;
  }
  double of(uint32_t piece) const {
    return exact_ != nullptr ? exact_->Get(piece) : static_cast<double>(single_->Get(piece));
  }
  double sum(double a, double b) const {
    return exact_ != nullptr ? a + b : static_cast<double>(static_cast<float>(a + b));
  }

 private:
  const flatbuffers::Vector<double>* exact_;
  const flatbuffers::Vector<float>* single_;
};

Status check(Tokenizer& tokenizer, Error* error) {
  OXB_TRY(check_sentencepiece(tokenizer, error));
  // A piece with a score of minus infinity is never taken.
  const Scores scores(*tokenizer.table);
  bool good = scores.size() == tokenizer.pieces;
  for (uint32_t piece = 0; good && piece < tokenizer.pieces; ++piece) {
    good = !std::isnan(scores.of(piece)) && scores.of(piece) != INFINITY;
  }
  if (!good) {
    return fail(error, Status::kFileCorrupt, "tokenizer: pieces and their scores differ");
  }
  if (static_cast<uint32_t>(tokenizer.table->unknown_token()) >= tokenizer.tokens) {
    return fail(error, Status::kFileCorrupt, "tokenizer: the token for unknown text has no score");
  }
  return Status::kOk;
}

/// Takes away from all sums at and behind a place what it has itself.
void lower_sums(std::span<Place> places, size_t at, size_t frontier) {
  const double offset = places[at].score;
  for (size_t i = at; i <= frontier; ++i) {
    if (i == at || places[i].link != kNowhere) places[i].score -= offset;
  }
}

/// Extends the best ways by the pieces that begin at each place up to which all of them can be seen.
void find_ways(const Tokenizer& tokenizer, const Lattice& lattice, SentencePieceState& state) {
  const std::span<Place> places = lattice.places;
  const Scores scores(*tokenizer.table);
  const double unknown_score = scores.of(static_cast<uint32_t>(tokenizer.table->unknown_token()));
  const char* const text = lattice.buffer.data();
  const size_t filled = state.filled;
  const size_t seen = std::max(tokenizer.longest_text, kMaxCharacterBytes);
  size_t frontier = state.frontier;
  size_t at = state.done;
  if (!state.started) places[0] = {0.0, kNowhere, kNoPiece};
  state.started = true;
  const auto extend = [&](size_t end, double more, uint32_t piece) {
    const double score = scores.sum(more, places[at].score);
    while (frontier < end) places[++frontier].link = kNowhere;
    Place& place = places[end];
    if (place.link == kNowhere || score > place.score) {
      place = {score, static_cast<uint32_t>(at), piece};
    }
  };
  while (at < filled) {
    if (!state.complete && filled - at < seen) break;
    if (places[at].score < -kLargestSum || places[at].score > kLargestSum) {
      lower_sums(places, at, frontier);
    }
    const size_t character_end = std::min(at + character_bytes(text[at]), filled);
    bool single = false;
    Trie::Walk walk = tokenizer.trie.walk();
    for (size_t end = at; end < filled && walk.step(text[end]);) {
      ++end;
      if (!walk.ends()) continue;
      const uint32_t piece = walk.value();
      if (piece >= scores.size() || scores.of(piece) == -INFINITY) continue;
      extend(end, scores.of(piece), piece);
      single |= end == character_end;
    }
    if (!single) extend(character_end, unknown_score, kNoPiece);
    at = character_end;
  }
  state.done = at;
  state.frontier = frontier;
}

/// The last place that is on the best way to each place from which the text can go on.
size_t common_place(std::span<const Place> places, const SentencePieceState& state) {
  size_t common = state.done;
  for (size_t end = state.done + 1; end <= state.frontier && common > 0; ++end) {
    if (places[end].link == kNowhere) continue;
    for (size_t other = end; common != other;) {
      size_t& further = common > other ? common : other;
      further = places[further].link;
    }
  }
  return common;
}

/// Where unknown text that ends at a place on the best way begins, for more of it may follow; the place
/// itself when that is where everything begins.
size_t before_unknown(std::span<const Place> places, size_t end) {
  size_t begin = end;
  while (begin > 0 && places[begin].piece == kNoPiece) begin = places[begin].link;
  return begin > 0 ? begin : end;
}

/// Makes the best way to `end` the one to be given out, by turning its links around.
void start_giving(std::span<Place> places, size_t end, SentencePieceState& state) {
  uint32_t next = kNowhere;
  for (size_t at = end; at != 0;) {
    const uint32_t before = places[at].link;
    places[at].link = next;
    next = static_cast<uint32_t>(at);
    at = before;
  }
  state.emit_from = 0;
  state.emit_to = next;
  state.emit_end = end;
}

/// Where unknown text that begins with the piece to be given out next ends.
size_t unknown_end(std::span<const Place> places, const SentencePieceState& state) {
  size_t end = state.emit_to;
  while (end != state.emit_end && places[places[end].link].piece == kNoPiece) {
    end = places[end].link;
  }
  return end;
}

/// A token that is never made of text by its score, but is the text of all that is unknown between
/// two known pieces: a translator knows it from its other language.
uint32_t find_unscored(const Tokenizer& tokenizer, std::span<const char> text) {
  Trie::Match match;
  if (!tokenizer.trie.longest(text, &match) || match.bytes != text.size()) return kNoPiece;
  const bool unscored =
      match.value < tokenizer.tokens && Scores(*tokenizer.table).of(match.value) == -INFINITY;
  return unscored ? match.value : kNoPiece;
}

/// Gives out the tokens up to `emit_end`, or as many as there is room for.
void give(EncoderState& state, const Lattice& lattice) {
  SentencePieceState& s = sentencepiece_state(state);
  const Tokenizer& tokenizer = *state.tokenizer;
  const bool bytes = tokenizer.table->byte_pieces() != nullptr;
  while (s.emit_from < s.emit_end) {
    const Place& place = lattice.places[s.emit_to];
    if (place.piece != kNoPiece) {
      if (state.pending.left() == 0) return;
      state.pending.add(tokenizer.token(place.piece));
      s.after_unknown = false;
    } else if (bytes || s.after_unknown) {
      const std::span<const char> text =
          lattice.buffer.subspan(s.emit_from, s.emit_to - s.emit_from);
      if (state.pending.left() < text.size()) return;
      add_unknown(state, text);
    } else {
      if (state.pending.left() == 0) return;
      const size_t end = unknown_end(lattice.places, s);
      const bool ended = end < s.emit_end || s.complete;
      const uint32_t token =
          ended ? find_unscored(tokenizer, lattice.buffer.subspan(s.emit_from, end - s.emit_from))
                : kNoPiece;
      s.after_unknown = !tokenizer.table->unknown_apart();
      state.pending.add(token == kNoPiece ? tokenizer.table->unknown_token()
                                          : static_cast<int32_t>(token));
    }
    s.emit_from = s.emit_to;
    s.emit_to = place.link;
  }
}

/// Forgets what was given out.
void drop_given(const Lattice& lattice, SentencePieceState& state) {
  const size_t count = state.emit_end;
  drop_front(lattice.buffer, count, state);
  state.frontier -= count;
  std::copy(lattice.places.begin() + static_cast<ptrdiff_t>(count),
            lattice.places.begin() + static_cast<ptrdiff_t>(count + state.frontier + 1),
            lattice.places.begin());
  for (Place& place : lattice.places.first(state.frontier + 1)) {
    if (place.link != kNowhere) place.link -= static_cast<uint32_t>(count);
  }
  state.emit_from = state.emit_end = 0;
}

Status encode(EncoderState& state, std::span<const char> text, bool last, size_t* consumed,
              Error* error) {
  const Lattice lattice(state);
  SentencePieceState& s = sentencepiece_state(state);
  const bool words = state.tokenizer->table->words();
  *consumed = 0;
  for (;;) {
    if (s.emit_end > 0) {
      give(state, lattice);
      if (s.emit_from < s.emit_end) return Status::kOk;
      drop_given(lattice, s);
      // What follows is a text of its own.
      if (s.complete && s.filled == 0) s = {};
      if (!state.pending.empty() && !(words && *consumed < text.size())) return Status::kOk;
    }
    *consumed += fill_buffer(state, text.subspan(*consumed), last, lattice.buffer);
    find_ways(*state.tokenizer, lattice, s);
    if (s.complete) {
      if (s.filled == 0) {
        s = {};
        return Status::kOk;
      }
      start_giving(lattice.places, s.filled, s);
      continue;
    }
    if (!s.full) return Status::kOk;
    const size_t end = common_place(lattice.places, s);
    if (end == 0) return word_too_long(state, error);
    start_giving(lattice.places, before_unknown(lattice.places, end), s);
  }
}

}  // namespace

extern const TokenizerDef unigram_tokenizer;
const TokenizerDef unigram_tokenizer = {
    .kind = schema::TokenizerKind::Unigram,
    .public_kind = OXB_TOKENIZER_UNIGRAM,
    .name = "unigram",
    .check = check,
    .scratch_bytes = scratch_bytes,
    .start = start_sentencepiece,
    .behind_token = sentencepiece_behind_token,
    .encode = encode,
    .decode = decode_sentencepiece,
};

}  // namespace oxbow
