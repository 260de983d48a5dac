#include "converter/formats/pickle.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <unordered_map>

#include "host/errors.h"

namespace oxbow::convert {
namespace {

constexpr uint8_t kHighestProtocol = 5;
// Far more than the largest models need; of what is beyond, only an attack is made.
constexpr size_t kMaxNodes = size_t{1} << 22;
constexpr size_t kMaxReferences = size_t{1} << 24;
// Of the name of a class or function.
constexpr size_t kMaxName = 1024;

enum class GlobalUse : uint8_t { kValue, kCall, kOrderedDict, kNamespace };

struct GlobalRow {
  const char* module;
  const char* name;
  /// Both, as messages and readers call it.
  const char* text;
  GlobalUse use;
};
#define OXB_STORAGE(type)                                                    \
  {"torch", type "Storage", "torch." type "Storage", GlobalUse::kValue}, {   \
    "torch.cuda", type "Storage", "torch." type "Storage", GlobalUse::kValue \
  }
#define OXB_DTYPE(type) \
  { "torch", type, "torch." type, GlobalUse::kValue }
constexpr GlobalRow kGlobals[] = {
    {"collections", "OrderedDict", "collections.OrderedDict", GlobalUse::kOrderedDict},
    {"argparse", "Namespace", "argparse.Namespace", GlobalUse::kNamespace},
    {"torch._utils", "_rebuild_tensor", "_rebuild_tensor", GlobalUse::kCall},
    {"torch._utils", "_rebuild_tensor_v2", "_rebuild_tensor_v2", GlobalUse::kCall},
    {"torch._utils", "_rebuild_tensor_v3", "_rebuild_tensor_v3", GlobalUse::kCall},
    {"torch._utils", "_rebuild_parameter", "_rebuild_parameter", GlobalUse::kCall},
    {"torch._utils", "_rebuild_parameter_with_state", "_rebuild_parameter", GlobalUse::kCall},
    OXB_STORAGE("Double"),
    OXB_STORAGE("Float"),
    OXB_STORAGE("Half"),
    OXB_STORAGE("BFloat16"),
    OXB_STORAGE("Long"),
    OXB_STORAGE("Int"),
    OXB_STORAGE("Short"),
    OXB_STORAGE("Char"),
    OXB_STORAGE("Byte"),
    OXB_STORAGE("Bool"),
    {"torch", "UntypedStorage", "torch.UntypedStorage", GlobalUse::kValue},
    {"torch.storage", "UntypedStorage", "torch.UntypedStorage", GlobalUse::kValue},
    {"torch.storage", "_UntypedStorage", "torch.UntypedStorage", GlobalUse::kValue},
    OXB_DTYPE("float64"),
    OXB_DTYPE("float32"),
    OXB_DTYPE("float16"),
    OXB_DTYPE("bfloat16"),
    OXB_DTYPE("int64"),
    OXB_DTYPE("int32"),
    OXB_DTYPE("int16"),
    OXB_DTYPE("int8"),
    OXB_DTYPE("uint8"),
    OXB_DTYPE("bool"),
};
#undef OXB_STORAGE
#undef OXB_DTYPE

class Unpickler {
 public:
  Unpickler(const std::string& where, std::span<const std::byte> bytes)
      : where_(where), bytes_(bytes) {}

  Pickle run() {
    for (;;) {
      opcode_place_ = place_;
      const auto opcode = static_cast<char>(take<uint8_t>());
      if (opcode == '.') break;
      step(opcode);
    }
    if (!marks_.empty()) fail("ends inside a list of arguments");
    out_.root = pop();
    out_.size = place_;
    return std::move(out_);
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw InputError(where_ + ", byte " + std::to_string(opcode_place_) + ": " + what);
  }

  std::string_view take_text(uint64_t size) {
    if (size > bytes_.size() - place_) {
      fail("needs " + std::to_string(size) + " more bytes, there are " +
           std::to_string(bytes_.size() - place_) + "; is the file cut off?");
    }
    const char* begin = reinterpret_cast<const char*>(bytes_.data()) + place_;
    place_ += size;
    return {begin, size};
  }
  template <typename T>
  T take() {
    T value;
    std::memcpy(&value, take_text(sizeof(T)).data(), sizeof(T));
    return value;
  }
  /// A name up to the end of its line, which is left out.
  std::string_view take_line() {
    const std::string_view rest(reinterpret_cast<const char*>(bytes_.data()) + place_,
                                std::min(bytes_.size() - place_, kMaxName + 1));
    const size_t size = rest.find('\n');
    if (size == std::string_view::npos) fail("has a name without end");
    return take_text(size + 1).substr(0, size);
  }

  PickleNode& add(PickleKind kind) {
    if (out_.nodes.size() >= kMaxNodes) {
      fail("makes more than " + std::to_string(kMaxNodes) + " values");
    }
    push(static_cast<PickleRef>(out_.nodes.size()));
    out_.nodes.emplace_back().kind = kind;
    return out_.nodes.back();
  }
  void add_integer(int64_t value) { add(PickleKind::kInteger).integer = value; }
  void add_text(uint64_t size) {
    const std::string_view text = take_text(size);
    add(PickleKind::kText).text = text;
  }
  void add_long(uint64_t size) {
    const std::string_view digits = take_text(size);
    if (size > 8) {
      add(PickleKind::kHugeInteger);
      return;
    }
    uint64_t value = size > 0 && (digits.back() & 0x80) != 0 ? UINT64_MAX : 0;
    std::memcpy(&value, digits.data(), size);
    add_integer(static_cast<int64_t>(value));
  }

  void count_references(size_t count) {
    references_ += count;
    if (references_ > kMaxReferences) {
      fail("makes more than " + std::to_string(kMaxReferences) + " references");
    }
  }
  void push(PickleRef ref) {
    count_references(1);
    stack_.push_back(ref);
  }
  /// Values below the last mark are out of reach until it is taken.
  size_t floor() const { return marks_.empty() ? 0 : marks_.back(); }
  PickleRef pop() {
    const PickleRef ref = top();
    stack_.pop_back();
    return ref;
  }
  PickleRef top() const {
    if (stack_.size() <= floor()) fail("takes a value from an empty stack");
    return stack_.back();
  }
  std::vector<PickleRef> pop_mark() {
    if (marks_.empty()) fail("takes arguments without a beginning");
    std::vector<PickleRef> items(stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back()),
                                 stack_.end());
    stack_.resize(marks_.back());
    marks_.pop_back();
    return items;
  }
  std::vector<PickleRef> pop_some(size_t count) {
    std::vector<PickleRef> items(count);
    for (size_t i = count; i-- > 0;) items[i] = pop();
    return items;
  }

  /// Adds to a list or dictionary what was on the stack above it.
  void extend(PickleKind kind, const std::vector<PickleRef>& items) {
    PickleNode& node = out_.nodes[top()];
    if (node.kind != kind) fail("adds elements to what is not a list or dictionary");
    if (kind == PickleKind::kDict && items.size() % 2 != 0) fail("has a key without a value");
    count_references(items.size());
    node.items.insert(node.items.end(), items.begin(), items.end());
  }

  void put(uint64_t index) {
    if (memo_.size() >= kMaxNodes) fail("remembers too many values");
    memo_[index] = top();
  }
  void get(uint64_t index) {
    const auto found = memo_.find(index);
    if (found == memo_.end()) fail("asks for value " + std::to_string(index) + ", never set");
    push(found->second);
  }

  void add_global(std::string_view module, std::string_view name) {
    for (const GlobalRow& row : kGlobals) {
      if (module != row.module || name != row.name) continue;
      PickleNode& node = add(PickleKind::kGlobal);
      node.text = row.text;
      node.integer = &row - kGlobals;
      return;
    }
    fail("names " +
         printable(std::string(module.substr(0, kMaxName)) + "." +
                   std::string(name.substr(0, kMaxName))) +
         ", expected only tensors, numbers, texts, lists and dictionaries; save the state "
         "dictionary alone, e.g. torch.save(model.state_dict(), FILE)");
  }

  /// What calling `callee` with the tuple `arguments` stands for.
  void call(PickleRef callee, PickleRef arguments) {
    const PickleNode& global = out_.nodes[callee];
    if (global.kind != PickleKind::kGlobal) fail("calls what is not a function");
    if (out_.nodes[arguments].kind != PickleKind::kTuple) fail("calls without a tuple");
    const std::string_view name = global.text;
    switch (kGlobals[global.integer].use) {
      case GlobalUse::kValue:
        fail("calls " + std::string(name) + ", which is only to be named");
      case GlobalUse::kCall: {
        PickleNode& node = add(PickleKind::kCall);
        node.text = name;
        node.target = arguments;
        return;
      }
      case GlobalUse::kOrderedDict:
        make_ordered(arguments);
        return;
      case GlobalUse::kNamespace:
        if (!out_.nodes[arguments].items.empty()) fail("makes a Namespace of arguments");
        add(PickleKind::kDict).is_namespace = true;
        return;
    }
  }

  /// OrderedDict(), or OrderedDict([[key, value], ...]) as Python 2 wrote it.
  void make_ordered(PickleRef arguments) {
    const std::vector<PickleRef> list = out_.nodes[arguments].items;
    std::vector<PickleRef> items;
    if (list.size() > 1) fail("makes an OrderedDict of more than one list");
    if (list.size() == 1) {
      const PickleNode& pairs = out_.nodes[list[0]];
      if (pairs.kind != PickleKind::kList) fail("makes an OrderedDict of what is not a list");
      count_references(2 * pairs.items.size());
      for (const PickleRef ref : pairs.items) {
        const PickleNode& pair = out_.nodes[ref];
        if (pair.items.size() != 2 || pair.kind == PickleKind::kDict) {
          fail("makes an OrderedDict of what are not pairs");
        }
        items.insert(items.end(), pair.items.begin(), pair.items.end());
      }
    }
    add(PickleKind::kDict).items = std::move(items);
  }

  /// Sets attributes. Those of a Namespace are its contents; an OrderedDict may have some, which
  /// change nothing.
  void build() {
    const PickleRef state = pop();
    PickleNode& object = out_.nodes[top()];
    if (object.kind != PickleKind::kDict || out_.nodes[state].kind != PickleKind::kDict) {
      fail("sets attributes of what has none");
    }
    if (!object.is_namespace) return;
    if (!object.items.empty() || state == top()) fail("sets the attributes of a Namespace twice");
    extend(PickleKind::kDict, std::vector<PickleRef>(out_.nodes[state].items));
  }

  void step(char opcode);

  const std::string& where_;
  std::span<const std::byte> bytes_;
  size_t place_ = 0;
  size_t opcode_place_ = 0;
  size_t references_ = 0;
  std::vector<PickleRef> stack_;
  std::vector<size_t> marks_;
  std::unordered_map<uint64_t, PickleRef> memo_;
  Pickle out_;
};

void Unpickler::step(char opcode) {
  switch (opcode) {
    case '\x80':  // PROTO
      if (const uint8_t version = take<uint8_t>(); version > kHighestProtocol) {
        fail("is of protocol " + std::to_string(version) + ", expected at most 5");
      }
      return;
    case '\x95':  // FRAME: only says how much to read at once
      take<uint64_t>();
      return;

    // The stack.
    case '(':
      count_references(1);
      marks_.push_back(stack_.size());
      return;
    case '0':  // POP takes a mark as well when there is nothing above it
      if (!marks_.empty() && stack_.size() == marks_.back()) {
        marks_.pop_back();
      } else {
        pop();
      }
      return;
    case '1':  // POP_MARK
      pop_mark();
      return;
    case '2':  // DUP
      return push(top());
    case 'h':  // BINGET
      return get(take<uint8_t>());
    case 'j':  // LONG_BINGET
      return get(take<uint32_t>());
    case 'q':  // BINPUT
      return put(take<uint8_t>());
    case 'r':  // LONG_BINPUT
      return put(take<uint32_t>());
    case '\x94':  // MEMOIZE
      return put(memo_.size());

    // Plain values.
    case 'N':
      add(PickleKind::kNone);
      return;
    case '\x88':  // NEWTRUE
      add(PickleKind::kBool).integer = 1;
      return;
    case '\x89':  // NEWFALSE
      add(PickleKind::kBool);
      return;
    case 'J':  // BININT
      return add_integer(take<int32_t>());
    case 'K':  // BININT1
      return add_integer(take<uint8_t>());
    case 'M':  // BININT2
      return add_integer(take<uint16_t>());
    case '\x8a':  // LONG1
      return add_long(take<uint8_t>());
    case '\x8b': {  // LONG4
      const int32_t size = take<int32_t>();
      if (size < 0) fail("has a number of negative length");
      return add_long(static_cast<uint64_t>(size));
    }
    case 'G': {  // BINFLOAT, the one value with its highest byte first
      const double value = std::bit_cast<double>(__builtin_bswap64(take<uint64_t>()));
      add(PickleKind::kReal).real = value;
      return;
    }
    case 'U':     // SHORT_BINSTRING
    case 'C':     // SHORT_BINBYTES
    case '\x8c':  // SHORT_BINUNICODE
      return add_text(take<uint8_t>());
    case 'T':  // BINSTRING
    case 'B':  // BINBYTES
    case 'X':  // BINUNICODE
      return add_text(take<uint32_t>());
    case '\x8d':  // BINUNICODE8
    case '\x8e':  // BINBYTES8
      return add_text(take<uint64_t>());

    // Containers.
    case ']':
      add(PickleKind::kList);
      return;
    case '}':
      add(PickleKind::kDict);
      return;
    case ')':
      add(PickleKind::kTuple);
      return;
    case 'l':
    case 't': {
      std::vector<PickleRef> items = pop_mark();
      add(opcode == 'l' ? PickleKind::kList : PickleKind::kTuple).items = std::move(items);
      return;
    }
    case 'd': {
      std::vector<PickleRef> items = pop_mark();
      if (items.size() % 2 != 0) fail("has a key without a value");
      add(PickleKind::kDict).items = std::move(items);
      return;
    }
    case '\x85':    // TUPLE1
    case '\x86':    // TUPLE2
    case '\x87': {  // TUPLE3
      std::vector<PickleRef> items = pop_some(static_cast<size_t>(opcode - '\x85') + 1);
      add(PickleKind::kTuple).items = std::move(items);
      return;
    }
    case 'a':  // APPEND
      return extend(PickleKind::kList, pop_some(1));
    case 'e':  // APPENDS
      return extend(PickleKind::kList, pop_mark());
    case 's':  // SETITEM
      return extend(PickleKind::kDict, pop_some(2));
    case 'u':  // SETITEMS
      return extend(PickleKind::kDict, pop_mark());

    // Objects.
    case 'c': {  // GLOBAL
      const std::string_view module = take_line();
      return add_global(module, take_line());
    }
    case '\x93': {  // STACK_GLOBAL
      const PickleNode &name = out_.nodes[pop()], &module = out_.nodes[pop()];
      if (name.kind != PickleKind::kText || module.kind != PickleKind::kText) {
        fail("names a global by what is not a text");
      }
      return add_global(std::string_view(module.text), std::string_view(name.text));
    }
    case 'i': {  // INST: never of what torch writes, so only its name is of interest
      const std::string_view module = take_line(), name = take_line();
      fail("makes an object of " + printable(std::string(module) + "." + std::string(name)) +
           ", which is not allowed");
    }
    case 'R':     // REDUCE
    case '\x81':  // NEWOBJ
    {
      const PickleRef arguments = pop();
      return call(pop(), arguments);
    }
    case 'b':
      return build();
    case 'Q': {  // BINPERSID
      const PickleRef id = pop();
      add(PickleKind::kPersistent).target = id;
      return;
    }
    default: {
      constexpr char kDigits[] = "0123456789abcdef";
      const auto byte = static_cast<uint8_t>(opcode);
      fail(std::string("has the pickle opcode 0x") + kDigits[byte >> 4] + kDigits[byte & 15] +
           ", which is not allowed");
    }
  }
}

}  // namespace

const PickleNode* Pickle::find(const PickleNode& dict, std::string_view key) const {
  if (dict.kind != PickleKind::kDict) return nullptr;
  for (size_t i = dict.items.size(); i >= 2; i -= 2) {
    const PickleNode& name = nodes[dict.items[i - 2]];
    if (name.kind == PickleKind::kText && name.text == key) return &nodes[dict.items[i - 1]];
  }
  return nullptr;
}

Pickle read_pickle(const std::string& where, std::span<const std::byte> bytes) {
  return Unpickler(where, bytes).run();
}

}  // namespace oxbow::convert
