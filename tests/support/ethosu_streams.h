#pragma once

// Streams of compiled layers, whole and changed: what the tests of Ethos-U do to them.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "runtime/device/npu/ethosu/stream.h"

namespace oxbow::testing {

/// What a file has for a layer on a chip.
struct Blob {
  std::vector<std::byte> commands, weights;
  EthosuResult result = EthosuResult::kSums;
};

/// The first one for a chip with results of a kind; empty: there is none.
Blob first_layer(const std::string& file, const char* target,
                 EthosuResult result = EthosuResult::kSums);

/// What a stream may do without harm, in regions of exactly its sizes: the sanitizer sees a byte too many.
void run_alone(const EthosuCommands& commands, std::vector<std::byte> weights);

/// Each byte of the commands changed in three ways.
void expect_refused_or_harmless(Blob blob);

/// What is said about a stream with a register set to another value wherever it is set.
std::string refusal(const Blob& blob, uint32_t command, uint32_t value);

/// A stream in the making.
class Stream {
 public:
  void set(uint32_t command, uint32_t value) {
    if (command < 0x400) {
      words_.push_back(command | value << 16);
    } else {
      words_.insert(words_.end(), {(command - 0x400) | 0x4000, value});
    }
  }
  void add(std::span<const uint32_t> words) {
    words_.insert(words_.end(), words.begin(), words.end());
  }
  /// In place of a blob's stream.
  std::vector<std::byte> commands(const EthosuCommands& old) const {
    const size_t front = old.actions.size() - old.stream.size() - 1;
    std::vector<uint32_t> actions(old.actions.begin(), old.actions.begin() + front);
    actions.push_back(static_cast<uint32_t>(words_.size()) << 16 | 2);
    actions.insert(actions.end(), words_.begin(), words_.end());
    std::vector<std::byte> bytes(sizeof(EthosuHeader) + actions.size() * 4);
    std::memcpy(bytes.data(), &old.header, sizeof(EthosuHeader));
    std::memcpy(bytes.data() + sizeof(EthosuHeader), actions.data(), actions.size() * 4);
    return bytes;
  }

 private:
  std::vector<uint32_t> words_;
};

}  // namespace oxbow::testing
