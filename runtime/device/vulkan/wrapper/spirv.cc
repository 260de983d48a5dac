#include "runtime/device/vulkan/wrapper/spirv.h"

#include <cstddef>

namespace oxbow::vulkan {
namespace {

// Numbers of the SPIR-V specification, of instructions and of decorations.
enum : uint32_t { kTypePointer = 32, kVariable = 59, kDecorate = 71, kMemberDecorate = 72 };
enum : uint32_t { kNonWritable = 24, kBinding = 33 };
constexpr size_t kHeaderWords = 5;
constexpr uint32_t kAll = UINT32_MAX;

/// Calls `see` with each instruction of so many words or more; false: the code is damaged.
template <typename See>
bool for_each(std::span<const uint32_t> code, uint32_t instruction, size_t words, const See& see) {
  for (size_t at = kHeaderWords; at < code.size();) {
    const size_t count = code[at] >> 16;
    if (count == 0 || count > code.size() - at) return false;
    if ((code[at] & 0xffff) == instruction && count >= words) see(code.subspan(at, count));
    at += count;
  }
  return true;
}

/// The type of the block that a variable is, or 0.
uint32_t block_of(std::span<const uint32_t> code, uint32_t variable) {
  uint32_t pointer = 0, block = 0;
  const bool whole = for_each(code, kVariable, 4,
                              [&](std::span<const uint32_t> words) {
                                if (words[2] == variable) pointer = words[1];
                              }) &&
                     for_each(code, kTypePointer, 4, [&](std::span<const uint32_t> words) {
                       if (words[1] == pointer) block = words[3];
                     });
  return whole ? block : 0;
}

bool is_read_only(std::span<const uint32_t> code, uint32_t block) {
  bool read_only = false;
  for_each(code, kMemberDecorate, 4, [&](std::span<const uint32_t> words) {
    read_only |= words[1] == block && words[3] == kNonWritable;
  });
  return read_only;
}

}  // namespace

uint32_t written_bindings(std::span<const uint32_t> code) {
  uint32_t written = 0;
  const bool whole = for_each(code, kDecorate, 4, [&](std::span<const uint32_t> words) {
    if (words[2] != kBinding || words[3] >= 32) return;
    if (!is_read_only(code, block_of(code, words[1]))) written |= 1u << words[3];
  });
  return whole ? written : kAll;
}

}  // namespace oxbow::vulkan
