#include "runtime/text/encoder.h"

#include <algorithm>
#include <cstdio>
#include <new>

#include "runtime/base/checked.h"
#include "runtime/text/utf8.h"

using oxbow::AddedNext;
using oxbow::Encoded;
using oxbow::Error;
using oxbow::fail;
using oxbow::Status;
using oxbow::Tokenizer;

namespace {

constexpr uint32_t kMinWordBytes = 64;
constexpr uint32_t kMaxWordBytes = 1u << 24;
// A long word that comes in many small pieces would be looked through from its beginning for each of
// them. From this size on it is half as long again each time, so all looking takes linear time.
constexpr size_t kLongWordBytes = 256;
// So much text is normalised at once, and at most a quarter of the longest word: one that is too long is seen in
// parts, and has a mark in it.
constexpr size_t kNormalPart = 256;

/// No word needs to see further than this, and no call should look through all of a long text.
size_t window_bytes(const Tokenizer& tokenizer, size_t word_bytes) {
  return 2 * word_bytes + 2 * tokenizer.longest_text + oxbow::kMaxCharacterBytes;
}

/// Puts the place before the words that a kind has said.
Status stopped(Status status, uint64_t place, Error* error) {
  char words[Error::kCapacity] = {};
  if (error != nullptr && error->text_room() > 0) {
    std::snprintf(words, sizeof(words), "%s", error->text);
  }
  return fail(error, status, "text, byte %llu: %s", static_cast<unsigned long long>(place), words);
}

}  // namespace

/// Offsets of the parts in the aligned memory.
struct oxb_encoder::Layout {
  size_t pending = 0;
  size_t scratch = 0;
  size_t scratch_bytes = 0;
  size_t word = 0;
  size_t steps = 0;
  /// With room to align.
  size_t bytes = 0;

  /// Words are at most 2^24 bytes and scratch a small multiple of it, so nothing here overflows.
  Layout(const Tokenizer& tokenizer, size_t word_bytes) {
    pending = oxbow::round_up(sizeof(oxb_encoder), alignof(std::max_align_t));
    scratch =
        oxbow::round_up(pending + (word_bytes + 1) * sizeof(int32_t), alignof(std::max_align_t));
    if (tokenizer.def->scratch_bytes != nullptr) {
      scratch_bytes = tokenizer.def->scratch_bytes(tokenizer, word_bytes);
    }
    word = scratch + scratch_bytes;
    steps = oxbow::round_up(word + word_bytes, alignof(std::max_align_t));
    bytes = steps +
            oxbow::TextNormalizer::memory_bytes(tokenizer.step_count,
                                                window_bytes(tokenizer, word_bytes)) +
            alignof(std::max_align_t) - 1;
  }
};

Status oxb_encoder::measure(const Tokenizer& tokenizer, const oxb_encoder_options& options,
                            size_t* bytes, Error* error) {
  if (options.max_word_bytes < kMinWordBytes || options.max_word_bytes > kMaxWordBytes) {
    return fail(error, Status::kInvalidArgument, "encoder: max_word_bytes is %u; expected %u to %u",
                static_cast<unsigned>(options.max_word_bytes), static_cast<unsigned>(kMinWordBytes),
                static_cast<unsigned>(kMaxWordBytes));
  }
  const bool pairs =
      tokenizer.table->pair_between() != nullptr || tokenizer.table->pair_after() != nullptr;
  if (!pairs &&
      (options.add_template == OXB_TEMPLATE_FIRST || options.add_template == OXB_TEMPLATE_SECOND)) {
    return fail(error, Status::kInvalidArgument, "encoder: the model takes no pairs of texts");
  }
  *bytes = Layout(tokenizer, options.max_word_bytes).bytes;
  return Status::kOk;
}

Status oxb_encoder::place(const Tokenizer& tokenizer, const oxb_encoder_options& options,
                          void* memory, size_t bytes, oxb_encoder** encoder, Error* error) {
  size_t needed = 0;
  OXB_TRY(measure(tokenizer, options, &needed, error));
  if (memory == nullptr || bytes < needed) {
    return fail(error, Status::kBufferTooSmall, "encoder: given %zu bytes; expected %zu",
                memory == nullptr ? 0 : bytes, needed);
  }
  auto* base = static_cast<std::byte*>(memory);
  base += -reinterpret_cast<uintptr_t>(base) % alignof(std::max_align_t);
  const size_t word_bytes = options.max_word_bytes;
  const Layout layout(tokenizer, word_bytes);
  auto* made = new (base) oxb_encoder();
  made->options_ = options;
  made->state_.tokenizer = &tokenizer;
  made->state_.pending.room = {new (base + layout.pending) int32_t[word_bytes + 1], word_bytes + 1};
  made->state_.scratch = {base + layout.scratch, layout.scratch_bytes};
  made->state_.word = {reinterpret_cast<char*>(base + layout.word), word_bytes};
  made->normalizer_.place({tokenizer.steps, tokenizer.step_count}, base + layout.steps,
                          window_bytes(tokenizer, word_bytes));
  made->reset();
  *encoder = made;
  return Status::kOk;
}

void oxb_encoder::reset() {
  oxbow::EncoderState fresh;
  fresh.tokenizer = state_.tokenizer;
  fresh.pending.room = state_.pending.room;
  fresh.word = state_.word;
  fresh.scratch = state_.scratch;
  state_ = fresh;
  if (const auto start = state_.tokenizer->def->start; start != nullptr) start(state_);
  added_ = {};
  before_ = after_ = 0;
  ended_ = false;
  taken_ = 0;
  look_again_at_ = normal_again_at_ = 0;
  begin_normal(0);
}

void oxb_encoder::begin_normal(uint64_t place) {
  normalizer_.begin();
  mark_ = {0, place};
  normal_used_ = 0;
}

void oxb_encoder::begin(Beginning beginning, bool parse_special) {
  reset();
  options_.parse_special = parse_special;
  options_.add_template = beginning == Beginning::kTemplate;
  // As behind a special token, no space belongs before it.
  const auto behind_token = state_.tokenizer->def->behind_token;
  if (beginning == Beginning::kContinued && behind_token != nullptr) behind_token(state_);
}

oxb_encoder::Around oxb_encoder::around() const {
  const oxbow::schema::Tokenizer& table = *state_.tokenizer->table;
  switch (options_.add_template) {
    case 0:
      return {};
    case OXB_TEMPLATE_FIRST:
      return {table.before(), table.pair_between()};
    case OXB_TEMPLATE_SECOND:
      return {nullptr, table.pair_after()};
    default:
      return {table.before(), table.after()};
  }
}

void oxb_encoder::add_template(const flatbuffers::Vector<uint32_t>* tokens, size_t* done) {
  if (tokens == nullptr) return;
  for (; *done < tokens->size() && state_.pending.left() > 0; ++*done) {
    state_.pending.add(static_cast<int32_t>(tokens->Get(static_cast<uint32_t>(*done))));
  }
}

void oxb_encoder::give(std::span<int32_t> ids, Encoded* encoded) {
  oxbow::PendingIds& pending = state_.pending;
  const size_t count = std::min(pending.end - pending.begin, ids.size() - encoded->count);
  std::copy_n(pending.room.data() + pending.begin, count, ids.data() + encoded->count);
  pending.begin += count;
  encoded->count += count;
  if (pending.empty()) pending.begin = pending.end = 0;
}

Status oxb_encoder::encode(std::span<const char> text, bool ends, size_t* consumed, Error* error) {
  const auto kind = state_.tokenizer->def->encode;
  if (normalizer_.empty()) {
    return kind(state_, text, ends, consumed, error);
  }
  for (size_t part = std::min(kNormalPart, state_.word.size() / 4);;) {
    const std::span<const char> rest = text.subspan(*consumed);
    const bool all = rest.size() <= part;
    const size_t taken = normalizer_.take(all ? rest : rest.first(part), ends && all);
    *consumed += taken;
    const std::span<const char> normal = normalizer_.text();
    const bool settled = normalizer_.complete() || normalizer_.full();
    size_t used = 0;
    if (settled || normal.size() >= normal_again_at_) {
      const Status status = kind(state_, normal, normalizer_.complete(), &used, error);
      normalizer_.drop(used);
      normal_used_ += used;
      const bool waits = used == 0 && state_.pending.empty() && normal.size() >= kLongWordBytes;
      normal_again_at_ = waits ? normal.size() + normal.size() / 2 : 0;
      if (status != Status::kOk) return status;
    }
    // The first place behind the beginning of the word that is not over: a word too long goes on behind it.
    if (mark_.normal <= normal_used_ && taken > 0) {
      mark_ = {normal_used_ + normalizer_.text().size(), taken_ + *consumed};
    }
    if (!state_.pending.empty()) return Status::kOk;
    if (taken > 0 || used > 0) continue;
    if (all) return Status::kOk;
    part *= 2;  // What a step holds back is longer.
  }
}

uint64_t oxb_encoder::stop_place() const {
  if (normalizer_.empty()) return taken_;
  // Normalised text is behind: a byte of the word is known, by a mark before or behind what was used of it.
  return mark_.normal <= normal_used_ ? mark_.place : mark_.place - 1;
}

Status oxb_encoder::take(std::span<const char> text, bool last, size_t* consumed, Error* error) {
  const size_t window = window_bytes(*state_.tokenizer, state_.word.size());
  const bool whole = text.size() <= window;
  if (whole && !last && text.size() < look_again_at_) return Status::kOk;
  std::span<const char> segment = text.first(std::min(text.size(), window));
  last = last && whole;
  AddedNext next{AddedNext::Kind::kPlain, segment.size(), 0, last};
  if (options_.parse_special != 0) next = added_.next(*state_.tokenizer, segment, last);
  const oxbow::TokenizerDef& def = *state_.tokenizer->def;
  Status status = Status::kOk;
  if (next.kind == AddedNext::Kind::kPlain) {
    status = encode(segment.first(next.bytes), next.ends, consumed, error);
    if (*consumed > 0) state_.segment_start = state_.text_start = false;
  } else {
    if (next.kind == AddedNext::Kind::kToken) {
      if (!state_.segment_start) {
        // What was held back of the text before it comes first.
        OXB_TRY(encode({}, true, consumed, error));
        if (!state_.pending.empty()) return Status::kOk;
      }
      state_.pending.add(static_cast<int32_t>(next.token));
      state_.segment_start = true;
      state_.text_start = false;
      begin_normal(taken_ + next.bytes);
      if (def.behind_token != nullptr) def.behind_token(state_);
    }
    *consumed = next.bytes;
  }
  added_.take(*state_.tokenizer, next, segment.first(*consumed));
  OXB_TRY(status);
  const bool waits = *consumed == 0 && state_.pending.empty() && text.size() >= kLongWordBytes;
  look_again_at_ = waits ? text.size() + text.size() / 2 : 0;
  if (*consumed == 0 && state_.pending.empty() && !whole) {
    return fail(error, Status::kTextStopped,
                "a word of more than %zu bytes; give the encoder a larger max_word_bytes",
                state_.word.size());
  }
  return Status::kOk;
}

Status oxb_encoder::run(std::span<const char> text, bool last, std::span<int32_t> ids,
                        Encoded* encoded, Error* error) {
  *encoded = {};
  for (;;) {
    give(ids, encoded);
    if (encoded->count == ids.size()) return Status::kOk;
    if (ended_) {
      reset();
      return Status::kOk;
    }
    const Around around = this->around();
    add_template(around.before, &before_);
    if (!state_.pending.empty()) continue;
    size_t taken = 0;
    const Status status = take(text.subspan(encoded->consumed), last, &taken, error);
    encoded->consumed += taken;
    taken_ += taken;
    if (status != Status::kOk) {
      // Ids that have no room are given by the next call, which stops here again.
      give(ids, encoded);
      if (!state_.pending.empty()) return Status::kOk;
      return stopped(status, stop_place(), error);
    }
    if (taken > 0 || !state_.pending.empty()) continue;
    if (!last || encoded->consumed < text.size()) return Status::kOk;
    add_template(around.after, &after_);
    ended_ = state_.pending.empty();
  }
}
