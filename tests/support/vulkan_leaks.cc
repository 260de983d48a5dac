// Under the leak checker a driver must stay loaded: what it keeps in its globals until the end would otherwise have lost
// its owner, and the report could not name it. What the validation layer itself loses is not ours to mend.

#if defined(__SANITIZE_ADDRESS__)

#include <dlfcn.h>

#include <initializer_list>

extern "C" [[gnu::visibility("default")]] const char* __lsan_default_suppressions() {
  return "leak:libVkLayer_khronos_validation.so\n";
}

namespace {

[[maybe_unused]] const bool kept = [] {
  for (const char* name : {"libvulkan_lvp.so", "libVkLayer_khronos_validation.so"}) {
    dlopen(name, RTLD_NOW | RTLD_NODELETE | RTLD_LOCAL);  // Without it there is nothing to keep.
  }
  return true;
}();

}  // namespace

#endif
