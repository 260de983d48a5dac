// The C interface over Model: argument checks and conversions, no logic of its own.

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>

#include "runtime/api/handles.h"
#include "runtime/api/oxbow.h"
#include "runtime/base/hash.h"
#include "runtime/model/model.h"
#include "schema/model_generated.h"

namespace {

using oxbow::Error;
using oxbow::Model;
using oxbow::Status;

using oxbow::check_entry;
using oxbow::missing;
using oxbow::outer;
using oxbow::words;

// Opens into a new handle, which exists only on success.
template <typename Open>
oxb_status open_handle(oxb_model** out, oxb_error* error, Open open) {
  if (out == nullptr) return missing(error, "model");
  *out = nullptr;
  auto* handle = new (std::nothrow) oxb_model();
  if (handle == nullptr) {
    return outer(oxbow::fail(words(error), Status::kOutOfMemory, "no memory for a model"));
  }
  const Status status = open(&handle->model);
  if (status == Status::kOk) {
    *out = handle;
  } else {
    delete handle;
  }
  return outer(status);
}

}  // namespace

uint32_t oxb_version(void) {
  return OXB_VERSION_MAJOR * 10000 + OXB_VERSION_MINOR * 100 + OXB_VERSION_PATCH;
}

const char* oxb_status_name(oxb_status status) {
  switch (status) {
    case OXB_OK:
      return "ok";
    case OXB_INVALID_ARGUMENT:
      return "invalid argument";
    case OXB_ARENA_TOO_SMALL:
      return "arena too small";
    case OXB_BUFFER_TOO_SMALL:
      return "buffer too small";
    case OXB_NEEDS_RESET:
      return "needs reset";
    case OXB_STREAM_FULL:
      return "stream full";
    case OXB_FILE_UNREADABLE:
      return "file unreadable";
    case OXB_FILE_CORRUPT:
      return "file corrupt";
    case OXB_FILE_UNSUPPORTED:
      return "file unsupported";
    case OXB_STATE_CORRUPT:
      return "state corrupt";
    case OXB_STATE_MISMATCH:
      return "state of another model";
    case OXB_OUT_OF_MEMORY:
      return "out of memory";
    case OXB_NO_DEVICE:
      return "no device";
    case OXB_DEVICE_LOST:
      return "device lost";
    case OXB_INTERNAL:
      return "internal error";
  }
  return "unknown status";
}

oxb_status oxb_model_open_file(const char* path, oxb_model** model, oxb_error* error) {
  if (path == nullptr) return missing(error, "path");
  return open_handle(model, error, [&](Model* opened) {
    // Without O_NONBLOCK a FIFO that nobody writes to would never be opened.
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat info = {};
    if (fd < 0 || fstat(fd, &info) != 0) {
      const int reason = errno;
      if (fd >= 0) close(fd);
      return oxbow::fail(words(error), Status::kFileUnreadable, "cannot open '%.160s': %s", path,
                         std::strerror(reason));
    }
    if (!S_ISREG(info.st_mode)) {
      close(fd);
      return oxbow::fail(words(error), Status::kFileUnreadable, "'%.160s' is not a regular file",
                         path);
    }
    const Status status = oxbow::map_model(fd, 0, static_cast<uint64_t>(info.st_size),
                                           oxbow::builtin_ops(), opened, words(error));
    close(fd);
    return status;
  });
}

oxb_status oxb_model_open_fd(int fd, uint64_t offset, uint64_t length, oxb_model** model,
                             oxb_error* error) {
  return open_handle(model, error, [&](Model* opened) {
    struct stat info = {};
    if (fstat(fd, &info) != 0) {
      return oxbow::fail(words(error), Status::kFileUnreadable, "cannot read the descriptor: %s",
                         std::strerror(errno));
    }
    // Pages behind the end of a file can be mapped, but touching them ends the process.
    uint64_t end = 0;
    if (!oxbow::checked_add(offset, length, &end) || end > static_cast<uint64_t>(info.st_size)) {
      return oxbow::fail(
          words(error), Status::kFileCorrupt, "the file ends before offset %llu plus %llu bytes",
          static_cast<unsigned long long>(offset), static_cast<unsigned long long>(length));
    }
    return oxbow::map_model(fd, offset, length, oxbow::builtin_ops(), opened, words(error));
  });
}

oxb_status oxb_model_open_memory(const void* data, size_t bytes, oxb_model** model,
                                 oxb_error* error) {
  if (data == nullptr) return missing(error, "data");
  return open_handle(model, error, [&](Model* opened) {
    return oxbow::open_model({static_cast<const std::byte*>(data), bytes}, oxbow::builtin_ops(),
                             opened, words(error));
  });
}

void oxb_model_close(oxb_model* model) {
  if (model == nullptr) return;
  oxbow::close_model(&model->model);
  delete model;
}

oxb_status oxb_model_check_weights(const oxb_model* model, oxb_error* error) {
  if (model == nullptr) return missing(error, "model");
  if (oxbow::hash_bytes(model->model.data, model->model.data_bytes) != model->model.data_hash) {
    return outer(oxbow::fail(words(error), Status::kFileCorrupt,
                             "the weights' checksum does not match: the file is damaged"));
  }
  return OXB_OK;
}

void oxb_model_get_info(const oxb_model* model, oxb_model_info* info) {
  const Model& from = model->model;
  const oxbow::schema::Metadata& metadata = *from.graph->metadata();
  *info = {};
  info->architecture = metadata.architecture()->c_str();
  info->vocabulary = from.vocabulary;
  info->max_segment = from.max_segment;
  info->file_bytes = from.file_bytes;
  info->weight_bytes = from.data_bytes;
  info->parameters = metadata.parameters();
  info->macs_per_token = metadata.macs_per_token();
  info->hash = from.hash;
  if (from.graph->tokenizer() != nullptr) {
    info->tokenizer = static_cast<oxb_tokenizer_kind>(from.graph->tokenizer()->kind());
  }
  info->task = static_cast<oxb_task>(from.graph->task());
  info->output_width = from.output_width;
  info->start_token = info->end_token = info->pad_token = info->mask_token = -1;
  if (const auto* generation = from.graph->generation(); generation != nullptr) {
    info->start_token = generation->start_token();
    info->end_token = generation->end_token();
    info->pad_token = generation->pad_token();
  }
  if (from.tokenizer.table != nullptr) info->mask_token = from.tokenizer.table->mask_token();
  info->capacity = from.main_entry().capacity();
  info->entry_count = from.entry_count();
  info->label_count = metadata.labels() == nullptr ? 0 : metadata.labels()->size();
}

int32_t oxb_model_ends_text(const oxb_model* model, int32_t token) {
  const auto* generation = model->model.graph->generation();
  if (generation == nullptr || token < 0) return 0;
  const auto* more = generation->more_end_tokens();
  const bool ends =
      token == generation->end_token() ||
      (more != nullptr && std::find(more->begin(), more->end(), token) != more->end());
  return ends ? 1 : 0;
}

const char* oxb_model_label(const oxb_model* model, size_t index) {
  const auto* labels = model->model.graph->metadata()->labels();
  if (labels == nullptr || index >= labels->size()) return nullptr;
  return labels->Get(static_cast<uint32_t>(index))->c_str();
}

oxb_status oxb_model_entry_info(const oxb_model* model, size_t entry, oxb_entry_info* info,
                                oxb_error* error) {
  if (model == nullptr) return missing(error, "model");
  if (info == nullptr) return missing(error, "info");
  if (const oxb_status status = check_entry(model->model, entry, error); status != OXB_OK) {
    return status;
  }
  const oxbow::schema::EntryPoint& from = model->model.entry(entry);
  const auto& tensors = *model->model.graph->tensors();
  const oxbow::schema::Tensor& output = *tensors.Get(from.logits());
  *info = {};
  info->name = from.name()->c_str();
  info->output = output.name()->c_str();
  info->output_width = output.width();
  info->output_rows = output.rows_symbol() < 0 ? output.rows() : 0;
  info->max_rows = tensors.Get(from.tokens())->rows();
  info->input_count = 1 + (from.inputs() == nullptr ? 0 : from.inputs()->size());
  info->starts = from.starts();
  info->any_pieces = from.any_pieces();
  return OXB_OK;
}

oxb_status oxb_model_input_info(const oxb_model* model, size_t entry, size_t input,
                                oxb_input_info* info, oxb_error* error) {
  oxb_entry_info entry_info;
  const oxb_status status = oxb_model_entry_info(model, entry, &entry_info, error);
  if (status != OXB_OK) return status;
  if (info == nullptr) return missing(error, "info");
  if (input >= entry_info.input_count) {
    return outer(oxbow::fail(words(error), Status::kInvalidArgument, "input %zu; '%.40s' has %zu",
                             input, entry_info.name, entry_info.input_count));
  }
  const oxbow::schema::EntryPoint& from = model->model.entry(entry);
  const oxbow::schema::Tensor& tensor = *model->model.graph->tensors()->Get(
      input == 0 ? from.tokens() : from.inputs()->Get(static_cast<uint32_t>(input - 1)));
  const oxbow::schema::Tensor& main = *model->model.graph->tensors()->Get(from.tokens());
  *info = {tensor.name()->c_str(), static_cast<oxb_type>(tensor.type()),
           tensor.width(),         tensor.limit(),
           tensor.default_value(), input == 0 || tensor.required(),
           tensor.rows(),          tensor.rows_symbol() != main.rows_symbol()};
  return OXB_OK;
}
