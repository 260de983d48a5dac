#include "android/oxbow/src/main/cpp/handles.h"

#include <pthread.h>

#include <cstdlib>

#include "android/oxbow/src/main/cpp/java.h"

namespace oxbow::jni {
namespace {

/// A handle is the cell's number and how often the cell was given away: a handle of a closed object
/// differs from that of the next one in the same cell.
struct Cell {
  uint32_t generation = 0;
  Object* object = nullptr;
};

/// Not std::mutex: this one needs neither a constructor nor a destructor, which threads that outlive
/// the end of the program could meet.
pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
Cell* cells = nullptr;
uint32_t cell_count = 0;
/// No lower cell is free.
uint32_t first_free = 0;
uint32_t living_objects = 0;
Claim* claims = nullptr;

class Lock {
 public:
  Lock() { pthread_mutex_lock(&mutex); }
  ~Lock() { pthread_mutex_unlock(&mutex); }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;
};

/// The last generation of a cell is never given away, so that none comes twice.
constexpr uint32_t kLastGeneration = UINT32_MAX;
constexpr uint32_t kMostCells = 1u << 20;

bool is_free(const Cell& cell) {
  return cell.object == nullptr && cell.generation != kLastGeneration;
}

/// The number of a free cell, or kMostCells.
uint32_t free_cell() {
  while (first_free < cell_count && !is_free(cells[first_free])) ++first_free;
  if (first_free < cell_count) return first_free;
  const uint32_t wanted = cell_count == 0 ? 16 : cell_count * 2;
  if (wanted > kMostCells) return kMostCells;
  auto* more = static_cast<Cell*>(std::realloc(cells, wanted * sizeof(Cell)));
  if (more == nullptr) return kMostCells;
  cells = more;
  for (uint32_t i = cell_count; i < wanted; ++i) cells[i] = Cell{};
  cell_count = wanted;
  return first_free;
}

/// The cell a handle names, or null.
Cell* find(jlong handle) {
  const auto bits = static_cast<uint64_t>(handle);
  const auto index = static_cast<uint32_t>(bits);
  if (index >= cell_count) return nullptr;
  Cell* cell = &cells[index];
  return cell->object != nullptr && cell->generation == bits >> 32 ? cell : nullptr;
}

const char* name(Kind kind) {
  switch (kind) {
    case Kind::kModel:
      return "model";
    case Kind::kSession:
      return "session";
    case Kind::kSampler:
      return "sampler";
    case Kind::kTokenizer:
      return "tokenizer";
    case Kind::kGenerator:
      return "generator";
    case Kind::kBeamSearch:
      return "beam search";
    case Kind::kLogMel:
      return "spectrogram";
    case Kind::kNpu:
      return "accelerator";
  }
  return "object";
}

bool conflict(const Claim& claim, const std::byte* begin, size_t bytes, bool written) {
  return (claim.written || written) && begin < claim.begin + claim.bytes &&
         claim.begin < begin + bytes;
}

bool is_unclaimed(const std::byte* begin, size_t bytes, bool written) {
  for (const Claim* claim = claims; claim != nullptr; claim = claim->next) {
    if (conflict(*claim, begin, bytes, written)) return false;
  }
  return true;
}

}  // namespace

jlong Handles::add(JNIEnv* env, Object* object) {
  {
    const Lock lock;
    const uint32_t index = free_cell();
    if (index < kMostCells) {
      ++living_objects;
      Cell& cell = cells[index];
      cell.object = object;
      // From 1 on, so that 0 is never a handle.
      ++cell.generation;
      return static_cast<jlong>(uint64_t{cell.generation} << 32 | index);
    }
  }
  discard(env, object);
  throw_java(env, OXB_OUT_OF_MEMORY, "too many native objects are open");
  return 0;
}

void Handles::discard(JNIEnv* env, Object* object) {
  object->destroy(env);
  delete object;
}

Object* Handles::acquire(JNIEnv* env, jlong handle, Kind kind) {
  Object* object = nullptr;
  return acquire(env, &handle, 1, kind, &object) ? object : nullptr;
}

bool Handles::acquire(JNIEnv* env, const jlong* handles, size_t count, Kind kind,
                      Object** objects) {
  bool is_closed = false, is_busy = false;
  {
    const Lock lock;
    for (size_t i = 0; i < count; ++i) {
      const Cell* cell = find(handles[i]);
      Object* object = cell == nullptr ? nullptr : cell->object;
      objects[i] = object;
      if (object == nullptr || object->kind_ != kind) {
        is_closed = true;
      } else if (object->sharing_ == Sharing::kOneCall && object->group_->calls_ > 0) {
        is_busy = true;
      }
    }
    for (size_t i = 0; i < count && !is_closed && !is_busy; ++i) {
      ++objects[i]->group_->calls_;
      ++objects[i]->references_;
    }
  }
  if (is_closed) {
    throw_java(env, kClosed, "the %s is closed", name(kind));
  } else if (is_busy) {
    throw_java(env, kBusy,
               "the %s is in use: a call of it, or of one that shares its memory, is running, and "
               "they serve one at a time",
               name(kind));
  }
  return !is_closed && !is_busy;
}

void Handles::reach(JNIEnv* env, jlong handle, Kind kind, void (*use)(Object* object)) {
  {
    const Lock lock;
    Cell* cell = find(handle);
    if (cell != nullptr && cell->object != nullptr && cell->object->kind_ == kind) {
      use(cell->object);
      return;
    }
  }
  throw_java(env, kClosed, "the %s is closed", name(kind));
}

void Handles::release(JNIEnv* env, Object* object) { forget_reference(env, object, true); }

void Handles::close(JNIEnv* env, jlong handle) {
  Object* object = nullptr;
  {
    const Lock lock;
    Cell* cell = find(handle);
    if (cell == nullptr) return;
    object = cell->object;
    cell->object = nullptr;
    const auto index = static_cast<uint32_t>(cell - cells);
    if (index < first_free) first_free = index;
    object->closed_.store(true, std::memory_order_release);
  }
  forget_reference(env, object, false);
}

void Handles::keep(Object* object) {
  const Lock lock;
  ++object->references_;
}

void Handles::drop(JNIEnv* env, Object* object) { forget_reference(env, object, false); }

void Handles::forget_reference(JNIEnv* env, Object* object, bool ends_call) {
  {
    const Lock lock;
    if (ends_call) --object->group_->calls_;
    if (--object->references_ > 0) return;
    --living_objects;
  }
  // Outside the lock: this joins threads, and drops other objects.
  discard(env, object);
}

size_t Handles::bytes(jlong handle) {
  const Lock lock;
  const Cell* cell = find(handle);
  return cell == nullptr ? 0 : cell->object->bytes();
}

uint32_t Handles::living() {
  const Lock lock;
  return living_objects;
}

bool Handles::add_claim(Claim* claim) {
  const Lock lock;
  if (!is_unclaimed(claim->begin, claim->bytes, claim->written)) return false;
  claim->next = claims;
  claims = claim;
  return true;
}

void Handles::remove_claim(Claim* claim) {
  const Lock lock;
  for (Claim** link = &claims; *link != nullptr; link = &(*link)->next) {
    if (*link == claim) {
      *link = claim->next;
      return;
    }
  }
}

bool Handles::may_use(const std::byte* begin, size_t bytes, bool written) {
  const Lock lock;
  return is_unclaimed(begin, bytes, written);
}

}  // namespace oxbow::jni
