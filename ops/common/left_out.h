#pragma once

// What bind says about something that OXBOW_OPS left out of this build (cmake/op_groups.cmake).

#include "runtime/op.h"

namespace oxbow {

/// Nothing is wrong with the file: kFileUnsupported.
inline Status refuse_left_out(BindContext& context, const char* group) {
  static_cast<void>(
      context.fail("this library was built without the group '%s' (OXBOW_OPS)", group));
  return Status::kFileUnsupported;
}

}  // namespace oxbow
