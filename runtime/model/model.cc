#include "runtime/model/model.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdarg>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

#include "runtime/base/hash.h"
#include "runtime/model/file_prefix.h"
#include "runtime/model/graph_verifier.h"
#include "runtime/model/plan_check.h"
#include "runtime/model/ring_moves.h"
#include "runtime/session/plan.h"
#include "schema/model_generated.h"

namespace oxbow {
namespace {

static_assert(std::endian::native == std::endian::little, "model files are little endian");

// A graph nests a handful of levels.
constexpr uint32_t kMaxDepth = 16;
// Of each table, with the reference to it: in a graph of fewer bytes for each they are shared, perhaps endlessly.
constexpr size_t kMinTableBytes = 8;

Status check_prefix(std::span<const std::byte> file, FilePrefix* prefix, Error* error) {
  if (file.size() < sizeof(FilePrefix)) {
    return fail(error, Status::kFileCorrupt,
                "the file has %zu bytes; an Oxbow model has at least %zu: is it truncated?",
                file.size(), sizeof(FilePrefix));
  }
  std::memcpy(prefix, file.data(), sizeof(FilePrefix));
  if (std::memcmp(prefix->identifier, "OXB", 3) != 0) {
    return fail(
        error, Status::kFileCorrupt,
        "the file is not an Oxbow model: bytes 4-7 are not \"OXB1\"; make one with oxbow-convert");
  }
  if (prefix->identifier[3] != '1' || prefix->version != kFormatVersion ||
      prefix->prefix_bytes != sizeof(FilePrefix)) {
    return fail(
        error, Status::kFileUnsupported,
        "format OXB%c version %u; this library reads OXB1 version %u: convert the model again",
        prefix->identifier[3] >= ' ' && prefix->identifier[3] <= '~' ? prefix->identifier[3] : '?',
        prefix->version, kFormatVersion);
  }
  if (hash_bytes(file.data(), offsetof(FilePrefix, prefix_hash)) != prefix->prefix_hash) {
    return fail(error, Status::kFileCorrupt,
                "the file's first 64 bytes are damaged: copy it again");
  }
  uint64_t end = 0;
  if (!checked_add(prefix->data_offset, prefix->data_bytes, &end) ||
      prefix->data_offset % kSegmentAlignment != 0 || prefix->graph_bytes > prefix->data_offset ||
      prefix->graph_bytes <= sizeof(FilePrefix) ||
      prefix->graph_bytes >= FLATBUFFERS_MAX_BUFFER_SIZE) {
    return fail(error, Status::kFileCorrupt, "the file's prefix describes impossible regions");
  }
  if (end != file.size()) {
    return fail(
        error, Status::kFileCorrupt, "the file has %zu bytes but its prefix says %llu: %s",
        file.size(), static_cast<unsigned long long>(end),
        file.size() < end ? "it is truncated, copy it again" : "it is not one whole model file");
  }
  return Status::kOk;
}

/// Before all else is verified: the verifier counts the tables it comes to, but not the strings in their lists, which
/// entry points have.
Status check_entry_count(const uint8_t* bytes, size_t graph_bytes, Error* error) {
  flatbuffers::Verifier verifier(bytes, graph_bytes);
  const auto& root = *reinterpret_cast<const flatbuffers::Table*>(bytes + verifier.VerifyOffset(0));
  const auto field = schema::Model::VT_ENTRY_POINTS;
  const bool there = verifier.VerifyOffset(0) != 0 && root.VerifyTableStart(verifier) &&
                     root.VerifyOffset(verifier, field);
  using Entries = flatbuffers::Vector<flatbuffers::Offset<schema::EntryPoint>>;
  const auto* entries = there ? root.GetPointer<const Entries*>(field) : nullptr;
  if (!there || !verifier.VerifyVector(entries)) {
    return fail(error, Status::kFileCorrupt, "the graph is not a valid FlatBuffer");
  }
  if (entries != nullptr && entries->size() > kMaxEntries) {
    return fail(error, Status::kFileUnsupported, "%u entry points; this library takes up to %zu",
                entries->size(), kMaxEntries);
  }
  return Status::kOk;
}

/// What a tokenizer knows: the tokens a model gives, or takes when it gives something else.
Status open_tokenizer_of(Model* model, Error* error) {
  const schema::Task task = model->graph->task();
  const bool gives_tokens = task != schema::Task::Classify && task != schema::Task::Encode;
  return open_tokenizer(
      model->graph->tokenizer(),
      gives_tokens ? std::min(model->output_width, model->vocabulary) : model->vocabulary,
      &model->tokenizer, error);
}

Status find_ring_moves(Model* model, Error* error) {
  auto* moves = new (std::nothrow) RingMoves();
  model->ring_moves = moves;
  if (moves == nullptr) return fail(error, Status::kOutOfMemory, "no memory for rings");
  return moves->find(*model->graph, error);
}

Status verify(std::span<const std::byte> file, std::span<const OpDef> ops, Model* model,
              Error* error) {
  FilePrefix prefix;
  OXB_TRY(check_prefix(file, &prefix, error));
  if (reinterpret_cast<uintptr_t>(file.data()) % kTensorAlignment != 0) {
    return fail(error, Status::kInvalidArgument, "the model's bytes must be aligned to %zu",
                kTensorAlignment);
  }
  const std::byte* behind_prefix = file.data() + sizeof(FilePrefix);
  const size_t graph_bytes = static_cast<size_t>(prefix.graph_bytes);
  if (hash_bytes(behind_prefix, graph_bytes - sizeof(FilePrefix)) != prefix.graph_hash) {
    return fail(
        error, Status::kFileCorrupt,
        "the graph's checksum does not match: the file is damaged, copy or convert it again");
  }
  const auto* bytes = reinterpret_cast<const uint8_t*>(file.data());
  OXB_TRY(check_entry_count(bytes, graph_bytes, error));
  if (!verify_graph(bytes, graph_bytes, kMaxDepth,
                    static_cast<uint32_t>(graph_bytes / kMinTableBytes))) {
    return fail(error, Status::kFileCorrupt, "the graph is not a valid FlatBuffer");
  }

  model->file = file.data();
  model->file_bytes = file.size();
  model->data = file.data() + prefix.data_offset;
  model->data_bytes = static_cast<size_t>(prefix.data_bytes);
  model->graph = schema::GetModel(bytes);
  model->ops = ops;
  model->data_hash = prefix.data_hash;
  const uint64_t both[] = {prefix.graph_hash, prefix.data_hash};
  model->hash = hash_bytes(both, sizeof(both));
  OXB_TRY(check_plan(*model->graph, prefix.graph_bytes, prefix.data_bytes, error));

  const schema::EntryPoint& entry = model->main_entry();
  const auto& tensors = *model->graph->tensors();
  model->max_segment = tensors.Get(entry.tokens())->rows();
  model->vocabulary = tensors.Get(entry.tokens())->limit();
  model->output_width = tensors.Get(entry.logits())->width();
  const bool generates = model->graph->task() == schema::Task::Generate ||
                         model->graph->task() == schema::Task::Translate;
  // What was picked from a row is fed again.
  if (generates && tensors.Get(entry.tokens())->type() == schema::DataType::I32 &&
      model->output_width != model->vocabulary) {
    return fail(error, Status::kFileCorrupt,
                "a model that generates takes %u tokens but gives logits for %u", model->vocabulary,
                model->output_width);
  }
  OXB_TRY(open_tokenizer_of(model, error));
  model->plans = new (std::nothrow) PlanCache();
  if (model->plans == nullptr) return fail(error, Status::kOutOfMemory, "no memory for a plan");
  SessionMemory memory;
  const SessionOptions options = model->planned == nullptr ? SessionOptions{} : *model->planned;
  model->planned = nullptr;
  OXB_TRY(count_session_memory(*model, options, &memory, error));
  return find_ring_moves(model, error);
}

}  // namespace

size_t Model::entry_count() const { return graph->entry_points()->size(); }

const schema::EntryPoint& Model::entry(size_t index) const {
  return *graph->entry_points()->Get(static_cast<uint32_t>(index));
}

size_t input_count(const schema::EntryPoint& entry) {
  return 1 + (entry.inputs() == nullptr ? 0 : entry.inputs()->size());
}
uint32_t input_tensor(const schema::EntryPoint& entry, size_t index) {
  return index == 0 ? entry.tokens() : entry.inputs()->Get(static_cast<uint32_t>(index - 1));
}
size_t output_count(const schema::EntryPoint& entry) {
  return 1 + (entry.outputs() == nullptr ? 0 : entry.outputs()->size());
}
uint32_t output_tensor(const schema::EntryPoint& entry, size_t index) {
  return index == 0 ? entry.logits() : entry.outputs()->Get(static_cast<uint32_t>(index - 1));
}

Status open_model(std::span<const std::byte> file, std::span<const OpDef> ops, Model* model,
                  Error* error) {
  const Status status = verify(file, ops, model, error);
  if (status != Status::kOk) close_model(model);
  return status;
}

void Log::operator()(Level level, const char* format, ...) const {
  if (write == nullptr) return;
  char line[256];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(line, sizeof(line), format, arguments);
  va_end(arguments);
  write(context, level, line);
}

Status map_model(int fd, uint64_t offset, uint64_t length, bool prefetch,
                 std::span<const OpDef> ops, Model* model, Error* error) {
  // mmap wants a page boundary; an asset inside an archive need not start at one.
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  const uint64_t before = offset % page;
  uint64_t end = 0;
  if (!checked_add(offset, length, &end) || end > INT64_MAX || length == 0 ||
      length + before > SIZE_MAX) {
    return fail(error, Status::kFileCorrupt, "the file is empty or its range is impossible");
  }
  const auto bytes = static_cast<size_t>(length + before);
  void* mapping =
      mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, fd, static_cast<off_t>(offset - before));
  if (mapping == MAP_FAILED) {
    return fail(error, Status::kFileUnreadable, "cannot map %zu bytes of the file: %s", bytes,
                std::strerror(errno));
  }
  model->mapping = mapping;
  model->mapping_bytes = bytes;
  if (prefetch && madvise(mapping, bytes, MADV_WILLNEED) != 0) {
    model->log(Log::kWarning, "cannot prefetch the file: %s", std::strerror(errno));
  }
  return open_model({static_cast<const std::byte*>(mapping) + before, static_cast<size_t>(length)},
                    ops, model, error);
}

Status read_model(int fd, uint64_t offset, uint64_t length, std::span<std::byte> memory,
                  std::span<const OpDef> ops, Model* model, Error* error) {
  uint64_t end = 0;
  if (!checked_add(offset, length, &end) || end > INT64_MAX || length == 0 ||
      length > SIZE_MAX - kTensorAlignment) {
    return fail(error, Status::kFileCorrupt, "the file is empty or its range is impossible");
  }
  const auto bytes = static_cast<size_t>(length);
  std::byte* to = memory.data();
  if (to == nullptr) {
    // Older Androids have no aligned_alloc.
    if (posix_memalign(&model->allocation, kTensorAlignment, bytes) != 0) {
      model->allocation = nullptr;
      return fail(error, Status::kOutOfMemory, "no memory for the file's %zu bytes", bytes);
    }
    to = static_cast<std::byte*>(model->allocation);
  } else if (memory.size() < bytes) {
    return fail(error, Status::kBufferTooSmall, "the memory has %zu bytes; the file has %zu",
                memory.size(), bytes);
  }
  for (size_t done = 0; done < bytes;) {
    const ssize_t some = pread(fd, to + done, bytes - done, static_cast<off_t>(offset + done));
    if (some < 0 && errno == EINTR) continue;
    if (some <= 0) {
      const int reason = errno;
      close_model(model);
      return fail(error, Status::kFileUnreadable, "cannot read the file: %s",
                  some == 0 ? "it has become shorter" : std::strerror(reason));
    }
    done += static_cast<size_t>(some);
  }
  return open_model({to, bytes}, ops, model, error);
}

void release_pages(const Model& model, const std::byte* data, size_t bytes) {
  if (model.mapping == nullptr) return;
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  auto* mapping = static_cast<std::byte*>(model.mapping);
  const size_t first = round_up(static_cast<size_t>(data - mapping), page);
  const size_t end = static_cast<size_t>(data - mapping + bytes) / page * page;
  if (first < end) (void)madvise(mapping + first, end - first, MADV_DONTNEED);
}

void close_model(Model* model) {
  delete model->plans;
  delete model->ring_moves;
  std::free(model->allocation);
  if (model->mapping != nullptr) munmap(model->mapping, model->mapping_bytes);
  close_tokenizer(&model->tokenizer);
  *model = Model();
}

}  // namespace oxbow
