#pragma once

// What every reader of tensors must stand: that all values are read.

#include "converter/tensor_file.h"

namespace oxbow::testing {

inline void read_all(const convert::TensorMap& tensors) {
  for (const auto& [name, tensor] : tensors) {
    if (convert::is_float(tensor.dtype)) {
      static_cast<void>(convert::to_floats(tensor));
    } else {
      static_cast<void>(convert::to_integers(tensor));
    }
  }
}

}  // namespace oxbow::testing
