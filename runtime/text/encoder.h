#pragma once

// Text to token ids, in pieces of any size and in memory the caller gives: the inside of
// oxb_encoder, which oxbow.h documents.
//
//   memory:  oxb_encoder | int32 pending[W + 1] | scratch of the kind | char word[W] | steps   W: max_word_bytes

#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/api/oxbow.h"
#include "runtime/base/status.h"
#include "runtime/text/added_tokens.h"
#include "runtime/text/normalizer.h"
#include "runtime/text/tokenizer.h"

namespace oxbow {

/// How far an encoder came.
struct Encoded {
  /// Ids written.
  size_t count = 0;
  /// Bytes of the text that were taken; what they stand for may still be to come.
  size_t consumed = 0;
};

/// Ids that are made but not yet given out.
struct PendingIds {
  std::span<int32_t> room;
  size_t begin = 0;
  size_t end = 0;

  bool empty() const { return begin == end; }
  /// Ids that can be added now. A kind adds no more for a word than the word has bytes, and one.
  size_t left() const { return room.size() - end; }
  void add(int32_t id) { room[end++] = id; }
};

/// What the functions of a kind work on.
struct EncoderState {
  const Tokenizer* tokenizer = nullptr;
  PendingIds pending;
  /// Room for a word that must be changed before it is looked up.
  std::span<char> word;
  std::span<std::byte> scratch;

  /// Nothing of the text, or of the text behind an added token, was taken yet.
  bool text_start = true;
  bool segment_start = true;
  /// What the kind keeps from call to call.
  KindRoom<256> kind;
};

}  // namespace oxbow

struct oxb_encoder {
 public:
  /// Sets *bytes to what place() needs.
  static oxbow::Status measure(const oxbow::Tokenizer& tokenizer,
                               const oxb_encoder_options& options, size_t* bytes,
                               oxbow::Error* error);
  /// `memory` needs no alignment.
  static oxbow::Status place(const oxbow::Tokenizer& tokenizer, const oxb_encoder_options& options,
                             void* memory, size_t bytes, oxb_encoder** encoder,
                             oxbow::Error* error);

  oxbow::Status run(std::span<const char> text, bool last, std::span<int32_t> ids,
                    oxbow::Encoded* encoded, oxbow::Error* error);
  void reset();
  /// Forgets the text and begins another: with the model's template around it, or behind text that the stream has.
  enum class Beginning { kTemplate, kPlain, kContinued };
  void begin(Beginning beginning, bool parse_special);

 private:
  struct Layout;

  oxb_encoder() = default;
  /// Adds to `pending` and tells how many bytes of `text` that took; none: more text must be seen.
  oxbow::Status take(std::span<const char> text, bool last, size_t* consumed, oxbow::Error* error);
  /// The same for text without added tokens, by the kind: as it is, or normalised.
  oxbow::Status encode(std::span<const char> text, bool ends, size_t* consumed,
                       oxbow::Error* error);
  /// The tokens that the text is put between.
  struct Around {
    const flatbuffers::Vector<uint32_t>* before = nullptr;
    const flatbuffers::Vector<uint32_t>* after = nullptr;
  };
  Around around() const;
  /// The next of `tokens` that were not added to `pending` yet.
  void add_template(const flatbuffers::Vector<uint32_t>* tokens, size_t* done);
  void give(std::span<int32_t> ids, oxbow::Encoded* encoded);
  /// What follows is normalised as a beginning; `place`: where in the whole text.
  void begin_normal(uint64_t place);
  /// In the whole text: where what cannot be taken begins, or a byte of it.
  uint64_t stop_place() const;

  oxb_encoder_options options_;
  oxbow::EncoderState state_;
  oxbow::AddedScanner added_;
  oxbow::TextNormalizer normalizer_;
  /// A word whose end is not among the normalised text is looked at again when there is so much of it.
  size_t normal_again_at_ = 0;
  /// Bytes of normalised text that were used.
  uint64_t normal_used_ = 0;
  /// So many bytes of normalised text were made when the text was taken as far as this place.
  struct Mark {
    uint64_t normal = 0;
    uint64_t place = 0;
  } mark_;
  /// Tokens before and behind the text that were added.
  size_t before_ = 0;
  size_t after_ = 0;
  /// All ids of the text were added.
  bool ended_ = false;
  /// Bytes of the text that were taken by all calls.
  uint64_t taken_ = 0;
  /// A word whose end is not there yet is looked at again when there are so many bytes from its
  /// beginning on.
  size_t look_again_at_ = 0;
};
