// The C interface over Model: argument checks and conversions, no logic of its own.

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>

#include "runtime/api/handles.h"
#include "runtime/api/log.h"
#include "runtime/api/oxbow.h"
#include "runtime/base/hash.h"
#include "runtime/generate/ends_text.h"
#include "runtime/model/model.h"
#include "schema/model_generated.h"

namespace {

using oxbow::Error;
using oxbow::Model;
using oxbow::Status;

using oxbow::check_entry;
using oxbow::missing;
using oxbow::outer;
using oxbow::read_options;
using oxbow::words;
using oxbow::write_info;

/// Of weights that are checked at once; a multiple of any page.
constexpr size_t kCheckedAtOnce = size_t{16} << 20;

/// Piece by piece, so that a file larger than the memory can be checked: a page that is mapped and has been looked at is
/// let go of. It comes back from the file when it is needed.
Status check_weights(const Model& model, Error* error) {
  uint64_t hash = oxbow::kHashSeed;
  for (size_t done = 0; done < model.data_bytes;) {
    const size_t bytes = std::min(kCheckedAtOnce, model.data_bytes - done);
    hash = oxbow::hash_bytes(model.data + done, bytes, hash);
    oxbow::release_pages(model, model.data + done, bytes);
    done += bytes;
  }
  if (hash == model.data_hash) return Status::kOk;
  return oxbow::fail(error, Status::kFileCorrupt,
                     "the weights' checksum does not match: the file is damaged");
}

Status read_open_options(const oxb_open_options* given, oxb_open_options* options, Error* error) {
  OXB_TRY(read_options("open options", given, options, error));
  if (options->access == OXB_ACCESS_MAP || options->access == OXB_ACCESS_READ) return Status::kOk;
  return oxbow::fail(error, Status::kInvalidArgument, "open options: access %d is unknown",
                     static_cast<int>(options->access));
}

// Opens into a new handle, which exists only on success.
template <typename Open>
oxb_status open_handle(const oxb_open_options* given, oxb_model** out, oxb_error* error,
                       Open open) {
  if (out == nullptr) return missing(error, "model");
  *out = nullptr;
  oxb_open_options options = OXB_OPEN_OPTIONS_INIT;
  Status status = read_open_options(given, &options, words(error));
  if (status != Status::kOk) return outer(status);
  auto* handle = new (std::nothrow) oxb_model();
  if (handle == nullptr) {
    return outer(oxbow::fail(words(error), Status::kOutOfMemory, "no memory for a model"));
  }
  const oxbow::Log log = {options.log, options.log_context};
  handle->model.log = log;
  oxbow::SessionOptions planned;
  status = oxbow::convert(options.session, &planned, words(error));
  if (status == Status::kOk && planned.lender != nullptr) {
    status = oxbow::fail(words(error), Status::kInvalidArgument,
                         "open options: a session to plan for cannot have a lender yet");
  }
  handle->model.planned = &planned;
  if (status == Status::kOk) status = open(options, &handle->model);
  if (status == Status::kOk && options.check_weights != 0) {
    status = check_weights(handle->model, words(error));
  }
  if (status == Status::kOk) {
    status = handle->metadata.read(*handle->model.graph->metadata(), words(error));
  }
  if (status == Status::kOk) {
    oxbow::log_opened(handle->model);
    *out = handle;
  } else {
    oxbow::close_model(&handle->model);
    delete handle;
  }
  return outer(status);
}

Status open_range(int fd, uint64_t offset, uint64_t length, const oxb_open_options& options,
                  Model* model, Error* error) {
  if (options.access == OXB_ACCESS_MAP) {
    return oxbow::map_model(fd, offset, length, options.prefetch != 0, oxbow::builtin_ops(), model,
                            error);
  }
  return oxbow::read_model(fd, offset, length,
                           {static_cast<std::byte*>(options.memory),
                            options.memory == nullptr ? 0 : options.memory_bytes},
                           oxbow::builtin_ops(), model, error);
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
    case OXB_CANCELLED:
      return "cancelled";
    case OXB_TEXT_STOPPED:
      return "text stopped";
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
    default:
      return "unknown status";
  }
}

oxb_status oxb_model_open_file(const char* path, const oxb_open_options* given, oxb_model** model,
                               oxb_error* error) {
  if (path == nullptr) return missing(error, "path");
  return open_handle(given, model, error, [&](const oxb_open_options& options, Model* opened) {
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
    const Status status =
        open_range(fd, 0, static_cast<uint64_t>(info.st_size), options, opened, words(error));
    close(fd);
    return status;
  });
}

oxb_status oxb_model_open_fd(int fd, uint64_t offset, uint64_t length,
                             const oxb_open_options* given, oxb_model** model, oxb_error* error) {
  return open_handle(given, model, error, [&](const oxb_open_options& options, Model* opened) {
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
    return open_range(fd, offset, length, options, opened, words(error));
  });
}

oxb_status oxb_model_open_memory(const void* data, size_t bytes, const oxb_open_options* given,
                                 oxb_model** model, oxb_error* error) {
  if (data == nullptr) return missing(error, "data");
  return open_handle(given, model, error, [&](const oxb_open_options&, Model* opened) {
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
  return outer(check_weights(model->model, words(error)));
}

oxb_status oxb_model_get_info(const oxb_model* model, oxb_model_info* given, oxb_error* error) {
  if (model == nullptr) return missing(error, "model");
  if (given == nullptr) return missing(error, "info");
  const Model& from = model->model;
  const oxbow::schema::Metadata& metadata = *from.graph->metadata();
  oxb_model_info info = OXB_MODEL_INFO_INIT;
  info.architecture = metadata.architecture()->c_str();
  info.vocabulary = from.vocabulary;
  info.max_segment = from.max_segment;
  info.file_bytes = from.file_bytes;
  info.weight_bytes = from.data_bytes;
  info.parameters = metadata.parameters();
  info.macs_per_token = metadata.macs_per_token();
  info.hash = from.hash;
  if (from.tokenizer.def != nullptr) info.tokenizer = from.tokenizer.def->public_kind;
  info.task = static_cast<oxb_task>(from.graph->task());
  info.output_width = from.output_width;
  if (const auto* generation = from.graph->generation(); generation != nullptr) {
    info.start_token = generation->start_token();
    info.end_token = generation->end_token();
    info.pad_token = generation->pad_token();
  }
  if (from.tokenizer.table != nullptr) info.mask_token = from.tokenizer.table->mask_token();
  info.capacity = from.main_entry().capacity();
  info.entry_count = from.entry_count();
  info.label_count = metadata.labels() == nullptr ? 0 : metadata.labels()->size();
  info.metadata_count = model->metadata.entries().size();
  return outer(write_info("model info", info, given, words(error)));
}

oxb_status oxb_model_metadata(const oxb_model* model, size_t index, const char** key,
                              const char** value, oxb_error* error) {
  if (model == nullptr) return missing(error, "model");
  if (key == nullptr) return missing(error, "key");
  if (value == nullptr) return missing(error, "value");
  const auto entries = model->metadata.entries();
  if (index >= entries.size()) {
    return outer(oxbow::fail(words(error), Status::kInvalidArgument,
                             "metadata %zu; the model has %zu", index, entries.size()));
  }
  *key = entries[index].key;
  *value = entries[index].value;
  return OXB_OK;
}

const char* oxb_model_find_metadata(const oxb_model* model, const char* key) {
  return model == nullptr || key == nullptr ? nullptr : model->metadata.find(key);
}

oxb_bool oxb_model_ends_text(const oxb_model* model, int32_t token) {
  return model != nullptr && oxbow::ends_text(model->model, token) ? 1 : 0;
}

const char* oxb_model_label(const oxb_model* model, size_t index) {
  if (model == nullptr) return nullptr;
  const auto* labels = model->model.graph->metadata()->labels();
  if (labels == nullptr || index >= labels->size()) return nullptr;
  return labels->Get(static_cast<uint32_t>(index))->c_str();
}

oxb_status oxb_model_entry_info(const oxb_model* model, size_t entry, oxb_entry_info* given,
                                oxb_error* error) {
  if (model == nullptr) return missing(error, "model");
  if (given == nullptr) return missing(error, "info");
  if (const oxb_status status = check_entry(model->model, entry, error); status != OXB_OK) {
    return status;
  }
  const oxbow::schema::EntryPoint& from = model->model.entry(entry);
  const auto& tensors = *model->model.graph->tensors();
  const oxbow::schema::Tensor& output = *tensors.Get(from.logits());
  oxb_entry_info info = OXB_ENTRY_INFO_INIT;
  info.name = from.name()->c_str();
  info.output = output.name()->c_str();
  info.output_width = output.width();
  info.output_rows = output.rows_symbol() < 0 ? output.rows() : 0;
  info.max_rows = tensors.Get(from.tokens())->rows();
  info.input_count = oxbow::input_count(from);
  info.output_count = oxbow::output_count(from);
  info.starts = from.starts() ? 1 : 0;
  info.any_pieces = from.any_pieces() ? 1 : 0;
  return outer(write_info("entry info", info, given, words(error)));
}

oxb_status oxb_model_find_entry(const oxb_model* model, const char* name, size_t* entry,
                                oxb_error* error) {
  if (model == nullptr) return missing(error, "model");
  if (name == nullptr) return missing(error, "name");
  if (entry == nullptr) return missing(error, "entry");
  for (size_t i = 0; i < model->model.entry_count(); ++i) {
    if (model->model.entry(i).name()->string_view() != name) continue;
    *entry = i;
    return OXB_OK;
  }
  return outer(oxbow::fail(words(error), Status::kInvalidArgument,
                           "the model has no entry point '%.80s'", name));
}

oxb_status oxb_model_input_info(const oxb_model* model, size_t entry, size_t input,
                                oxb_input_info* given, oxb_error* error) {
  if (model == nullptr) return missing(error, "model");
  if (given == nullptr) return missing(error, "info");
  if (const oxb_status status = check_entry(model->model, entry, error); status != OXB_OK) {
    return status;
  }
  const oxbow::schema::EntryPoint& from = model->model.entry(entry);
  if (input >= oxbow::input_count(from)) {
    return outer(oxbow::fail(words(error), Status::kInvalidArgument, "input %zu; '%.40s' has %zu",
                             input, from.name()->c_str(), oxbow::input_count(from)));
  }
  const auto& tensors = *model->model.graph->tensors();
  const oxbow::schema::Tensor& tensor = *tensors.Get(oxbow::input_tensor(from, input));
  oxb_input_info info = OXB_INPUT_INFO_INIT;
  info.name = tensor.name()->c_str();
  info.type = static_cast<oxb_type>(tensor.type());
  info.width = tensor.width();
  info.limit = tensor.limit();
  info.default_value = tensor.default_value();
  info.required = input == 0 || tensor.required() ? 1 : 0;
  info.max_rows = tensor.rows();
  info.own_rows = tensor.rows_symbol() != tensors.Get(from.tokens())->rows_symbol() ? 1 : 0;
  return outer(write_info("input info", info, given, words(error)));
}

oxb_status oxb_model_find_input(const oxb_model* model, size_t entry, const char* name,
                                size_t* input, oxb_error* error) {
  if (model == nullptr) return missing(error, "model");
  if (name == nullptr) return missing(error, "name");
  if (input == nullptr) return missing(error, "input");
  if (const oxb_status status = check_entry(model->model, entry, error); status != OXB_OK) {
    return status;
  }
  const oxbow::schema::EntryPoint& from = model->model.entry(entry);
  const auto& tensors = *model->model.graph->tensors();
  for (size_t i = 0; i < oxbow::input_count(from); ++i) {
    if (tensors.Get(oxbow::input_tensor(from, i))->name()->string_view() != name) continue;
    *input = i;
    return OXB_OK;
  }
  return outer(oxbow::fail(words(error), Status::kInvalidArgument, "'%.40s' has no input '%.80s'",
                           from.name()->c_str(), name));
}

oxb_status oxb_model_output_info(const oxb_model* model, size_t entry, size_t output,
                                 oxb_output_info* given, oxb_error* error) {
  if (model == nullptr) return missing(error, "model");
  if (given == nullptr) return missing(error, "info");
  if (const oxb_status status = check_entry(model->model, entry, error); status != OXB_OK) {
    return status;
  }
  const oxbow::schema::EntryPoint& from = model->model.entry(entry);
  if (output >= oxbow::output_count(from)) {
    return outer(oxbow::fail(words(error), Status::kInvalidArgument, "output %zu; '%.40s' has %zu",
                             output, from.name()->c_str(), oxbow::output_count(from)));
  }
  const oxbow::schema::Tensor& tensor =
      *model->model.graph->tensors()->Get(oxbow::output_tensor(from, output));
  oxb_output_info info = OXB_OUTPUT_INFO_INIT;
  info.name = tensor.name()->c_str();
  info.width = tensor.width();
  info.max_rows = tensor.rows();
  return outer(write_info("output info", info, given, words(error)));
}
