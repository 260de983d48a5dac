#include "converter/writer.h"

#include <algorithm>
#include <cstring>

#include "converter/features.h"
#include "host/errors.h"
#include "host/temporary_file.h"
#include "runtime/api/oxbow.h"
#include "runtime/base/checked.h"
#include "runtime/base/hash.h"
#include "runtime/base/tensor.h"
#include "runtime/model/file_prefix.h"

namespace oxbow::convert {

namespace {

/// Data that is hashed or copied at once.
constexpr size_t kChunkBytes = size_t{4} << 20;

// The first 8 bytes of a FlatBuffer, root offset and identifier, stay in front of the prefix's own fields.
constexpr size_t kShared = offsetof(FilePrefix, version);
constexpr size_t kInserted = sizeof(FilePrefix) - kShared;
static_assert(kInserted % 8 == 0, "FlatBuffers aligns its scalars to 8");

/// All in front of the data: prefix, graph, padding.
std::vector<std::byte> frame_head(std::span<const std::byte> graph, uint64_t data_bytes,
                                  uint64_t data_hash) {
  const size_t graph_bytes = graph.size() + kInserted;
  std::vector<std::byte> head(round_up(graph_bytes, kSegmentAlignment));
  std::memcpy(head.data() + sizeof(FilePrefix), graph.data() + kShared, graph.size() - kShared);

  FilePrefix prefix = {};
  std::memcpy(&prefix, graph.data(), kShared);
  prefix.root_offset += kInserted;
  prefix.version = kFormatVersion;
  prefix.prefix_bytes = sizeof(FilePrefix);
  prefix.graph_bytes = graph_bytes;
  prefix.data_offset = head.size();
  prefix.data_bytes = data_bytes;
  prefix.graph_hash =
      hash_bytes(head.data() + sizeof(FilePrefix), graph_bytes - sizeof(FilePrefix));
  prefix.data_hash = data_hash;
  prefix.prefix_hash = hash_bytes(&prefix, offsetof(FilePrefix, prefix_hash));
  std::memcpy(head.data(), &prefix, sizeof(prefix));
  return head;
}

flatbuffers::DetachedBuffer graph_buffer(const schema::ModelT& model) {
  schema::ModelT named = model;
  for (const std::string& name : used_features(model)) {
    auto& required = named.required_features;
    if (std::find(required.begin(), required.end(), name) == required.end()) {
      required.push_back(name);
    }
  }
  flatbuffers::FlatBufferBuilder builder(1 << 16);
  schema::FinishModelBuffer(builder, schema::Model::Pack(builder, &named));
  return builder.Release();
}

std::span<const std::byte> bytes_of(const flatbuffers::DetachedBuffer& buffer) {
  return std::as_bytes(std::span(buffer.data(), buffer.size()));
}

/// Gives the file its name, once the runtime has accepted it.
void finish(TemporaryFile& file) {
  file.sync();
  oxb_model* model = nullptr;
  oxb_error error = OXB_ERROR_INIT;
  oxb_status status = oxb_model_open_file(file.path().c_str(), nullptr, &model, &error);
  if (status == OXB_OK) status = oxb_model_check_weights(model, &error);
  oxb_model_close(model);
  if (status != OXB_OK) {
    throw InputError(std::string("the runtime refuses the converted model: ") + error.text);
  }
  file.keep();
}

}  // namespace

std::vector<std::byte> assemble_file(const schema::ModelT& model, std::span<const std::byte> data) {
  return frame_graph(bytes_of(graph_buffer(model)), data);
}

std::vector<std::byte> frame_graph(std::span<const std::byte> graph,
                                   std::span<const std::byte> data) {
  std::vector<std::byte> file =
      frame_head(graph, data.size(), hash_bytes(data.data(), data.size()));
  file.insert(file.end(), data.begin(), data.end());
  return file;
}

void write_model(const std::string& path, std::span<const std::byte> file) {
  TemporaryFile temporary(path);
  temporary.write_at(0, file);
  finish(temporary);
}

DraftFile::DraftFile(const std::string& target, Graph& graph)
    : target_(target), file_(std::make_unique<TemporaryFile>(target)) {
  data_bytes_ = place_weights(graph);
  const std::vector<std::byte> head =
      frame_head(bytes_of(graph_buffer(graph.model)), data_bytes_, 0);
  data_offset_ = head.size();
  file_->write_at(0, head);
  file_->grow_to(data_offset_ + data_bytes_);
}

void DraftFile::pack(const Graph& graph, const MatrixInputs& inputs, const Progress& progress) {
  errors_ = convert::pack(
      graph,
      [&](uint64_t offset, std::span<const std::byte> bytes) {
        file_->write_at(data_offset_ + offset, bytes);
      },
      inputs, [&](uint64_t bytes) { progress(bytes, data_bytes_); });
}

uint64_t DraftFile::append(std::span<const std::byte> bytes) {
  const uint64_t offset = round_up(data_bytes_, kTensorAlignment);
  data_bytes_ = offset + bytes.size();
  file_->grow_to(data_offset_ + data_bytes_);
  file_->write_at(data_offset_ + offset, bytes);
  return offset;
}

void DraftFile::write(uint64_t offset, std::span<const std::byte> bytes) {
  file_->write_at(data_offset_ + offset, bytes);
}

void DraftFile::read(uint64_t offset, std::span<std::byte> bytes) const {
  file_->read_at(data_offset_ + offset, bytes);
}

void DraftFile::finish(const schema::ModelT& model) {
  const flatbuffers::DetachedBuffer graph = graph_buffer(model);
  const size_t head_bytes = frame_head(bytes_of(graph), data_bytes_, 0).size();
  std::unique_ptr<TemporaryFile> moved;
  if (head_bytes != data_offset_) moved = std::make_unique<TemporaryFile>(target_);
  uint64_t hash = kHashSeed;
  std::vector<std::byte> chunk(kChunkBytes);
  for (uint64_t at = 0; at < data_bytes_; at += chunk.size()) {
    chunk.resize(std::min<uint64_t>(kChunkBytes, data_bytes_ - at));
    file_->read_at(data_offset_ + at, chunk);
    hash = hash_bytes(chunk.data(), chunk.size(), hash);
    if (moved) moved->write_at(head_bytes + at, chunk);
  }
  if (moved) file_ = std::move(moved);
  data_offset_ = head_bytes;
  file_->write_at(0, frame_head(bytes_of(graph), data_bytes_, hash));
  convert::finish(*file_);
}

}  // namespace oxbow::convert
