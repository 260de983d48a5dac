#include "runtime/model/entry_check.h"

#include <algorithm>
#include <bit>
#include <new>
#include <span>

#include "runtime/op.h"
#include "runtime/text/shown.h"
#include "runtime/text/utf8.h"
#include "schema/model_generated.h"

namespace oxbow {
namespace {

using schema::TensorKind;

constexpr uint32_t kNever = UINT32_MAX;

template <typename Vector>
uint32_t length(const Vector* vector) {
  return vector == nullptr ? 0 : vector->size();
}

Status refuse_entry(Error* error, const schema::EntryPoint& entry, const char* what) {
  return refuse(error, "entry point", entry.name()->c_str(), what);
}

}  // namespace

Status refuse_tensor(Error* error, const schema::Tensor& tensor, const char* what) {
  return refuse(error, "tensor", tensor.name()->c_str(), what);
}

Status refuse(Error* error, const char* kind, const char* name, const char* what) {
  return fail(error, Status::kFileCorrupt, "%s '%.80s': %s", kind, name, what);
}

bool is_name(std::string_view name) {
  for (std::span<const char> rest(name); !rest.empty();) {
    const Utf8Character next = read_utf8(rest);
    if (next.kind != Utf8Character::Kind::kCharacter || is_obeyed(next.code_point)) return false;
    rest = rest.subspan(next.bytes);
  }
  return !name.empty();
}

Status EntryChecker::prepare(uint32_t steps, Error* error) {
  alive_.reset(new (std::nothrow) Lifetime[graph_.tensors()->size()]);
  // What is kept lives one step longer than there are.
  tree_.reset(new (std::nothrow) Node[2 * std::bit_ceil(size_t{steps} + 1)]);
  if (alive_ != nullptr && tree_ != nullptr) return Status::kOk;
  return fail(error, Status::kOutOfMemory, "no memory to check the plan");
}

Status EntryChecker::check(const schema::EntryPoint& entry, Error* error) {
  if (length(entry.steps()) == 0 || entry.steps()->size() > kMaxSteps)
    return refuse_entry(error, entry, "no steps, or too many");
  std::fill(alive_.get(), alive_.get() + graph_.tensors()->size(), Lifetime{kNever, 0});
  OXB_TRY(check_ends(entry, error));
  OXB_TRY(check_inputs(entry, error));
  OXB_TRY(check_steps(entry, error));
  OXB_TRY(check_results(entry, error));
  return check_disjoint(entry.steps()->size(), error);
}

Status EntryChecker::check_ends(const schema::EntryPoint& entry, Error* error) {
  const auto& tensors = *graph_.tensors();
  if (entry.tokens() >= tensors.size() || entry.logits() >= tensors.size() ||
      tensors.Get(entry.tokens())->kind() != TensorKind::Input ||
      tensors.Get(entry.logits())->kind() != TensorKind::Output ||
      tensors.Get(entry.tokens())->rows_symbol() == tensors.Get(entry.logits())->rows_symbol())
    return refuse_entry(error, entry, "wrong tokens or logits tensor");
  // A caller may want a row for every token.
  if (tensors.Get(entry.logits())->rows_symbol() >= 0 &&
      tensors.Get(entry.logits())->rows() < tensors.Get(entry.tokens())->rows())
    return refuse_entry(error, entry, "fewer rows of logits than of tokens");
  return Status::kOk;
}

Status EntryChecker::check_inputs(const schema::EntryPoint& entry, Error* error) {
  const auto& tensors = *graph_.tensors();
  const uint32_t count = 1 + length(entry.inputs());
  if (count > kMaxInputs || count == 0) return refuse_entry(error, entry, "too many inputs");
  const auto input = [&](uint32_t k) {
    return k == 0 ? entry.tokens() : entry.inputs()->Get(k - 1);
  };
  for (uint32_t k = 0; k < count; ++k) {
    if (input(k) >= tensors.size() || tensors.Get(input(k))->kind() != TensorKind::Input ||
        tensors.Get(input(k))->rows_symbol() == tensors.Get(entry.logits())->rows_symbol())
      return refuse_entry(error, entry, "wrong list of inputs");
    for (uint32_t j = 0; j < k; ++j) {
      if (tensors.Get(input(j))->name()->string_view() ==
          tensors.Get(input(k))->name()->string_view())
        return refuse_entry(error, entry, "two inputs of one name");
    }
    // There before the first step.
    alive_[input(k)].first = 0;
  }
  return Status::kOk;
}

Status EntryChecker::check_steps(const schema::EntryPoint& entry, Error* error) {
  const auto& tensors = *graph_.tensors();
  for (uint32_t s = 0; s < entry.steps()->size(); ++s) {
    const schema::Step& step = *entry.steps()->Get(s);
    for (uint32_t k = 0; k < length(step.inputs()); ++k) {
      const uint32_t index = step.inputs()->Get(k);
      if (index >= tensors.size())
        return refuse_entry(error, entry, "a step's input is out of range");
      const schema::Tensor& tensor = *tensors.Get(index);
      if (tensor.kind() == TensorKind::Output)
        return refuse_tensor(error, tensor, "an output that a step reads");
      if (tensor.kind() == TensorKind::Input && alive_[index].first == kNever)
        return refuse_tensor(error, tensor,
                             "a step reads it, but it is no input of the entry point");
      if (tensor.kind() == TensorKind::Activation && alive_[index].first == kNever)
        return refuse_tensor(error, tensor, "read before it is written");
      alive_[index].last = s;
    }
    for (uint32_t k = 0; k < length(step.outputs()); ++k) {
      OXB_TRY(check_output(entry, s, step.outputs()->Get(k), error));
    }
  }
  return Status::kOk;
}

Status EntryChecker::check_output(const schema::EntryPoint& entry, uint32_t step, uint32_t index,
                                  Error* error) {
  if (index >= graph_.tensors()->size())
    return refuse_entry(error, entry, "a step's output is out of range");
  const schema::Tensor& tensor = *graph_.tensors()->Get(index);
  const TensorKind kind = tensor.kind();
  if (kind == TensorKind::Weight || kind == TensorKind::Input ||
      (kind == TensorKind::Output && index != entry.logits()))
    return refuse_tensor(error, tensor, "read-only, but a step writes it");
  if (kind == TensorKind::State) {
    if (tensor.offset() < graph_.plan()->shared_states() && !entry.starts())
      return refuse_tensor(error, tensor,
                           "shared, but written by an entry point that does not start anew");
    return Status::kOk;
  }
  if (alive_[index].first != kNever) return refuse_tensor(error, tensor, "written twice");
  alive_[index] = {step, step};
  return Status::kOk;
}

Status EntryChecker::check_results(const schema::EntryPoint& entry, Error* error) {
  const auto& tensors = *graph_.tensors();
  if (alive_[entry.logits()].first == kNever)
    return refuse_entry(error, entry, "nothing writes its logits");
  const auto keep = [&](uint32_t index) {
    if (index >= tensors.size() || tensors.Get(index)->kind() != TensorKind::Activation ||
        alive_[index].first == kNever)
      return false;
    alive_[index].last = entry.steps()->size();
    return true;
  };
  for (uint32_t k = 0; k < length(entry.kept()); ++k) {
    if (!keep(entry.kept()->Get(k)))
      return refuse_entry(error, entry, "a kept tensor is not an activation that a step writes");
  }
  if (length(entry.kept_names()) != 0 && length(entry.kept_names()) != length(entry.kept()))
    return refuse_entry(error, entry, "its kept tensors and their names differ in number");
  const uint32_t count = length(entry.outputs());
  if (count > kMaxInputs) return refuse_entry(error, entry, "too many outputs");
  for (uint32_t k = 0; k < count; ++k) {
    const uint32_t index = entry.outputs()->Get(k);
    if (!keep(index) || tensors.Get(index)->type() != schema::DataType::F32)
      return refuse_entry(error, entry, "an output is not an F32 activation that a step writes");
    const std::string_view name = tensors.Get(index)->name()->string_view();
    bool same = name == tensors.Get(entry.logits())->name()->string_view();
    for (uint32_t j = 0; j < k; ++j) {
      same = same || name == tensors.Get(entry.outputs()->Get(j))->name()->string_view();
    }
    if (same) return refuse_entry(error, entry, "two outputs of one name");
  }
  return Status::kOk;
}

// Tensors come by their offset, so an earlier one shares bytes with this one if it reaches beyond its first.
Status EntryChecker::check_disjoint(uint32_t steps, Error* error) {
  const auto& tensors = *graph_.tensors();
  const auto leaves = static_cast<uint32_t>(std::bit_ceil(size_t{steps} + 1));
  std::fill(tree_.get(), tree_.get() + 2 * size_t{leaves}, Node{});
  for (uint32_t i = 0; i < tensors.size(); ++i) {
    const schema::Tensor& tensor = *tensors.Get(order_[i]);
    const Lifetime& life = alive_[order_[i]];
    if (life.first == kNever ||
        (tensor.kind() != TensorKind::Activation && tensor.kind() != TensorKind::Input))
      continue;
    if (occupied(1, 0, leaves, life) > tensor.offset())
      return refuse_tensor(error, tensor, "overlaps another in memory");
    occupy(1, 0, leaves, life, tensor.offset() + tensor.bytes());
  }
  return Status::kOk;
}

void EntryChecker::occupy(size_t node, uint32_t begin, uint32_t end, const Lifetime& life,
                          uint64_t bytes_end) {
  if (life.last < begin || life.first >= end) return;
  tree_[node].some = std::max(tree_[node].some, bytes_end);
  if (life.first <= begin && end - 1 <= life.last) {
    tree_[node].all = std::max(tree_[node].all, bytes_end);
    return;
  }
  const uint32_t middle = begin + (end - begin) / 2;
  occupy(2 * node, begin, middle, life, bytes_end);
  occupy(2 * node + 1, middle, end, life, bytes_end);
}

uint64_t EntryChecker::occupied(size_t node, uint32_t begin, uint32_t end,
                                const Lifetime& life) const {
  if (life.last < begin || life.first >= end) return 0;
  if (life.first <= begin && end - 1 <= life.last) return tree_[node].some;
  const uint32_t middle = begin + (end - begin) / 2;
  return std::max({tree_[node].all, occupied(2 * node, begin, middle, life),
                   occupied(2 * node + 1, middle, end, life)});
}

}  // namespace oxbow
