#include "converter/formats/torch_tensors.h"

#include <algorithm>
#include <set>

#include "host/errors.h"

namespace oxbow::convert {
namespace {

// Of dictionaries in dictionaries; checkpoints have two or three.
constexpr size_t kMaxDepth = 8;
// Of tensors and storages, in bytes.
constexpr size_t kMaxName = 4096;
// Dictionaries in a message.
constexpr size_t kListed = 5;
constexpr std::string_view kParallelPrefix = "module.";
constexpr std::string_view kParameter = "_rebuild_parameter";
// How the whole file is called where a key is expected.
constexpr const char* kItself = ".";

struct TypeRow {
  const char* storage;
  const char* dtype_name;
  Dtype dtype;
};
constexpr TypeRow kTypes[] = {
    {"torch.DoubleStorage", "torch.float64", Dtype::kF64},
    {"torch.FloatStorage", "torch.float32", Dtype::kF32},
    {"torch.HalfStorage", "torch.float16", Dtype::kF16},
    {"torch.BFloat16Storage", "torch.bfloat16", Dtype::kBF16},
    {"torch.LongStorage", "torch.int64", Dtype::kI64},
    {"torch.IntStorage", "torch.int32", Dtype::kI32},
    {"torch.ShortStorage", "torch.int16", Dtype::kI16},
    {"torch.CharStorage", "torch.int8", Dtype::kI8},
    {"torch.ByteStorage", "torch.uint8", Dtype::kU8},
    {"torch.BoolStorage", "torch.bool", Dtype::kBool},
};

bool is_tensor(const PickleNode& node) { return node.kind == PickleKind::kCall; }

/// Arguments of a call or the parts of an id, with the checks that make them safe to use.
class Arguments {
 public:
  Arguments(const std::string& where, const Pickle& pickle, const PickleNode& tuple)
      : where_(where), pickle_(pickle), tuple_(tuple) {
    if (tuple.kind != PickleKind::kTuple) fail("is not made of a tuple");
  }
  size_t count() const { return tuple_.items.size(); }
  const PickleNode& operator[](size_t i) const {
    if (i >= count()) fail("is made of too few values");
    return pickle_[tuple_.items[i]];
  }
  std::string_view text(size_t i) const {
    if ((*this)[i].kind != PickleKind::kText) fail("has no text where one belongs");
    return (*this)[i].text;
  }
  uint64_t size(size_t i) const {
    const PickleNode& node = (*this)[i];
    if (node.kind != PickleKind::kInteger || node.integer < 0) {
      fail(node.kind == PickleKind::kInteger
               ? "has the size " + std::to_string(node.integer) + ", expected none below 0"
               : "has something else where a size belongs");
    }
    return static_cast<uint64_t>(node.integer);
  }
  std::vector<uint64_t> sizes(size_t i) const {
    const Arguments list(where_, pickle_, (*this)[i]);
    if (list.count() > kMaxDimensions) {
      fail("has " + std::to_string(list.count()) + " sizes or strides, expected at most " +
           std::to_string(kMaxDimensions));
    }
    std::vector<uint64_t> out;
    for (size_t k = 0; k < list.count(); ++k) out.push_back(list.size(k));
    return out;
  }
  [[noreturn]] void fail(const std::string& what) const { throw InputError(where_ + " " + what); }

 private:
  const std::string& where_;
  const Pickle& pickle_;
  const PickleNode& tuple_;
};

/// What a call that rebuilds a tensor says about it.
struct TensorCall {
  TorchStorage storage;
  Dtype dtype;
  uint64_t offset;
  std::vector<uint64_t> shape, strides;
};

TensorCall read_call(const std::string& where, const Pickle& pickle, const PickleNode& node) {
  const PickleNode* call = &node;
  // A parameter is a tensor and what training needs to know of it.
  if (call->text == kParameter) call = &Arguments(where, pickle, pickle[call->target])[0];
  if (!is_tensor(*call) || call->text == kParameter) {
    throw InputError(where + " is a parameter of what is no tensor");
  }
  // Storage, offset, sizes, strides, requires_grad, hooks, in version 3 the type, and at last what
  // else is to be done with the values, which no state dictionary has.
  const Arguments arguments(where, pickle, pickle[call->target]);
  const TorchStorage storage = read_storage(where, pickle, arguments[0]);
  std::optional<Dtype> dtype = storage.dtype;
  if (call->text == "_rebuild_tensor_v3") {
    const auto* row = std::find_if(std::begin(kTypes), std::end(kTypes), [&](const TypeRow& r) {
      return arguments[6].kind == PickleKind::kGlobal && arguments[6].text == r.dtype_name;
    });
    if (row == std::end(kTypes)) arguments.fail("has no dtype");
    dtype = row->dtype;
  }
  if (!dtype) arguments.fail("has bytes of no type");
  const size_t last = call->text == "_rebuild_tensor_v3" ? 7 : 6;
  if (arguments.count() > last && !arguments[last].items.empty()) {
    arguments.fail("is a conjugate or negative view, expected the values themselves");
  }
  TensorCall out = {storage, *dtype, arguments.size(1), arguments.sizes(2), arguments.sizes(3)};
  if (out.shape.size() != out.strides.size()) {
    arguments.fail("has " + std::to_string(out.shape.size()) + " sizes and " +
                   std::to_string(out.strides.size()) + " strides");
  }
  return out;
}

std::string tensor_text(const std::string& path, std::string_view name) {
  return path + ": tensor " + printable(std::string(name.substr(0, kMaxName)));
}

/// A dictionary and the way to it.
struct Place {
  PickleRef dict;
  size_t parent;
  std::string_view key;
  size_t depth;
};

std::string path_text(const std::vector<Place>& places, size_t at) {
  std::string text;
  for (; at != 0; at = places[at].parent) {
    const std::string key = printable(std::string(places[at].key.substr(0, kMaxName)), 80);
    text = text.empty() ? key : key + "." + text;
  }
  return text.empty() ? kItself : text;
}

/// Whether weights are among the values; tensors of other types are counters and random states.
bool holds_weights(const std::string& path, const Pickle& pickle, PickleRef ref) {
  const PickleNode& dict = pickle[ref];
  for (size_t i = 0; i < dict.items.size(); i += 2) {
    const PickleNode &key = pickle[dict.items[i]], &value = pickle[dict.items[i + 1]];
    if (key.kind != PickleKind::kText || !is_tensor(value)) continue;
    if (is_float(read_call(tensor_text(path, key.text), pickle, value).dtype)) return true;
  }
  return false;
}

/// The dictionary under `key`, whose dots lead into dictionaries.
PickleRef follow(const std::string& path, const Pickle& pickle, const std::string& key) {
  PickleRef at = pickle.root;
  if (key.empty() || key == kItself) return at;
  for (size_t first = 0; first <= key.size();) {
    const size_t dot = std::min(key.find('.', first), key.size());
    const PickleNode* inner = pickle.find(pickle[at], key.substr(first, dot - first));
    if (inner == nullptr || inner->kind != PickleKind::kDict) {
      throw InputError(path + " has no dictionary " + printable(key) + ", which --key asks for");
    }
    at = static_cast<PickleRef>(inner - pickle.nodes.data());
    first = dot + 1;
  }
  return at;
}

/// The only dictionary in `root`, itself included, that holds weights.
PickleRef only_candidate(const std::string& path, const Pickle& pickle, PickleRef root,
                         std::string* name) {
  std::vector<Place> places = {{root, 0, "", 0}};
  std::set<PickleRef> seen = {root};
  std::vector<size_t> candidates;
  for (size_t at = 0; at < places.size(); ++at) {
    const Place place = places[at];
    const PickleNode& dict = pickle[place.dict];
    if (holds_weights(path, pickle, place.dict)) candidates.push_back(at);
    for (size_t i = 0; i < dict.items.size() && place.depth < kMaxDepth; i += 2) {
      const PickleNode& key = pickle[dict.items[i]];
      const PickleRef value = dict.items[i + 1];
      if (key.kind == PickleKind::kText && pickle[value].kind == PickleKind::kDict &&
          seen.insert(value).second) {
        places.push_back({value, at, key.text, place.depth + 1});
      }
    }
  }
  if (candidates.empty()) {
    throw InputError(path + " has no dictionary that holds floating-point tensors");
  }
  if (candidates.size() > 1) {
    std::string list;
    for (size_t i = 0; i < std::min(candidates.size(), kListed); ++i) {
      list += (i > 0 ? ", " : "") + path_text(places, candidates[i]);
    }
    if (candidates.size() > kListed) list += " and others";
    throw InputError(path + " has tensors in several dictionaries: " + list +
                     "; choose one with --key");
  }
  *name = path_text(places, candidates[0]);
  return places[candidates[0]].dict;
}

/// Training in parallel wraps the model in one more module, whose name is of no use here.
void strip_parallel_prefix(TorchContents& contents) {
  const bool all = std::all_of(contents.tensors.begin(), contents.tensors.end(),
                               [](const auto& t) { return t.first.starts_with(kParallelPrefix); });
  if (!all) return;
  TensorMap renamed;
  for (auto& [name, tensor] : contents.tensors) {
    renamed.emplace(name.substr(kParallelPrefix.size()), std::move(tensor));
  }
  contents.tensors = std::move(renamed);
  contents.notes.push_back("left out the prefix module. of all tensor names");
}

}  // namespace

TorchStorage read_storage(const std::string& where, const Pickle& pickle, const PickleNode& node) {
  if (node.kind != PickleKind::kPersistent) throw InputError(where + " has no storage");
  // "storage", type, key, device, elements and, in the older layout, which part of it.
  const Arguments id(where, pickle, pickle[node.target]);
  if (id.text(0) != "storage" || id[1].kind != PickleKind::kGlobal) id.fail("has no storage");
  TorchStorage storage;
  const auto* row = std::find_if(std::begin(kTypes), std::end(kTypes),
                                 [&](const TypeRow& r) { return id[1].text == r.storage; });
  if (row != std::end(kTypes)) {
    storage.dtype = row->dtype;
  } else if (id[1].text != "torch.UntypedStorage") {
    id.fail("has a storage of type " + std::string(id[1].text));
  }
  storage.key = id.text(2);
  if (storage.key.size() > kMaxName) id.fail("has a storage with too long a name");
  storage.elements = id.size(4);
  if (id.count() > 5 && id[5].kind != PickleKind::kNone) {
    const Arguments view(where, pickle, id[5]);
    storage.is_view = true;
    storage.view_offset = view.size(1);
    storage.view_elements = view.size(2);
  }
  return storage;
}

TorchContents collect_tensors(const std::string& path, const Pickle& pickle, const std::string& key,
                              const FindStorage& find_storage) {
  if (pickle[pickle.root].kind != PickleKind::kDict) {
    throw InputError(path + " does not hold a dictionary; save model.state_dict()");
  }
  TorchContents contents;
  PickleRef chosen = follow(path, pickle, key);
  if (key.empty() || !holds_weights(path, pickle, chosen)) {
    std::string name;
    chosen = only_candidate(path, pickle, chosen, &name);
    if (name != kItself) contents.notes.push_back("took the tensors of the dictionary " + name);
  }

  const PickleNode& dict = pickle[chosen];
  size_t others = 0;
  for (size_t i = 0; i < dict.items.size(); i += 2) {
    const PickleNode &name = pickle[dict.items[i]], &value = pickle[dict.items[i + 1]];
    if (name.kind != PickleKind::kText || !is_tensor(value)) {
      ++others;
      continue;
    }
    const std::string where = tensor_text(path, name.text);
    if (name.text.size() > kMaxName) throw InputError(where + " has too long a name");
    TensorCall call = read_call(where, pickle, value);
    const StoredTensor tensor =
        view_of(where, call.dtype, std::move(call.shape), std::move(call.strides), call.offset,
                find_storage(where, call.storage));
    if (!contents.tensors.emplace(name.text, tensor).second) {
      throw InputError(where + " is in the dictionary twice");
    }
  }
  if (others > 0) {
    contents.notes.push_back("left out " + std::to_string(others) +
                             " entries of that dictionary which are no tensors");
  }
  strip_parallel_prefix(contents);
  return contents;
}

}  // namespace oxbow::convert
