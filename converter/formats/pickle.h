#pragma once

// Reads what torch.save pickles, without executing anything. A pickle is a program for a stack
// machine that can call any function; here it can make numbers, texts, lists, tuples and
// dictionaries, and name the few globals that tensors are made of. A call of those is written down,
// not made. Everything else is refused by name.
//
// Values are nodes in one list and refer to each other by index, so a value that is used a thousand
// times is stored once, and one that contains itself does no harm. Memory is bounded: nodes, and the
// references between them, are at most as many as the bytes of the pickle, and limited besides.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace oxbow::convert {

using PickleRef = uint32_t;

enum class PickleKind : uint8_t {
  kNone,
  kBool,
  kInteger,
  kHugeInteger,  // beyond 64 bits; nobody needs its value
  kReal,
  kText,
  kList,
  kTuple,
  kDict,
  kGlobal,      // text: "torch.FloatStorage"
  kCall,        // text: the global; target: the tuple of arguments
  kPersistent,  // target: the id of something stored outside the pickle
};

struct PickleNode {
  PickleKind kind = PickleKind::kNone;
  /// Attributes are entries: an argparse.Namespace.
  bool is_namespace = false;
  PickleRef target = 0;
  int64_t integer = 0;
  double real = 0;
  /// In the bytes of the pickle, or in a constant.
  std::string_view text;
  /// Of a list or tuple the elements; of a dictionary keys and values in turn.
  std::vector<PickleRef> items;
};

struct Pickle {
  std::vector<PickleNode> nodes;
  PickleRef root = 0;
  /// Bytes up to its end.
  size_t size = 0;

  const PickleNode& operator[](PickleRef ref) const { return nodes[ref]; }
  /// The value of the last key of this name; null when `dict` is no dictionary or has none.
  const PickleNode* find(const PickleNode& dict, std::string_view key) const;
};

/// Reads the pickle at the start of `bytes`, which must outlive the result; `where` is for messages.
/// Throws InputError.
Pickle read_pickle(const std::string& where, std::span<const std::byte> bytes);

}  // namespace oxbow::convert
