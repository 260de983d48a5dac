// The struct that the runtime and the C interface each have for themselves, so that it can be cast: compared when this is
// compiled. Numbers of enumerations are compared by tests/compat/check_enums.

#include <cstddef>

#include "runtime/api/oxbow.h"
#include "runtime/base/status.h"

namespace oxbow {
namespace {

static_assert(sizeof(oxb_error) == sizeof(Error));
static_assert(offsetof(oxb_error, code) == offsetof(Error, code));
static_assert(offsetof(oxb_error, step) == offsetof(Error, step));
static_assert(offsetof(oxb_error, op) == offsetof(Error, op));
static_assert(offsetof(oxb_error, text) == offsetof(Error, text));

}  // namespace
}  // namespace oxbow
