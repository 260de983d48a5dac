#include "runtime/device/backends.h"

#include <iterator>

#include "runtime/device/if_built.h"

namespace oxbow {
namespace {

constexpr BackendInfo kBackends[] = {
#define OXB_PROCESSOR(NAME, number, name, constant) \
  {Backend::constant, name, nullptr, true, nullptr},
#define OXB_LIBRARY(NAME, number, name, constant) \
  {Backend::constant, name, "OXBOW_WITH_" #NAME, OXB_BUILD_##NAME != 0, nullptr},
#define OXB_DEVICE(NAME, number, name, constant, driver, context)       \
  {Backend::constant, name, "OXBOW_WITH_" #NAME, OXB_BUILD_##NAME != 0, \
   OXB_IF_BUILT(OXB_BUILD_##NAME, driver)},
#include "runtime/device/backends.inc"
};

constexpr bool in_order() {
  for (size_t i = 0; i < std::size(kBackends); ++i) {
    if (static_cast<size_t>(kBackends[i].backend) != i) return false;
  }
  return true;
}
static_assert(in_order(), "the table is indexed by the backend's number");

}  // namespace

std::span<const BackendInfo> backends() { return kBackends; }

const BackendInfo* find_backend(int number) {
  const auto index = static_cast<size_t>(number);
  return number >= 0 && index < std::size(kBackends) ? &kBackends[index] : nullptr;
}

bool is_built_in(Backend backend) { return kBackends[static_cast<size_t>(backend)].is_built_in; }

}  // namespace oxbow
