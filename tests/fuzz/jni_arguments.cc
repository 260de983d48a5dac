// Native methods with any arguments: what a program in Java can make them be, and what a mistake of ours could. Handles
// of other objects, of none and of closed ones, arrays of any length, parts that they do not have. An exception of Java
// or a result, never a crash, and nothing is left. An input is a list of choices: which methods are called, with what.

#include <bit>
#include <cstdlib>
#include <limits>

#include "runtime/api/oxbow.h"
#include "tests/fuzz/base_models.h"
#include "tests/fuzz/choices.h"
#include "tests/fuzz/fake_java.h"

extern "C" jint JNI_OnLoad(JavaVM* machine, void*);
// What is too large is no memory, not the end.
extern "C" [[gnu::visibility("default")]] const char* __asan_default_options() {
  return "allocator_may_return_null=1:max_allocation_size_mb=1024";
}

namespace oxbow::testing {
namespace {

/// Model files of several kinds, with letters for text where they have a vocabulary for it.
class Files {
 public:
  static constexpr size_t kCount = 16;

  std::span<const uint8_t> get(size_t index) {
    if (files_[index].empty()) {
      BaseGraph& base = models_.get(index * models_.size() / kCount);
      schema::TokenizerT letters;
      letters.kind = schema::TokenizerKind::Char;
      for (uint32_t letter = 'a'; letter <= 'w'; ++letter) letters.code_points.push_back(letter);
      base.model.tokenizer = std::make_unique<schema::TokenizerT>(letters);
      files_[index] = base.frame(BaseGraph::pack(base.model));
      if (!opens(files_[index])) files_[index] = base.frame(base.graph);
    }
    return files_[index];
  }

 private:
  static bool opens(std::span<const uint8_t> file) {
    oxb_model* model = nullptr;
    const bool good =
        oxb_model_open_memory(file.data(), file.size(), nullptr, &model, nullptr) == OXB_OK;
    oxb_model_close(model);
    return good;
  }

  BaseModels models_;
  std::span<const uint8_t> files_[kCount];
};

class JavaProgram {
 public:
  explicit JavaProgram(Choices& choices) : choices_(choices) {}

  void run(std::span<const uint8_t> file) {
    java_.restart();
    Thing buffer;
    buffer.bytes = const_cast<uint8_t*>(file.data());
    buffer.size = file.size();
    buffer.direct = true;
    handles_ = {
        java_.call(java_.native("openMemory"),
                   {{FakeJava::address(buffer), 0, static_cast<int64_t>(file.size()), 0, 0}, {}})};
    if (handles_[0] == 0) broken("a model of the tests opens");
    if (!choices_.one_in(8)) add_session();
    for (size_t calls = 2 + choices_.below(12); calls > 0; --calls) one_call();
    for (size_t i = handles_.size(); i > 0; --i) {
      java_.call(java_.native("release"), {{handles_[i - 1]}, {}});
      java_.clear();
    }
    if (static_cast<int32_t>(java_.call(java_.native("livingObjects"), {})) != 0) {
      broken("nothing is left");
    }
  }

 private:
  /// One that most models let be, so that most calls have something to do.
  void add_session() {
    for (const FakeJava::Native& method : java_.natives()) {
      if (method.name != "create" || !method.signature.starts_with("(JLdev/oxbow/SessionOptions;"))
        continue;
      const int64_t no_cache = FakeJava::address(java_.new_array(0, 1));
      // Those of SessionOptions.java: one thread, else zeros.
      Thing& options = java_.new_array(8, sizeof(int64_t));
      options.bytes[0] = 1;
      const int64_t made =
          java_.call(method, {{handles_[0], 0, FakeJava::address(options), no_cache, 0, 0, 0}, {}});
      if (made != 0 && !java_.pending()) handles_.push_back(made);
      java_.clear();
      return;
    }
    broken("sessions can be created");
  }

  int64_t any_long() {
    if (choices_.below(4) != 0) return handles_[choices_.below(handles_.size())];
    if (choices_.one_in(2)) return any_int();
    return static_cast<int64_t>(choices_.word());
  }
  int64_t any_int() {
    switch (choices_.below(8)) {
      case 0:
        return -1;
      case 1:
        return std::numeric_limits<int32_t>::max();
      case 2:
        return std::numeric_limits<int32_t>::min();
      case 3:
        return static_cast<int64_t>(choices_.below(70000));
      default:
        return static_cast<int64_t>(choices_.below(6));
    }
  }

  /// Small numbers, letters, and a few that are neither.
  Thing& any_array(char type) {
    const size_t element = type == 'B' || type == 'Z' ? 1 : type == 'J' || type == 'D' ? 8 : 4;
    const size_t count = choices_.below(choices_.one_in(4) ? 3 : 64);
    Thing& made = java_.new_array(count, element);
    for (size_t i = 0; i < made.size; i += element) {
      made.bytes[i] = static_cast<uint8_t>(
          type == 'B' && choices_.below(4) != 0 ? 'a' + choices_.below(26) : choices_.below(8));
      if (choices_.one_in(32)) made.bytes[i + element - 1] = 0xff;
    }
    return made;
  }
  Thing& any_buffer() {
    Thing& made =
        choices_.one_in(3) ? java_.new_array(4096 + choices_.below(100000), 1) : any_array('B');
    made.direct = !choices_.one_in(8);
    return made;
  }
  Thing& any_list(bool of_arrays) {
    std::vector<jobject> elements;
    for (size_t count = 1 + choices_.below(4); count > 0; --count) {
      elements.push_back(choices_.one_in(32)
                             ? nullptr
                             : FakeJava::reference(of_arrays ? any_array('B') : any_buffer()));
    }
    return java_.new_list(std::move(elements));
  }

  /// Arguments of the types that a signature names.
  FakeJava::Arguments any_arguments(const FakeJava::Native& method) {
    FakeJava::Arguments out;
    const std::string& text = method.signature;
    for (size_t i = 1; text[i] != ')'; ++i) {
      switch (text[i]) {
        case 'J':
          out.integers.push_back(any_long());
          break;
        case 'I':
          out.integers.push_back(any_int());
          break;
        case 'Z':
          out.integers.push_back(static_cast<int64_t>(choices_.below(2)));
          break;
        case 'F':
          out.floats.push_back(
              std::bit_cast<double>(uint64_t{std::bit_cast<uint32_t>(choices_.number())}));
          break;
        case 'D':
          out.floats.push_back(static_cast<double>(choices_.number()));
          break;
        case 'L': {
          const std::string name = text.substr(i + 1, text.find(';', i) - i - 1);
          i += name.size() + 1;
          const bool buffer = name.ends_with("ByteBuffer");
          // The classes give null for what an application need not give.
          const bool optional = name.ends_with("Sink") || (buffer && takes_null(method));
          out.integers.push_back(optional && choices_.one_in(2) ? 0
                                 : buffer                       ? FakeJava::address(any_buffer())
                                          : FakeJava::address(java_.anything()));
          break;
        }
        default: {  // An array.
          const char element = text[++i];
          if (element == '[') ++i;
          if (element == 'L') i = text.find(';', i);
          const bool plain = element != '[' && element != 'L';
          const bool null =
              method.name == "generate" && choices_.one_in(3) && out.integers.size() < 6;
          out.integers.push_back(null    ? 0
                                 : plain ? FakeJava::address(any_array(element))
                                         : FakeJava::address(any_list(element == '[')));
        }
      }
    }
    return out;
  }
  static bool takes_null(const FakeJava::Native& method) {
    return method.signature.starts_with("(JIIJ[BZ") || method.name == "openFile";
  }

  void one_call() {
    const FakeJava::Native& method = java_.natives()[choices_.below(java_.natives().size())];
    // Not those that read whatever file this process has open.
    if (method.name == "openDescriptor") return;
    const int64_t result = java_.call(method, any_arguments(method));
    const bool makes = method.name.starts_with("create") || method.name == "openFile";
    if (makes && method.signature.ends_with(")J") && !java_.pending() && result != 0) {
      handles_.push_back(result);
    }
    java_.clear();
  }

  FakeJava& java_ = FakeJava::get();
  Choices& choices_;
  std::vector<int64_t> handles_;
};

}  // namespace
}  // namespace oxbow::testing

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace oxbow::testing;
  static Files files;
  FakeJava& java = FakeJava::get();
  if (java.natives().empty()) {
    // No device: drivers, and the layers before them, are not what is looked at.
    ::setenv("VK_DRIVER_FILES", "/dev/null", 1);
    ::setenv("VK_LOADER_LAYERS_DISABLE", "~all~", 1);
    if (JNI_OnLoad(java.machine(), nullptr) < 0) broken("the library loads");
  }
  Choices choices({data, size});
  JavaProgram(choices).run(files.get(choices.below(Files::kCount)));
  return 0;
}
