#include "converter/writer.h"

#include <algorithm>
#include <cstring>

#include "converter/features.h"
#include "host/errors.h"
#include "host/io_file.h"
#include "runtime/api/oxbow.h"
#include "runtime/base/checked.h"
#include "runtime/base/hash.h"
#include "runtime/model/file_prefix.h"

namespace oxbow::convert {

std::vector<std::byte> assemble_file(const schema::ModelT& model, std::span<const std::byte> data) {
  schema::ModelT named = model;
  for (const std::string& name : used_features(model)) {
    auto& required = named.required_features;
    if (std::find(required.begin(), required.end(), name) == required.end()) {
      required.push_back(name);
    }
  }
  flatbuffers::FlatBufferBuilder builder(1 << 16);
  schema::FinishModelBuffer(builder, schema::Model::Pack(builder, &named));
  return frame_graph(std::as_bytes(std::span(builder.GetBufferPointer(), builder.GetSize())), data);
}

std::vector<std::byte> frame_graph(std::span<const std::byte> graph,
                                   std::span<const std::byte> data) {
  // The first 8 bytes of the buffer, root offset and identifier, stay in front of the prefix's own
  // fields.
  constexpr size_t kShared = offsetof(FilePrefix, version);
  constexpr size_t kInserted = sizeof(FilePrefix) - kShared;
  static_assert(kInserted % 8 == 0, "FlatBuffers aligns its scalars to 8");
  const size_t graph_bytes = graph.size() + kInserted;
  const size_t data_offset = round_up(graph_bytes, kSegmentAlignment);

  std::vector<std::byte> file(data_offset + data.size());
  std::memcpy(file.data() + sizeof(FilePrefix), graph.data() + kShared, graph.size() - kShared);
  if (!data.empty()) std::memcpy(file.data() + data_offset, data.data(), data.size());

  FilePrefix prefix = {};
  std::memcpy(&prefix, graph.data(), kShared);
  prefix.root_offset += kInserted;
  prefix.version = kFormatVersion;
  prefix.prefix_bytes = sizeof(FilePrefix);
  prefix.graph_bytes = graph_bytes;
  prefix.data_offset = data_offset;
  prefix.data_bytes = data.size();
  prefix.graph_hash =
      hash_bytes(file.data() + sizeof(FilePrefix), graph_bytes - sizeof(FilePrefix));
  prefix.data_hash = hash_bytes(data.data(), data.size());
  prefix.prefix_hash = hash_bytes(&prefix, offsetof(FilePrefix, prefix_hash));
  std::memcpy(file.data(), &prefix, sizeof(prefix));
  return file;
}

void write_model(const std::string& path, std::span<const std::byte> file) {
  write_atomically(path, std::span(&file, 1), [](const std::string& temporary) {
    oxb_model* model = nullptr;
    oxb_error error = OXB_ERROR_INIT;
    oxb_status status = oxb_model_open_file(temporary.c_str(), nullptr, &model, &error);
    if (status == OXB_OK) status = oxb_model_check_weights(model, &error);
    oxb_model_close(model);
    if (status != OXB_OK) {
      throw InputError(std::string("the runtime refuses the converted model: ") + error.text);
    }
  });
}

}  // namespace oxbow::convert
