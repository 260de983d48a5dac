#pragma once

// The measuring of oxbow bench: one session, and the buffers to feed it.

#include <memory>
#include <string>
#include <vector>

#include "tools/bench/bench.h"
#include "tools/bench/feed.h"
#include "tools/bench/timeline.h"
#include "tools/bench/trace.h"

namespace oxbow::tools {

/// How long and how often.
struct BenchLimits {
  /// Not measured: runs before those of prefill, tokens before those of decode and of a stream.
  uint64_t warmup_runs = 1;
  uint64_t warmup_tokens = 16;
  /// Measured runs of prefill.
  uint64_t repeat = 5;
  /// Each measurement ends then, with what it has; and so does filling the memories before it.
  double max_seconds = 1e30;
};

/// Everything that grows is allocated before measuring.
class Bench {
 public:
  Bench(const oxb::Model& model, std::string path, oxb::Session session, const BenchLimits& limits);

  /// Every run is a text by itself: there is nothing to decode.
  bool only_encodes() const { return entries_.back().info().starts != 0; }
  const oxb::Session& session() const { return session_; }
  /// All that were fed since the start, also those that were not measured.
  uint64_t tokens_fed() const { return tokens_fed_; }

  /// From now on every run but those of profile() is marked.
  /// Rows for the entry point that reads, instead of random ones. Throws InputError.
  void set_input(const FloatRows& rows);
  void set_trace(std::unique_ptr<Trace> trace);

  /// Of the encoder where there is one.
  Timing prefill(uint64_t tokens);
  Timing decode(uint64_t tokens);
  /// One token after another. What it keeps about times has a fixed size, whatever the length.
  Stream stream(uint64_t tokens, const std::string& input);
  /// Of the stream that has just ended.
  std::optional<Turns> turns(uint64_t tokens, double seconds);
  /// Measured apart from the rest, since looking at the clock after each step takes time itself.
  Profile profile(uint64_t prefill_tokens, uint64_t decode_tokens);
  /// A few runs of both kinds, step by step; measured apart for the same reason.
  Timeline timeline(uint64_t prefill_tokens, uint64_t decode_tokens);

 private:
  bool translates() const { return info_.task == OXB_TASK_TRANSLATE; }
  /// What takes the prompt: of a translator an entry point of its own.
  EntryFeed& encoder() { return translates() ? entries_.front() : entries_.back(); }
  EntryFeed& decoder() { return entries_.back(); }
  bool is_full() const { return info_.capacity != 0 && session_.position() >= info_.capacity; }
  uint64_t memory_rows() const;

  void run(EntryFeed& entry, size_t rows, bool last);
  /// One token through the decoder.
  void step(int32_t token);
  /// An empty stream, behind a text where the model has an encoder.
  void start();
  /// Random tokens in full segments; the output of the last one only, as for a prompt.
  void feed(EntryFeed& entry, uint64_t tokens);
  bool fill_memories(uint64_t limit, uint64_t reserve);
  /// "token 412,000 · 49.0 us · state 197 KiB · resident 6.8 MiB · a full KV cache would be 503 MiB".
  std::string live_text(uint64_t token, double seconds) const;

  std::string path_;
  oxb::Session session_;
  oxb_model_info info_ = OXB_MODEL_INFO_INIT;
  BenchLimits limits_;
  RandomTokens random_;
  std::vector<EntryFeed> entries_;
  std::unique_ptr<Trace> trace_;
  /// Not null: of the runs that are going on.
  Timeline* timeline_ = nullptr;
  uint64_t tokens_fed_ = 0;
  uint64_t cache_bytes_per_token_ = 0;
};

}  // namespace oxbow::tools
