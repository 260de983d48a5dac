#pragma once

// Runs files that have just been written, to see what they compute. Weights are let go of behind the steps that read
// them, so that a model larger than the memory can be run too.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "host/io_file.h"
#include "runtime/api/oxbow.h"

namespace oxbow::convert {

struct FreeBytes {
  void operator()(std::byte* p) const { std::free(p); }
};
using AlignedBytes = std::unique_ptr<std::byte[], FreeBytes>;

/// A model and a session of it. Throws InputError when the runtime refuses something.
class Runner {
 public:
  explicit Runner(const std::string& path);
  ~Runner();
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;

  const oxb_model* model() const { return model_; }
  const oxb_session* session() const { return session_; }
  const oxb_model_info& info() const { return info_; }
  oxb_entry_info entry(size_t index) const;
  oxb_input_info input(size_t entry, size_t index) const;
  /// A run of this entry point takes exactly max_rows rows.
  bool takes_exact_rows(size_t entry) const { return exact_.at(entry); }

  void reset() { (void)oxb_session_reset(session_, nullptr); }
  /// Resizes `output` to all rows there can be.
  void run(size_t index, std::span<const oxb_input> inputs, std::vector<float>& output);

 private:
  /// What a step reads of the file.
  using Ranges = std::vector<std::span<const std::byte>>;
  static void let_go(void* runner, uint32_t step, const char* op, const char* output,
                     uint64_t nanoseconds);

  MappedFile file_;
  AlignedBytes arena_;
  /// Large weights by step, all entry points in a row.
  std::vector<Ranges> weights_;
  oxb_model* model_ = nullptr;
  oxb_session* session_ = nullptr;
  oxb_model_info info_ = OXB_MODEL_INFO_INIT;
  std::vector<bool> exact_;
};

/// Tokens to try a model with.
struct TokenSource {
  /// A text for the file's tokenizer; or these tokens; or, with neither, random ones, always the same.
  std::string text;
  std::vector<int32_t> tokens;
  /// What a report calls them.
  std::string label;

  std::string name() const { return is_random() ? "random tokens" : label; }
  bool is_random() const { return text.empty() && tokens.empty(); }
  /// At most `most` tokens. Throws InputError when the text cannot be encoded or a token is not one of
  /// the model's.
  std::vector<int32_t> take(const Runner& runner, size_t most) const;
};

/// Runs an entry point with these inputs; `rest` are the tokens of this run and all that follow.
using RunEntry = std::function<void(size_t entry, std::span<const oxb_input> inputs,
                                    std::span<const int32_t> rest)>;

/// Cuts tokens into runs of the main entry point, behind a text where there is an encoder; what else a
/// run needs is made up. Where a run takes an exact number of rows, tokens are repeated to fill it. `reset` starts a new stream, when one begins or the last is full.
void feed(const Runner& runner, std::span<const int32_t> tokens, const std::function<void()>& reset,
          const RunEntry& run);

}  // namespace oxbow::convert
