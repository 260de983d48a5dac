#pragma once

// The plan of one entry point: its inputs and outputs, the order of reads and writes, and that activations which
// are alive together share no byte.

#include <cstdint>
#include <memory>
#include <string_view>

#include "runtime/base/status.h"

namespace oxbow::schema {
struct EntryPoint;
struct Model;
struct Tensor;
}  // namespace oxbow::schema

namespace oxbow {

inline constexpr uint32_t kMaxSteps = 65536;

/// "tensor 'x': what"; the name has been checked.
Status refuse(Error* error, const char* kind, const char* name, const char* what);
Status refuse_tensor(Error* error, const schema::Tensor& tensor, const char* what);

/// Whether it can be shown and compared as a C string: not empty, UTF-8 without controls and marks of direction.
bool is_name(std::string_view name);

class EntryChecker {
 public:
  /// `order` holds the indices of all tensors by their offset, and outlives this object.
  EntryChecker(const schema::Model& graph, const uint32_t* order) : graph_(graph), order_(order) {}

  /// Once, before check(). `steps` is the most of any entry point.
  Status prepare(uint32_t steps, Error* error);
  Status check(const schema::EntryPoint& entry, Error* error);

 private:
  /// When a tensor's bytes are in use, in steps; `last` is inclusive.
  struct Lifetime {
    uint32_t first;
    uint32_t last;
  };

  Status check_ends(const schema::EntryPoint& entry, Error* error);
  Status check_inputs(const schema::EntryPoint& entry, Error* error);
  Status check_steps(const schema::EntryPoint& entry, Error* error);
  Status check_output(const schema::EntryPoint& entry, uint32_t step, uint32_t index, Error* error);
  Status check_results(const schema::EntryPoint& entry, Error* error);
  Status check_disjoint(uint32_t steps, Error* error);
  void occupy(size_t node, uint32_t begin, uint32_t end, const Lifetime& life, uint64_t bytes_end);
  uint64_t occupied(size_t node, uint32_t begin, uint32_t end, const Lifetime& life) const;

  const schema::Model& graph_;
  const uint32_t* order_;
  std::unique_ptr<Lifetime[]> alive_;
  /// A segment tree over the steps: how far the bytes reach that are in use at some step of a node, and at all.
  struct Node {
    uint64_t some;
    uint64_t all;
  };
  std::unique_ptr<Node[]> tree_;
};

}  // namespace oxbow
