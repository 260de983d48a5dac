#include "ops/common/signature.h"

#include <cinttypes>
#include <cstdio>

#include "ops/common/checks.h"
#include "schema/model_generated.h"

namespace oxbow {
namespace {

struct TypeText {
  char text[160];
};

/// "F32 or I8", ...
TypeText describe_types(TypeSet types) {
  TypeText result = {};
  size_t length = 0;
  for (const Storage& storage : kStorages) {
    if ((types & storage.bit) == 0 || length >= sizeof(result.text)) continue;
    length += static_cast<size_t>(std::snprintf(result.text + length, sizeof(result.text) - length,
                                                "%s%s", length == 0 ? "" : " or ", storage.words));
  }
  return result;
}

/// However many scales it has.
bool is_stored_like(const Tensor& tensor, const Storage& storage) {
  return tensor.type == storage.type && tensor.layout == storage.layout;
}

/// The tensors of one step by the lines of its signature.
class Checker {
 public:
  Checker(BindContext& context, const OpSignature& signature)
      : context_(context), signature_(signature) {}

  Status check() {
    OXB_TRY(check_options());
    OXB_TRY(find_places());
    for (size_t line = 0; line < kMaxPlaces; ++line) starts_[line] = inputs_[line].start;
    for (size_t line = 0; line < signature_.inputs.size(); ++line) {
      OXB_TRY(check_list(signature_.input(line), inputs_[line], false));
    }
    for (size_t line = 0; line < signature_.outputs.size(); ++line) {
      OXB_TRY(check_list(signature_.output(line), outputs_[line], true));
    }
    return Status::kOk;
  }

 private:
  /// The tensors of one line.
  struct Range {
    size_t start = 0;
    size_t count = 0;
  };
  struct Limits {
    size_t least = 0;
    size_t most = 0;
    bool hold(size_t count) const { return count >= least && count <= most; }
  };

  Status check_options() {
    const schema::OpOptions wanted = signature_.options, given = context_.step().options_type();
    if (wanted == schema::OpOptions::NONE) return Status::kOk;
    if (signature_.may_lack_options && given == schema::OpOptions::NONE) return Status::kOk;
    if (given != wanted || context_.step().options() == nullptr) {
      return fail_options(context_, schema::EnumNameOpOptions(wanted));
    }
    return signature_.check_options == nullptr ? Status::kOk : signature_.check_options(context_);
  }

  /// Where each line starts in a list of `given` tensors, and how many there may be.
  Limits find_ranges(const std::initializer_list<Place>& places, size_t given, Range* range) const {
    Limits limits;
    for (const Place& place : places) {
      range->start = limits.least;
      size_t least = place.least, most = place.most;
      if (place.count != nullptr) least = most = place.count(context_.step());
      const size_t rest = given < limits.least ? 0 : given - limits.least;
      range->count = least != most ? rest : least;
      limits.least += least;
      limits.most += most;
      ++range;
    }
    return limits;
  }

  /// Whether there are as many tensors as lines.
  Status find_places() {
    const size_t inputs = context_.input_count(), outputs = context_.output_count();
    const Limits in = find_ranges(signature_.inputs, inputs, inputs_);
    const Limits out = find_ranges(signature_.outputs, outputs, outputs_);
    const bool paired = signature_.is_paired();
    if (in.hold(inputs) && out.hold(outputs) && (!paired || inputs == outputs)) return Status::kOk;
    if (in.least == in.most && out.least == out.most) {
      return check_counts(context_, in.least, out.least);
    }
    char wanted[48] = "as many";
    if (!paired && out.least == out.most) {
      std::snprintf(wanted, sizeof(wanted), "%zu", out.least);
    } else if (!paired) {
      std::snprintf(wanted, sizeof(wanted), "%zu to %zu", out.least, out.most);
    }
    return context_.fail("has %zu inputs and %zu outputs, expected %zu to %zu and %s", inputs,
                         outputs, in.least, in.most, wanted);
  }

  Status check_list(const Place& line, const Range& range, bool is_output) {
    const StepView view(context_, starts_);
    for (size_t i = 0; i < range.count; ++i) {
      const size_t at = range.start + i;
      const Place place = line.each == nullptr ? line : line.each(view, i);
      by_line_ = line.each == nullptr;
      const Tensor tensor = !is_output        ? context_.input(at)
                            : place.to_caller ? context_.output_or_caller(at)
                                              : context_.output(at);
      const size_t repetition = is_output && signature_.is_paired() ? i : 0;
      OXB_TRY(check_kind(place, tensor, repetition));
      OXB_TRY(check_width_rule(place, tensor, repetition));
      OXB_TRY(check_rows_rule(place, tensor, repetition));
      if (place.state_of >= 0) OXB_TRY(check_in_place(place, tensor, i, at));
    }
    return Status::kOk;
  }

  Tensor input(uint8_t place, size_t repetition) const {
    if (!by_line_) return context_.input(place);
    return context_.input(inputs_[place].start +
                          (signature_.input(place).repeats() ? repetition : 0));
  }

  Status refuse(const Tensor& tensor, const char* expected) {
    return context_.fail("tensor '%s' is %s, expected %s", tensor.name, describe(tensor).text,
                         expected);
  }

  Status check_kind(const Place& place, const Tensor& tensor, size_t repetition) {
    bool exists = false, may_be = false, one_scale = true;
    for (const Storage& storage : kStorages) {
      if (!is_stored_like(tensor, storage)) continue;
      exists = true;
      if ((place.types & storage.bit) == 0) continue;
      may_be = true;
      one_scale = one_scale && storage.one_scale;
    }
    if (!may_be) return refuse(tensor, exists ? describe_types(place.types).text : "plain rows");
    if (has_scales(tensor.type)) {
      if (tensor.scale_groups != 1 && one_scale) return refuse(tensor, "one scale a row");
      if (tensor.scale_groups == 0 || tensor.width % tensor.scale_groups != 0) {
        return refuse(tensor, "scales that divide the width");
      }
    }
    if (place.scales != 0 && (tensor.type == DataType::kI8 || tensor.type == DataType::kI4Rows) &&
        tensor.scale_groups != place.scales) {
      return context_.fail("tensor '%s' is %s, expected %u scales a row", tensor.name,
                           describe(tensor).text, place.scales);
    }
    if (tensor.hadamard != 0 && !place.turns) return refuse(tensor, "rows that are not turned");
    if (place.rows.kind != Rows::kAnywhere && place.rows.in_ring() != (tensor.ring >= 0)) {
      return refuse(tensor, place.rows.in_ring() ? "rows in a ring" : "plain rows");
    }
    if (place.type_of < 0) return Status::kOk;
    const Tensor like = input(static_cast<uint8_t>(place.type_of), repetition);
    if (tensor.type != like.type) return refuse(tensor, type_name(like.type));
    if (tensor.scale_groups == like.scale_groups) return Status::kOk;
    return context_.fail("tensor '%s' is %s, expected %u scales a row as '%s'", tensor.name,
                         describe(tensor).text, like.scale_groups, like.name);
  }

  Status check_width_rule(const Place& place, const Tensor& tensor, size_t repetition) {
    uint64_t width = tensor.width;
    switch (place.width.kind) {
      case Width::kAny:
        break;
      case Width::kExactly:
        width = place.width.factor;
        break;
      case Width::kTimes:
        width = uint64_t{place.width.factor} * input(place.width.input, repetition).width;
        break;
      case Width::kRowsOf:
        width = input(place.width.input, repetition).rows;
        break;
      case Width::kTold:
        width = place.width.number(StepView(context_, starts_));
        break;
    }
    if (tensor.width == width) return Status::kOk;
    return context_.fail("tensor '%s' is %s, expected a width of %" PRIu64, tensor.name,
                         describe(tensor).text, width);
  }

  Status check_rows_rule(const Place& place, const Tensor& tensor, size_t repetition) {
    switch (place.rows.kind) {
      case Rows::kAny:
      case Rows::kAnywhere:
        return Status::kOk;
      case Rows::kExactly:
        return check_number_of_rows(tensor, place.rows.rows);
      case Rows::kTold:
        return check_number_of_rows(tensor, place.rows.number(StepView(context_, starts_)));
      case Rows::kFixed:
        if (tensor.rows_symbol < 0 && tensor.rows != 0) return Status::kOk;
        return refuse(tensor, "a matrix of fixed rows");
      case Rows::kRoom:
        return check_room(context_, tensor);
      case Rows::kSameOrOne:
        if (tensor.rows_symbol < 0 && tensor.rows == 1) return Status::kOk;
        [[fallthrough]];
      case Rows::kSame:
        return check_same_rows(context_, input(place.rows.input, repetition), tensor);
      case Rows::kRoomFor:
        return check_room_for(tensor, tensor.rows, place.rows.number(StepView(context_, starts_)));
      case Rows::kCountedOrFixed:
        if (tensor.rows_symbol < 0) return Status::kOk;
        return check_own_symbol(tensor, input(place.rows.input, repetition));
      case Rows::kCounted:
        return check_counted(place, tensor, input(place.rows.input, repetition));
      case Rows::kRing:
      case Rows::kPinnedRing:
        return check_ring(place, tensor);
      case Rows::kSameRing:
        return check_same_ring(tensor, input(place.rows.input, repetition));
    }
    return Status::kOk;
  }

  Status check_own_symbol(const Tensor& tensor, const Tensor& other) {
    if (context_.may_set_symbol(tensor.rows_symbol) && tensor.rows_symbol != other.rows_symbol) {
      return Status::kOk;
    }
    return context_.fail("tensor '%s' must have a row symbol of its own", tensor.name);
  }

  Status check_counted(const Place& place, const Tensor& tensor, const Tensor& other) {
    OXB_TRY(check_own_symbol(tensor, other));
    OXB_TRY(check_room(context_, tensor));
    const Told most = place.rows.number;
    return check_room_for(tensor, context_.symbol_max(tensor.rows_symbol),
                          most == nullptr ? other.rows : most(StepView(context_, starts_)));
  }

  Status check_room_for(const Tensor& tensor, uint64_t room, uint64_t rows) {
    if (room >= rows) return Status::kOk;
    return context_.fail("tensor '%s' has room for %" PRIu64 " rows, expected %" PRIu64,
                         tensor.name, room, rows);
  }

  Status check_number_of_rows(const Tensor& tensor, uint64_t rows) {
    if (tensor.rows == rows && tensor.rows_symbol < 0) return Status::kOk;
    if (rows == 1) return refuse(tensor, "exactly one row");
    return context_.fail("tensor '%s' is %s, expected %" PRIu64 " rows in every run", tensor.name,
                         describe(tensor).text, rows);
  }

  Status check_ring(const Place& place, const Tensor& tensor) {
    const uint32_t capacity = context_.ring_capacity(tensor.ring);
    const uint64_t rows =
        place.rows.number == nullptr ? capacity : place.rows.number(StepView(context_, starts_));
    if (tensor.rows_symbol >= 0 || tensor.rows != capacity || capacity != rows) {
      return context_.fail("tensor '%s' is %s, expected all rows of a ring of %" PRIu64,
                           tensor.name, describe(tensor).text, rows);
    }
    if (place.rows.kind == Rows::kRing && tensor.pinned != 0) {
      return context_.fail("tensor '%s' has %u pinned rows, expected none pinned", tensor.name,
                           tensor.pinned);
    }
    if (tensor.pinned >= capacity) {
      return context_.fail("tensor '%s' has %u pinned rows, expected fewer than its %u",
                           tensor.name, tensor.pinned, capacity);
    }
    return Status::kOk;
  }

  Status check_same_ring(const Tensor& tensor, const Tensor& other) {
    if (tensor.ring != other.ring) {
      return context_.fail("tensors '%s' and '%s' must be in the same ring", other.name,
                           tensor.name);
    }
    if (tensor.rows == other.rows && tensor.rows_symbol < 0 && tensor.pinned == other.pinned) {
      return Status::kOk;
    }
    return context_.fail("tensor '%s' is %s with %u pinned rows, expected those of '%s'",
                         tensor.name, describe(tensor).text, tensor.pinned, other.name);
  }

  /// Tensors are known by their index in the file: pointers are null while bytes are counted.
  Status check_in_place(const Place& place, const Tensor& tensor, size_t index, size_t output) {
    const auto& inputs = *context_.step().inputs();
    const size_t state = starts_[place.state_of] + index;
    const uint32_t own = inputs.Get(static_cast<uint32_t>(state));
    if (context_.step().outputs()->Get(static_cast<uint32_t>(output)) != own) {
      return context_.fail("tensor '%s' is written, expected the state that is read, '%s'",
                           tensor.name, context_.input(state).name);
    }
    for (uint32_t i = 0; i < inputs.size(); ++i) {
      if (i != state && inputs.Get(i) == own) {
        return context_.fail("tensor '%s' is a state and another input", tensor.name);
      }
    }
    return Status::kOk;
  }

  BindContext& context_;
  const OpSignature& signature_;
  /// Whether numbers of inputs are those of lines.
  bool by_line_ = true;
  /// Of the lines of inputs.
  size_t starts_[kMaxPlaces] = {};
  Range inputs_[kMaxPlaces];
  Range outputs_[kMaxPlaces];
};

}  // namespace

Status check_signature(BindContext& context, const OpSignature& signature) {
  if (signature.by_row) context.set_by_row();
  return Checker(context, signature).check();
}

}  // namespace oxbow
