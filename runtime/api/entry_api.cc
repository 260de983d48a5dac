// oxb_session_run_entry: named inputs and outputs from the caller's structs, and back.

#include <cstring>

#include "runtime/api/handles.h"
#include "runtime/api/oxbow.h"
#include "runtime/session/session.h"
#include "runtime/session/state.h"
#include "schema/model_generated.h"

namespace {

using oxbow::Error;
using oxbow::fail;
using oxbow::inner;
using oxbow::InputValues;
using oxbow::missing;
using oxbow::Model;
using oxbow::outer;
using oxbow::Session;
using oxbow::Status;
using oxbow::words;

// Element `index` of a caller's array, in which all have the size of the first.
template <typename Item>
Item* item_at(Item* items, size_t index) {
  using Byte = std::conditional_t<std::is_const_v<Item>, const std::byte, std::byte>;
  return reinterpret_cast<Item*>(reinterpret_cast<Byte*>(items) + index * items->size);
}

struct Inputs {
  InputValues values[oxbow::kMaxInputs];
  size_t count = 0;
};

Status read_inputs(const oxb_input* given, size_t count, Inputs* inputs, Error* error) {
  if (count > oxbow::kMaxInputs) {
    return fail(error, Status::kInvalidArgument, "%zu inputs; at most %zu", count,
                oxbow::kMaxInputs);
  }
  for (; inputs->count < count; ++inputs->count) {
    oxb_input input = OXB_INPUT_INIT;
    if (!oxbow::is_size(given->size)) return oxbow::bad_size("input", given->size, error);
    const oxb_input* from = item_at(given, inputs->count);
    if (from->size != given->size) return oxbow::bad_size("input", from->size, error);
    OXB_TRY(oxbow::read_options("input", from, &input, error));
    if (input.name == nullptr) {
      return fail(error, Status::kInvalidArgument, "an input's name is null");
    }
    inputs->values[inputs->count] = {input.name, input.values, input.rows};
  }
  return Status::kOk;
}

/// The caller's output, and which of the entry point's it is.
struct Wanted {
  oxb_output* given = nullptr;
  oxb_output output = OXB_OUTPUT_INIT;
  uint32_t tensor = 0;
};

/// Finds the outputs by name. `main` stays null when it is not wanted.
class Outputs {
 public:
  Outputs(const Session& session, const oxbow::schema::EntryPoint& entry)
      : session_(session), entry_(entry) {}

  Status read(oxb_output* given, size_t count, const Inputs& inputs, Error* error) {
    for (size_t i = 0; i < count; ++i) {
      if (!oxbow::is_size(given->size)) return oxbow::bad_size("output", given->size, error);
      Wanted wanted;
      wanted.given = item_at(given, i);
      if (wanted.given->size != given->size) {
        return oxbow::bad_size("output", wanted.given->size, error);
      }
      OXB_TRY(oxbow::read_options("output", wanted.given, &wanted.output, error));
      size_t index = 0;
      OXB_TRY(find(wanted, &index, error));
      for (size_t j = 0; j < i; ++j) {
        if (std::strcmp(wanted_name(given, j), wanted.output.name) != 0) continue;
        return fail(error, Status::kInvalidArgument, "output '%.60s' is wanted twice",
                    wanted.output.name);
      }
      OXB_TRY(
          check_room(wanted, index == 0 ? wanted.output.rows : most_rows(wanted, inputs), error));
      if (index == 0) main_ = wanted;
    }
    return Status::kOk;
  }

  /// After the run.
  Status write(oxb_output* given, size_t count, Error* error) const {
    for (size_t i = 0; i < count; ++i) {
      Wanted wanted;
      wanted.given = item_at(given, i);
      OXB_TRY(oxbow::read_options("output", wanted.given, &wanted.output, error));
      size_t index = 0;
      OXB_TRY(find(wanted, &index, error));
      if (index == 0) continue;
      const oxbow::Tensor tensor = oxbow::session_tensor(session_, wanted.tensor);
      const uint32_t rows = oxbow::filled_rows(session_, tensor);
      OXB_TRY(check_room(wanted, rows, error));
      OXB_TRY(oxbow::read_rows(session_, wanted.tensor, rows, wanted.output.values, error));
      wanted.output.rows = rows;
      OXB_TRY(oxbow::write_info("output", wanted.output, wanted.given, error));
    }
    return Status::kOk;
  }

  float* main_values() const { return main_.output.values; }
  size_t main_rows() const { return main_.output.rows; }

 private:
  static const char* wanted_name(oxb_output* given, size_t index) {
    return item_at(given, index)->name;
  }

  Status find(Wanted& wanted, size_t* index, Error* error) const {
    if (wanted.output.name == nullptr) {
      return fail(error, Status::kInvalidArgument, "an output's name is null");
    }
    for (*index = 0; *index < oxbow::output_count(entry_); ++*index) {
      wanted.tensor = oxbow::output_tensor(entry_, *index);
      if (tensor(wanted).name()->string_view() == wanted.output.name) return Status::kOk;
    }
    return fail(error, Status::kInvalidArgument, "'%.40s' has no output '%.60s'",
                entry_.name()->c_str(), wanted.output.name);
  }

  /// As many as the input its rows are counted with, where there is one.
  size_t most_rows(const Wanted& wanted, const Inputs& inputs) const {
    for (size_t i = 0; i < inputs.count; ++i) {
      for (size_t j = 0; j < oxbow::input_count(entry_); ++j) {
        const oxbow::schema::Tensor& input =
            *session_.model->graph->tensors()->Get(oxbow::input_tensor(entry_, j));
        if (input.name()->string_view() == inputs.values[i].name &&
            input.rows_symbol() == tensor(wanted).rows_symbol()) {
          return inputs.values[i].rows;
        }
      }
    }
    return tensor(wanted).rows();
  }

  Status check_room(const Wanted& wanted, size_t rows, Error* error) const {
    uint64_t needed = 0;
    if (rows > 0 && wanted.output.values == nullptr) {
      return fail(error, Status::kInvalidArgument, "output '%.60s': values is null",
                  wanted.output.name);
    }
    if (oxbow::checked_mul(rows, tensor(wanted).width(), &needed) &&
        needed <= wanted.output.capacity) {
      return Status::kOk;
    }
    return fail(error, Status::kBufferTooSmall,
                "output '%.60s': room for %zu numbers; %zu rows have %u each", wanted.output.name,
                wanted.output.capacity, rows, tensor(wanted).width());
  }

  const oxbow::schema::Tensor& tensor(const Wanted& wanted) const {
    return *session_.model->graph->tensors()->Get(wanted.tensor);
  }

  const Session& session_;
  const oxbow::schema::EntryPoint& entry_;
  Wanted main_;
};

}  // namespace

oxb_status oxb_session_run_entry(oxb_session* session, size_t entry, const oxb_input* inputs,
                                 size_t input_count, oxb_output* outputs, size_t output_count,
                                 oxb_error* error) {
  if (session == nullptr) return missing(error, "session");
  if (inputs == nullptr) return missing(error, "inputs");
  if (outputs == nullptr && output_count != 0) return missing(error, "outputs");
  const Model& model = *inner(session)->model;
  oxb_status checked = oxbow::check_entry(model, entry, error);
  if (checked != OXB_OK) return checked;
  Inputs read;
  Outputs wanted(*inner(session), model.entry(entry));
  Status status = read_inputs(inputs, input_count, &read, words(error));
  if (status == Status::kOk) status = wanted.read(outputs, output_count, read, words(error));
  if (status == Status::kOk) {
    status =
        oxbow::run_session(*inner(session), static_cast<uint32_t>(entry), {read.values, read.count},
                           wanted.main_values(), wanted.main_rows(), words(error));
  }
  if (status == Status::kOk) status = wanted.write(outputs, output_count, words(error));
  return outer(status);
}
