#pragma once

// A model file that has been mapped and verified. Read-only after open, so any number of sessions on
// any threads share one.

#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/base/status.h"
#include "runtime/op.h"
#include "runtime/text/tokenizer.h"

namespace oxbow::schema {
struct EntryPoint;
struct Model;
}  // namespace oxbow::schema

namespace oxbow {

class PlanCache;
class RingMoves;
struct SessionOptions;

/// Where the lines of a log go: oxb_log_callback and its context.
struct Log {
  void (*write)(void* context, int32_t level, const char* line) = nullptr;
  void* context = nullptr;

  enum Level : int32_t { kInfo = 0, kWarning = 1 };
  [[gnu::format(printf, 3, 4)]] void operator()(Level level, const char* format, ...) const;
};

struct Model {
  /// The whole file. Weights are used in place from `data`.
  const std::byte* file = nullptr;
  size_t file_bytes = 0;
  const std::byte* data = nullptr;
  size_t data_bytes = 0;
  const schema::Model* graph = nullptr;
  std::span<const OpDef> ops;
  /// Identifies graph and weights together.
  uint64_t hash = 0;
  uint64_t data_hash = 0;
  uint32_t max_segment = 0;
  uint32_t vocabulary = 0;
  uint32_t output_width = 0;
  Tokenizer tokenizer;
  /// What a session with the options asked about last needs (runtime/session/plan.h). The one thing that changes.
  PlanCache* plans = nullptr;
  /// How its rings move (runtime/model/ring_moves.h).
  const RingMoves* ring_moves = nullptr;

  // Set before opening.

  Log log;
  /// What the first plan is made for; null: the default options. Opening forgets it.
  const SessionOptions* planned = nullptr;

  /// What to free on close: bytes that were read; or the pages to unmap. Null when the bytes are the caller's.
  void* allocation = nullptr;
  void* mapping = nullptr;
  size_t mapping_bytes = 0;

  size_t entry_count() const;
  const schema::EntryPoint& entry(size_t index) const;
  /// The last one: what streams tokens. Others prepare for it.
  const schema::EntryPoint& main_entry() const { return entry(entry_count() - 1); }
};

/// Inputs and outputs of an entry point: the main one, then the others.
size_t input_count(const schema::EntryPoint& entry);
uint32_t input_tensor(const schema::EntryPoint& entry, size_t index);
size_t output_count(const schema::EntryPoint& entry);
uint32_t output_tensor(const schema::EntryPoint& entry, size_t index);

/// Verifies `file` and fills `model`: prefix, FlatBuffer, plan, and every step by binding it once
/// without memory, which also plans sessions with the options in `planned`. Everything a session does later relies on
/// this. On failure the model holds nothing.
Status open_model(std::span<const std::byte> file, std::span<const OpDef> ops, Model* model,
                  Error* error);

/// Maps `length` bytes at `offset`, then as above. With `prefetch` the system is asked to read them all.
Status map_model(int fd, uint64_t offset, uint64_t length, bool prefetch,
                 std::span<const OpDef> ops, Model* model, Error* error);

/// Reads them instead, into `memory` or, without any, into its own.
Status read_model(int fd, uint64_t offset, uint64_t length, std::span<std::byte> memory,
                  std::span<const OpDef> ops, Model* model, Error* error);

/// Lets go of the whole pages in a part of a mapped file; they come back from it when they are read. Otherwise nothing.
void release_pages(const Model& model, const std::byte* data, size_t bytes);

void close_model(Model* model);

}  // namespace oxbow
