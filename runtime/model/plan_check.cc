#include "runtime/model/plan_check.h"

#include <algorithm>
#include <memory>
#include <new>
#include <string_view>

#include "runtime/base/hadamard.h"
#include "runtime/base/quantize.h"
#include "runtime/base/tensor.h"
#include "runtime/model/entry_check.h"
#include "runtime/model/features.h"
#include "runtime/model/state_kinds.h"
#include "runtime/op.h"
#include "schema/model_generated.h"

namespace oxbow {
namespace {

using schema::DataType;
using schema::TensorKind;

// Far above any model.
constexpr uint32_t kMaxTensors = 16384;
constexpr uint32_t kMaxRings = 16384;
constexpr uint32_t kMaxRows = 1u << 24;
constexpr uint32_t kMaxFeatures = 1024;
constexpr uint32_t kMaxOffloads = 65536;
// Each token is compared with all of them.
constexpr uint32_t kMaxEndTokens = 1024;
constexpr size_t kMaxFeatureName = 64;
constexpr uint64_t kMaxRegionBytes = uint64_t{1} << 46;

template <typename Vector>
uint32_t length(const Vector* vector) {
  return vector == nullptr ? 0 : vector->size();
}

Status check_features(const schema::Model& graph, Error* error) {
  if (length(graph.required_features()) > kMaxFeatures)
    return fail(error, Status::kFileUnsupported,
                "the file needs too many features: update the library");
  for (uint32_t i = 0; i < length(graph.required_features()); ++i) {
    const std::string_view name = graph.required_features()->Get(i)->string_view();
    if (name.size() > kMaxFeatureName || !is_name(name))
      return fail(error, Status::kFileCorrupt, "required feature %u: its name is not text", i);
    if (!knows_feature(name))
      return fail(error, Status::kFileUnsupported,
                  "this library does not know the feature '%s': update it", name.data());
  }
  return Status::kOk;
}

// A FlatBuffer may refer to one part many times. Then a small file could keep us busy for hours, so what is
// looked at all together must not be more than there are bytes.
class Budget {
 public:
  explicit Budget(uint64_t bytes) : left_(bytes) {}

  bool take(uint64_t bytes) {
    if (bytes > left_) return false;
    left_ -= bytes;
    return true;
  }

  /// What is not a name gets the number it has in its list.
  Status name(const flatbuffers::String* name, const char* kind, uint32_t index, Error* error) {
    if (!take(name->size())) return spent(error);
    if (is_name(name->string_view())) return Status::kOk;
    return fail(error, Status::kFileCorrupt, "%s %u: its name is empty or has control characters",
                kind, index);
  }

  static Status spent(Error* error) {
    return fail(error, Status::kFileCorrupt,
                "the graph is larger than its bytes: it repeats itself");
  }

 private:
  uint64_t left_;
};

Status check_size(const schema::Model& graph, uint64_t graph_bytes, Error* error) {
  if (graph.tensors()->size() > kMaxTensors || length(graph.symbols()) > kMaxSymbols ||
      length(graph.rings()) > kMaxRings ||
      (graph.generation() != nullptr &&
       length(graph.generation()->more_end_tokens()) > kMaxEndTokens) ||
      length(graph.offloads()) > kMaxOffloads || graph.plan()->activations() > kMaxRegionBytes ||
      graph.plan()->states() > kMaxRegionBytes ||
      graph.plan()->shared_states() > graph.plan()->states() ||
      graph.plan()->shared_states() % kTensorAlignment != 0) {
    return fail(error, Status::kFileUnsupported, "the graph is larger than this library supports");
  }
  Budget budget(graph_bytes);
  for (uint32_t i = 0; i < length(graph.symbols()); ++i) {
    OXB_TRY(budget.name(graph.symbols()->Get(i)->name(), "symbol", i, error));
  }
  for (uint32_t i = 0; i < length(graph.rings()); ++i) {
    OXB_TRY(budget.name(graph.rings()->Get(i)->name(), "ring", i, error));
  }
  for (uint32_t i = 0; i < graph.tensors()->size(); ++i) {
    OXB_TRY(budget.name(graph.tensors()->Get(i)->name(), "tensor", i, error));
  }
  const schema::Metadata& metadata = *graph.metadata();
  // Keys are copied here, and the rest by who shows it to people.
  for (const auto* pairs : {metadata.settings(), metadata.sizes(), metadata.quality()}) {
    for (uint32_t i = 0; i < length(pairs); ++i) {
      const schema::KeyValue& pair = *pairs->Get(i);
      if (!budget.take(8 + uint64_t{pair.key()->size()} + pair.value()->size()))
        return Budget::spent(error);
    }
  }
  for (const auto* texts :
       {metadata.labels(), metadata.transposed_states(), metadata.shared_inputs()}) {
    for (uint32_t i = 0; i < length(texts); ++i) {
      if (!budget.take(4 + uint64_t{texts->Get(i)->size()})) return Budget::spent(error);
    }
  }
  for (uint32_t i = 0; i < graph.entry_points()->size(); ++i) {
    const schema::EntryPoint& entry = *graph.entry_points()->Get(i);
    OXB_TRY(budget.name(entry.name(), "entry point", i, error));
    for (uint32_t k = 0; k < i; ++k) {
      if (graph.entry_points()->Get(k)->name()->string_view() == entry.name()->string_view()) {
        return refuse(error, "entry point", entry.name()->c_str(), "another has its name");
      }
    }
    if (length(entry.kept()) > kMaxTensors) {
      return refuse(error, "entry point", entry.name()->c_str(), "keeps more than all tensors");
    }
    for (uint32_t k = 0; k < length(entry.kept_names()); ++k) {
      OXB_TRY(budget.name(entry.kept_names()->Get(k), "kept tensor", k, error));
    }
    for (uint32_t s = 0; s < length(entry.steps()); ++s) {
      const schema::Step& step = *entry.steps()->Get(s);
      // The table, its place in the list, and its own lists.
      const uint64_t indices = uint64_t{length(step.inputs())} + length(step.outputs());
      if (!budget.take(8 + 4 * indices)) return Budget::spent(error);
    }
  }
  for (uint32_t i = 0; i < length(graph.offloads()); ++i) {
    const schema::Offload& offload = *graph.offloads()->Get(i);
    OXB_TRY(budget.name(offload.plugin(), "the plug-in of offload", i, error));
    OXB_TRY(budget.name(offload.target(), "the target of offload", i, error));
    if (offload.compiler() != nullptr) {
      OXB_TRY(budget.name(offload.compiler(), "the compiler of offload", i, error));
    }
  }
  return Status::kOk;
}

Status check_shape(const schema::Model& graph, const schema::Tensor& tensor, Error* error) {
  const int32_t symbol = tensor.rows_symbol();
  if (tensor.kind() > TensorKind::MAX || tensor.type() > DataType::MAX ||
      tensor.layout() > schema::Layout::MAX)
    return refuse_tensor(error, tensor, "unknown kind, type or layout");
  if (symbol < -1 || symbol >= static_cast<int32_t>(length(graph.symbols())))
    return refuse_tensor(error, tensor, "its row symbol is out of range");
  if (symbol >= 0) {
    if (tensor.rows() != graph.symbols()->Get(static_cast<uint32_t>(symbol))->max())
      return refuse_tensor(error, tensor, "its rows are not the maximum of its row symbol");
    if (tensor.kind() == TensorKind::Weight || tensor.kind() == TensorKind::State)
      return refuse_tensor(error, tensor, "a weight or state cannot have a row symbol");
  }
  uint64_t bytes = 0;
  if (!tensor_bytes(static_cast<oxbow::DataType>(tensor.type()),
                    static_cast<Layout>(tensor.layout()), tensor.rows(), tensor.width(),
                    tensor.scale_groups(), &bytes) ||
      bytes != tensor.bytes())
    return refuse_tensor(error, tensor, "impossible shape, scales or size");
  return Status::kOk;
}

Status check_hadamard(const schema::Tensor& tensor, Error* error) {
  const bool i8 = tensor.type() == DataType::I8 || tensor.type() == DataType::I4Rows;
  const bool remembered = i8 && tensor.kind() == TensorKind::State &&
                          state_kind(tensor).keeps_rows && tensor.initial() < 0;
  if (tensor.kind() != TensorKind::Activation && !remembered)
    return refuse_tensor(error, tensor,
                         "hadamard is for activations, and I8 or I4Rows states in rings that begin "
                         "empty");
  const uint32_t width = tensor.width() / (i8 ? tensor.scale_groups() : 1);
  if (tensor.type() == DataType::I32 || !is_hadamard_block(tensor.hadamard(), width))
    return refuse_tensor(error, tensor,
                         "hadamard must be a power of two from 16 to 512 that divides what has one "
                         "scale");
  return Status::kOk;
}

Status check_values(const schema::Tensor& tensor, Error* error) {
  if (tensor.layout() != schema::Layout::RowMajor && tensor.kind() != TensorKind::Weight)
    return refuse_tensor(error, tensor, "only weights may be packed");
  if ((tensor.type() == DataType::F16 || tensor.type() == DataType::BF16) &&
      tensor.kind() != TensorKind::Weight)
    return refuse_tensor(error, tensor, "only weights may be F16 or BF16");
  if (tensor.type() == DataType::I4Rows &&
      (tensor.kind() != TensorKind::State || tensor.ring() < 0 || tensor.initial() >= 0))
    return refuse_tensor(error, tensor, "only states in rings that begin empty may be I4Rows");
  const bool is_index = tensor.type() == DataType::I32;
  // Several columns are for what steps tell each other.
  const bool is_ours =
      tensor.kind() == TensorKind::Activation || tensor.kind() == TensorKind::State;
  if (is_index && ((tensor.width() != 1 && !is_ours) || tensor.limit() == 0 ||
                   tensor.limit() > INT32_MAX || tensor.kind() == TensorKind::Weight))
    return refuse_tensor(
        error, tensor,
        "as I32 it must have one column, unless it is made inside, a limit, and be no weight");
  if (!is_index && (tensor.limit() != 0 || tensor.default_value() != 0))
    return refuse_tensor(error, tensor, "only I32 tensors have a limit and a default");
  if (tensor.kind() == TensorKind::Input) {
    if (tensor.rows_symbol() < 0 || (!is_index && tensor.type() != DataType::F32))
      return refuse_tensor(error, tensor, "an input must be I32 or F32 with a row symbol");
    if (is_index && tensor.default_value() >= tensor.limit())
      return refuse_tensor(error, tensor, "impossible default");
  }
  if (tensor.kind() == TensorKind::Output && tensor.type() != DataType::F32)
    return refuse_tensor(error, tensor, "an output must be F32");
  if (const auto scale = tensor.static_scale(); scale.has_value()) {
    if (tensor.kind() != TensorKind::Activation || tensor.scale_groups() != 1)
      return refuse_tensor(error, tensor,
                           "static_scale is for I8 activations with one scale a row");
    if (!is_static_scale(*scale))
      return refuse_tensor(error, tensor, "static_scale must be positive");
  }
  return tensor.hadamard() == 0 ? Status::kOk : check_hadamard(tensor, error);
}

Status check_place(const schema::Model& graph, const schema::Tensor& tensor, uint64_t data_bytes,
                   Error* error) {
  if (tensor.kind() == TensorKind::Output) return Status::kOk;
  const uint64_t shared_bytes = graph.plan()->shared_states();
  if (tensor.kind() == TensorKind::State) {
    const bool shared = is_shared_state(graph, tensor);
    if (shared != (tensor.offset() < shared_bytes) ||
        (shared && shared_bytes - tensor.offset() < tensor.bytes()))
      return refuse_tensor(error, tensor, "on the wrong side of the shared states");
  }
  const uint64_t region = tensor.kind() == TensorKind::Weight  ? data_bytes
                          : tensor.kind() == TensorKind::State ? graph.plan()->states()
                                                               : graph.plan()->activations();
  uint64_t end = 0;
  if (tensor.offset() % kTensorAlignment != 0 ||
      !checked_add(tensor.offset(), tensor.bytes(), &end) || end > region)
    return refuse_tensor(error, tensor, "outside of its memory region");
  return Status::kOk;
}

// A kind of result that is not known makes nobody use it; everything else must be right.
Status check_offload(const schema::Model& graph, uint32_t index, uint64_t data_bytes,
                     Error* error) {
  const schema::Offload& offload = *graph.offloads()->Get(index);
  const auto lies_inside = [&](uint64_t offset, uint64_t bytes) {
    uint64_t end = 0;
    return offset % kTensorAlignment == 0 && checked_add(offset, bytes, &end) && end <= data_bytes;
  };
  const char* wrong = nullptr;
  if (offload.entry() >= graph.entry_points()->size() || offload.steps() == 0 ||
      offload.steps() > kMaxOffloadSteps ||
      uint64_t{offload.step()} + offload.steps() >
          length(graph.entry_points()->Get(offload.entry())->steps())) {
    wrong = "its step does not exist";
  } else if (offload.rows() == 0 || offload.rows() > kMaxRows) {
    wrong = "impossible rows";
  } else if (!lies_inside(offload.commands(), offload.command_bytes()) ||
             !lies_inside(offload.weights(), offload.weight_bytes())) {
    wrong = "outside of the data region";
  }
  if (wrong == nullptr) return Status::kOk;
  return fail(error, Status::kFileCorrupt, "offload %u: %s", index, wrong);
}

// `order` has all tensors by their offset.
Status check_states(const schema::Model& graph, const uint32_t* order, Error* error) {
  uint64_t end = 0;
  for (uint32_t i = 0; i < graph.tensors()->size(); ++i) {
    const schema::Tensor& tensor = *graph.tensors()->Get(order[i]);
    if (tensor.kind() != TensorKind::State) continue;
    if (tensor.offset() < end) return refuse_tensor(error, tensor, "overlaps another in memory");
    end = tensor.offset() + tensor.bytes();
  }
  return Status::kOk;
}

}  // namespace

Status check_plan(const schema::Model& graph, uint64_t graph_bytes, uint64_t data_bytes,
                  Error* error) {
  OXB_TRY(check_features(graph, error));
  if (graph.plan() == nullptr || graph.metadata() == nullptr || length(graph.entry_points()) == 0 ||
      length(graph.tensors()) == 0) {
    return fail(error, Status::kFileCorrupt, "the graph lacks a plan, metadata, tensors or steps");
  }
  OXB_TRY(check_size(graph, graph_bytes, error));
  for (uint32_t i = 0; i < length(graph.symbols()); ++i) {
    const schema::Symbol& symbol = *graph.symbols()->Get(i);
    if (symbol.max() == 0 || symbol.max() > kMaxRows)
      return refuse(error, "symbol", symbol.name()->c_str(), "impossible maximum");
  }
  for (uint32_t i = 0; i < length(graph.rings()); ++i) {
    const schema::Ring& ring = *graph.rings()->Get(i);
    if (ring.capacity() == 0 || ring.capacity() > kMaxRows || ring.pinned() >= ring.capacity() ||
        ring.initial_rows() > ring.capacity())
      return refuse(error, "ring", ring.name()->c_str(), "impossible capacity");
  }
  for (const schema::Tensor* tensor : *graph.tensors()) {
    OXB_TRY(check_shape(graph, *tensor, error));
    OXB_TRY(check_state(graph, *tensor, error));
    OXB_TRY(check_values(*tensor, error));
    OXB_TRY(check_place(graph, *tensor, data_bytes, error));
  }
  const uint32_t count = graph.tensors()->size();
  const std::unique_ptr<uint32_t[]> order(new (std::nothrow) uint32_t[count]);
  if (order == nullptr) return fail(error, Status::kOutOfMemory, "no memory to check the plan");
  for (uint32_t i = 0; i < count; ++i) order[i] = i;
  std::sort(order.get(), order.get() + count, [&](uint32_t a, uint32_t b) {
    return graph.tensors()->Get(a)->offset() < graph.tensors()->Get(b)->offset();
  });
  OXB_TRY(check_states(graph, order.get(), error));
  uint32_t steps = 0;
  for (const schema::EntryPoint* entry : *graph.entry_points()) {
    steps = std::max(steps, std::min(length(entry->steps()), kMaxSteps));
  }
  EntryChecker checker(graph, order.get());
  OXB_TRY(checker.prepare(steps, error));
  for (const schema::EntryPoint* entry : *graph.entry_points()) {
    OXB_TRY(checker.check(*entry, error));
  }
  for (uint32_t i = 0; i < length(graph.offloads()); ++i) {
    OXB_TRY(check_offload(graph, i, data_bytes, error));
  }
  return Status::kOk;
}

}  // namespace oxbow
