#include "tests/support/ethosu_streams.h"

#include <gtest/gtest.h>

#include "host/describe.h"
#include "tests/support/edit_model.h"
#include "tests/support/ethosu_device.h"
#include "tests/support/files.h"

namespace oxbow::testing {

Blob first_layer(const std::string& file, const char* target, EthosuResult result) {
  const std::vector<std::byte> bytes = read_bytes(file);
  const FilePrefix prefix = read_prefix(bytes);
  const schema::ModelT model = describe_file(file).model;
  const auto part = [&](uint64_t offset, uint64_t size) {
    const std::byte* from = bytes.data() + prefix.data_offset + offset;
    return std::vector<std::byte>(from, from + size);
  };
  for (const auto& offload : model.offloads) {
    const bool is_exact = offload->result == schema::OffloadResult::ExactSums;
    if (offload->target != target || is_exact != (result == EthosuResult::kSums)) continue;
    return {part(offload->commands, offload->command_bytes),
            part(offload->weights, offload->weight_bytes), result};
  }
  return {};
}

void run_alone(const EthosuCommands& commands, std::vector<std::byte> weights) {
  // A header that asks for more memory than it needs is served, but takes seconds to clear.
  constexpr uint32_t kMost = 1 << 22;
  if (commands.header.scratch_bytes > kMost || commands.header.fast_bytes > kMost) return;
  std::vector<std::byte> scratch(commands.header.scratch_bytes), fast(commands.header.fast_bytes);
  const std::span<std::byte> regions[] = {weights, scratch, fast};
  DecodedWeights decoded;
  (void)run_ethosu_stream(commands.config, commands.stream, regions, decoded);
}

void expect_refused_or_harmless(Blob blob) {
  size_t refused = 0, harmless = 0;
  for (std::byte& byte : blob.commands) {
    for (const int flip : {0x01, 0x80, 0xff}) {
      const std::byte before = byte;
      byte ^= std::byte(flip);
      EthosuCommands commands;
      if (read_ethosu_commands(blob.commands, &commands) != nullptr ||
          check_ethosu_stream(commands, blob.weights.size(), blob.result) != nullptr) {
        ++refused;
      } else {
        run_alone(commands, blob.weights);
        ++harmless;
      }
      byte = before;
    }
  }
  EXPECT_GT(refused, harmless);
  EXPECT_GT(harmless, 0u);
}

std::string refusal(const Blob& blob, uint32_t command, uint32_t value) {
  std::vector<std::byte> changed = blob.commands;
  EthosuCommands commands;
  EXPECT_EQ(read_ethosu_commands(changed, &commands), nullptr);
  auto* words = const_cast<uint32_t*>(commands.stream.data());
  size_t found = 0;
  for (size_t i = 0; i < commands.stream.size(); ++i) {
    const bool is_long = (words[i] & 0xc000) == 0x4000;
    if (((words[i] & 0x3ff) | (is_long ? 0x400u : 0u)) == command) {
      ++found;
      if (is_long) {
        words[i + 1] = value;
      } else {
        words[i] = (words[i] & 0xffff) | value << 16;
      }
    }
    i += is_long;
  }
  EXPECT_GT(found, 0u) << command;
  const char* why = check_ethosu_stream(commands, blob.weights.size(), blob.result);
  return std::string(why == nullptr ? "" : why);
}

}  // namespace oxbow::testing
