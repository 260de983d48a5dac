#pragma once

// Which dispatches must wait: those that read what one before wrote, or write what one before read or wrote. The
// others run beside each other, such as the three products that make queries, keys and values.

#include <cstdint>

#include "runtime/device/vulkan/wrapper/array.h"

namespace oxbow::vulkan {

struct Buffer;

class Hazards {
 public:
  /// What one dispatch binds: bytes of a buffer.
  struct Touch {
    const Buffer* buffer = nullptr;
    uint64_t begin = 0, end = 0;
    bool written = false;
  };

  bool meets(const Touch& touch) const {
    // Many that meet nobody would take their number's square to record; a barrier among them costs little.
    if (touched_.size() > kMost) return true;
    for (const Touch& other : touched_) {
      if (other.buffer == touch.buffer && (other.written || touch.written) &&
          other.begin < touch.end && touch.begin < other.end) {
        return true;
      }
    }
    return false;
  }
  /// False: no memory.
  [[nodiscard]] bool add(const Touch& touch) { return touched_.push(touch); }
  /// After a barrier.
  void clear() { touched_.clear(); }

 private:
  static constexpr size_t kMost = 256;
  Array<Touch> touched_;
};

}  // namespace oxbow::vulkan
