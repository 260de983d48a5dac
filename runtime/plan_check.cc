#include "runtime/plan_check.h"

#include <algorithm>
#include <memory>
#include <new>

#include "runtime/base/quantize.h"
#include "runtime/base/tensor.h"
#include "runtime/op.h"
#include "schema/model_generated.h"

namespace oxbow {
namespace {

using schema::TensorKind;

// Far above any model, low enough that the pairwise checks below end quickly on a hostile file.
constexpr uint32_t kMaxTensors = 16384;
constexpr uint32_t kMaxSteps = 65536;
constexpr uint32_t kMaxRings = 16384;
constexpr uint32_t kMaxRows = 1u << 24;
constexpr uint64_t kMaxRegionBytes = uint64_t{1} << 46;

template <typename Vector>
uint32_t length(const Vector* vector) {
  return vector == nullptr ? 0 : vector->size();
}

Status corrupt(Error* error, const char* what, const char* name) {
  return fail(error, Status::kFileCorrupt, "%s '%.80s'", what, name);
}

// The rows a state begins with are copied from a weight when the session is reset.
Status check_initial(const schema::Model& graph, const schema::Tensor& tensor, Error* error) {
  const char* name = tensor.name()->c_str();
  if (tensor.ring() < 0 || tensor.type() == schema::DataType::I32 ||
      static_cast<uint32_t>(tensor.initial()) >= graph.tensors()->size())
    return corrupt(error, "only a ring's state can have initial rows, unlike tensor", name);
  const schema::Tensor& row = *graph.tensors()->Get(static_cast<uint32_t>(tensor.initial()));
  if (row.kind() != TensorKind::Weight || row.type() != schema::DataType::F32 || row.rows() != 1 ||
      row.width() != tensor.width())
    return corrupt(error, "the initial row must be an F32 weight of the same width: tensor", name);
  return Status::kOk;
}

Status check_tensor(const schema::Model& graph, const schema::Tensor& tensor, uint64_t data_bytes,
                    Error* error) {
  const char* name = tensor.name()->c_str();
  if (tensor.kind() > TensorKind::MAX || tensor.type() > schema::DataType::MAX ||
      tensor.layout() > schema::Layout::MAX) {
    return corrupt(error, "unknown kind, type or layout of tensor", name);
  }
  const int32_t symbol = tensor.rows_symbol();
  if (symbol >= 0) {
    if (static_cast<uint32_t>(symbol) >= length(graph.symbols()))
      return corrupt(error, "row symbol out of range in tensor", name);
    if (tensor.rows() != graph.symbols()->Get(static_cast<uint32_t>(symbol))->max())
      return corrupt(error, "rows differ from the symbol's maximum in tensor", name);
    if (tensor.kind() == TensorKind::Weight || tensor.kind() == TensorKind::State)
      return corrupt(error, "a weight or state cannot have a symbolic row count: tensor", name);
  }
  const int32_t ring = tensor.ring();
  if (ring >= 0) {
    if (static_cast<uint32_t>(ring) >= length(graph.rings()))
      return corrupt(error, "ring out of range in tensor", name);
    if (tensor.kind() != TensorKind::State ||
        tensor.rows() != graph.rings()->Get(static_cast<uint32_t>(ring))->capacity())
      return corrupt(error, "rows differ from the ring's capacity in tensor", name);
  }
  uint64_t bytes = 0;
  if (!tensor_bytes(static_cast<DataType>(tensor.type()), static_cast<Layout>(tensor.layout()),
                    tensor.rows(), tensor.width(), tensor.scale_groups(), &bytes) ||
      bytes != tensor.bytes() || symbol < -1 || ring < -1 || tensor.initial() < -1) {
    return corrupt(error, "impossible shape, scales or size of tensor", name);
  }
  if (tensor.layout() == schema::Layout::Block8x4 && tensor.kind() != TensorKind::Weight)
    return corrupt(error, "only weights may be packed, unlike tensor", name);
  const bool is_index = tensor.type() == schema::DataType::I32;
  if (is_index ? tensor.width() != 1 || tensor.limit() == 0 || tensor.limit() > INT32_MAX ||
                     tensor.kind() == TensorKind::Weight
               : tensor.limit() != 0 || tensor.default_value() != 0)
    return corrupt(error, "I32 tensors, and no others, have one column and a limit, unlike", name);
  if (tensor.kind() == TensorKind::Input) {
    if (symbol < 0 || tensor.type() == schema::DataType::I8)
      return corrupt(error, "an input must be I32 or F32 with symbolic rows, unlike tensor", name);
    if (is_index ? tensor.default_value() >= tensor.limit() : !tensor.required())
      return corrupt(error, "impossible default of input", name);
  }
  if (const auto scale = tensor.static_scale(); scale.has_value()) {
    if (tensor.kind() != TensorKind::Activation || tensor.scale_groups() != 1)
      return corrupt(error, "only I8 activations with one scale a row have a static one, unlike",
                     name);
    if (!is_static_scale(*scale))
      return corrupt(error, "the static scale is no positive number of tensor", name);
  }
  if (tensor.initial() >= 0) OXB_TRY(check_initial(graph, tensor, error));
  if (tensor.kind() == TensorKind::Output) {
    if (tensor.type() != schema::DataType::F32)
      return corrupt(error, "an output must be F32, unlike tensor", name);
    return Status::kOk;
  }
  if (tensor.kind() == TensorKind::State) {
    const bool shared = ring >= 0 && graph.rings()->Get(static_cast<uint32_t>(ring))->shared();
    if (shared != (tensor.offset() < graph.plan()->shared_states()) ||
        (shared && graph.plan()->shared_states() - tensor.offset() < bytes))
      return corrupt(error, "on the wrong side of the shared states: tensor", name);
  }
  const uint64_t region = tensor.kind() == TensorKind::Weight  ? data_bytes
                          : tensor.kind() == TensorKind::State ? graph.plan()->states()
                                                               : graph.plan()->activations();
  uint64_t end = 0;
  if (tensor.offset() % kTensorAlignment != 0 || !checked_add(tensor.offset(), bytes, &end) ||
      end > region)
    return corrupt(error, "outside of its memory region: tensor", name);
  return Status::kOk;
}

// When a tensor's bytes are in use, in steps; `last` is inclusive.
struct Lifetime {
  uint32_t tensor;
  uint32_t first;
  uint32_t last;
};

// Refuses two of `alive` that share both a step and a byte.
Status check_disjoint(const schema::Model& graph, Lifetime* alive, size_t count, Error* error) {
  const auto& tensors = *graph.tensors();
  std::sort(alive, alive + count, [&](const Lifetime& a, const Lifetime& b) {
    return tensors.Get(a.tensor)->offset() < tensors.Get(b.tensor)->offset();
  });
  for (size_t i = 0; i < count; ++i) {
    const schema::Tensor& a = *tensors.Get(alive[i].tensor);
    for (size_t j = i + 1; j < count; ++j) {
      const schema::Tensor& b = *tensors.Get(alive[j].tensor);
      if (b.offset() >= a.offset() + a.bytes()) break;
      if (alive[i].first <= alive[j].last && alive[j].first <= alive[i].last) {
        return fail(error, Status::kFileCorrupt, "tensors '%.80s' and '%.80s' overlap in memory",
                    a.name()->c_str(), b.name()->c_str());
      }
    }
  }
  return Status::kOk;
}

Status check_states(const schema::Model& graph, Lifetime* alive, Error* error) {
  size_t count = 0;
  for (uint32_t i = 0; i < graph.tensors()->size(); ++i) {
    if (graph.tensors()->Get(i)->kind() == TensorKind::State) alive[count++] = {i, 0, 0};
  }
  return check_disjoint(graph, alive, count, error);
}

Status check_entry(const schema::Model& graph, const schema::EntryPoint& entry, Lifetime* alive,
                   Error* error) {
  constexpr uint32_t kNever = UINT32_MAX;
  const auto& tensors = *graph.tensors();
  const char* name = entry.name()->c_str();
  if (length(entry.steps()) == 0 || entry.steps()->size() > kMaxSteps)
    return corrupt(error, "no steps, or too many, in entry point", name);
  if (entry.tokens() >= tensors.size() || entry.logits() >= tensors.size() ||
      tensors.Get(entry.tokens())->kind() != TensorKind::Input ||
      tensors.Get(entry.logits())->kind() != TensorKind::Output ||
      tensors.Get(entry.tokens())->rows_symbol() == tensors.Get(entry.logits())->rows_symbol())
    return corrupt(error, "wrong tokens or logits tensor in entry point", name);
  // A caller may want a row for every token.
  if (tensors.Get(entry.logits())->rows_symbol() >= 0 &&
      tensors.Get(entry.logits())->rows() < tensors.Get(entry.tokens())->rows())
    return corrupt(error, "fewer rows of logits than of tokens in entry point", name);

  for (uint32_t i = 0; i < tensors.size(); ++i) alive[i] = {i, kNever, 0};
  // Inputs are there before the first step.
  alive[entry.tokens()].first = 0;
  for (uint32_t k = 0; k < length(entry.inputs()); ++k) {
    const uint32_t index = entry.inputs()->Get(k);
    if (index >= tensors.size() || tensors.Get(index)->kind() != TensorKind::Input ||
        tensors.Get(index)->rows_symbol() != tensors.Get(entry.tokens())->rows_symbol() ||
        alive[index].first != kNever)
      return corrupt(error, "wrong list of inputs in entry point", name);
    alive[index].first = 0;
  }
  for (uint32_t s = 0; s < entry.steps()->size(); ++s) {
    const schema::Step& step = *entry.steps()->Get(s);
    for (uint32_t k = 0; k < length(step.inputs()); ++k) {
      const uint32_t index = step.inputs()->Get(k);
      if (index >= tensors.size()) return corrupt(error, "input out of range in entry point", name);
      const schema::Tensor& tensor = *tensors.Get(index);
      if (tensor.kind() == TensorKind::Output)
        return corrupt(error, "a step reads the output tensor", tensor.name()->c_str());
      if (tensor.kind() == TensorKind::Input && alive[index].first == kNever)
        return corrupt(error, "a step reads an input that nobody gives: tensor",
                       tensor.name()->c_str());
      if (tensor.kind() == TensorKind::Activation && alive[index].first == kNever)
        return corrupt(error, "a step reads before anything is written to tensor",
                       tensor.name()->c_str());
      alive[index].last = s;
    }
    for (uint32_t k = 0; k < length(step.outputs()); ++k) {
      const uint32_t index = step.outputs()->Get(k);
      if (index >= tensors.size())
        return corrupt(error, "output out of range in entry point", name);
      const schema::Tensor& tensor = *tensors.Get(index);
      const TensorKind kind = tensor.kind();
      if (kind == TensorKind::Weight || kind == TensorKind::Input ||
          (kind == TensorKind::Output && index != entry.logits()))
        return corrupt(error, "a step writes a read-only tensor", tensor.name()->c_str());
      if (kind == TensorKind::State) {
        if (tensor.offset() < graph.plan()->shared_states() && !entry.starts())
          return corrupt(error, "shared, but not written at a start: tensor",
                         tensor.name()->c_str());
        continue;
      }
      if (alive[index].first != kNever)
        return corrupt(error, "written twice: tensor", tensor.name()->c_str());
      alive[index].first = alive[index].last = s;
    }
  }
  if (alive[entry.logits()].first == kNever)
    return corrupt(error, "nothing writes the logits of entry point", name);
  for (uint32_t k = 0; k < length(entry.kept()); ++k) {
    const uint32_t index = entry.kept()->Get(k);
    if (index >= tensors.size() || tensors.Get(index)->kind() != TensorKind::Activation ||
        alive[index].first == kNever)
      return corrupt(error, "a kept tensor is not a written activation in entry point", name);
    alive[index].last = kMaxSteps;
  }
  if (length(entry.kept_names()) != 0 && length(entry.kept_names()) != length(entry.kept()))
    return corrupt(error, "kept tensors and their names differ in entry point", name);
  const auto* end = std::remove_if(alive, alive + tensors.size(), [&](const Lifetime& l) {
    const TensorKind kind = tensors.Get(l.tensor)->kind();
    return l.first == kNever || (kind != TensorKind::Activation && kind != TensorKind::Input);
  });
  return check_disjoint(graph, alive, static_cast<size_t>(end - alive), error);
}

}  // namespace

Status check_plan(const schema::Model& graph, uint64_t data_bytes, Error* error) {
  if (graph.plan() == nullptr || graph.metadata() == nullptr || length(graph.entry_points()) == 0 ||
      length(graph.tensors()) == 0) {
    return fail(error, Status::kFileCorrupt, "the graph lacks a plan, metadata, tensors or steps");
  }
  if (graph.tensors()->size() > kMaxTensors || length(graph.symbols()) > kMaxSymbols ||
      length(graph.rings()) > kMaxRings || graph.entry_points()->size() > kMaxEntries ||
      graph.plan()->activations() > kMaxRegionBytes || graph.plan()->states() > kMaxRegionBytes ||
      graph.plan()->shared_states() > graph.plan()->states() ||
      graph.plan()->shared_states() % kTensorAlignment != 0) {
    return fail(error, Status::kFileUnsupported, "the graph is larger than this library supports");
  }
  for (uint32_t i = 0; i < length(graph.symbols()); ++i) {
    const schema::Symbol& symbol = *graph.symbols()->Get(i);
    if (symbol.max() == 0 || symbol.max() > kMaxRows)
      return corrupt(error, "impossible maximum of symbol", symbol.name()->c_str());
  }
  for (uint32_t i = 0; i < length(graph.rings()); ++i) {
    const schema::Ring& ring = *graph.rings()->Get(i);
    if (ring.capacity() == 0 || ring.capacity() > kMaxRows || ring.pinned() >= ring.capacity() ||
        ring.initial_rows() > ring.capacity())
      return corrupt(error, "impossible capacity of ring", ring.name()->c_str());
  }
  for (const schema::Tensor* tensor : *graph.tensors()) {
    OXB_TRY(check_tensor(graph, *tensor, data_bytes, error));
  }
  const std::unique_ptr<Lifetime[]> alive(new (std::nothrow) Lifetime[graph.tensors()->size()]);
  if (alive == nullptr) return fail(error, Status::kOutOfMemory, "no memory to check the plan");
  OXB_TRY(check_states(graph, alive.get(), error));
  for (const schema::EntryPoint* entry : *graph.entry_points()) {
    OXB_TRY(check_entry(graph, *entry, alive.get(), error));
  }
  return Status::kOk;
}

}  // namespace oxbow
