#pragma once

// What every reader of tensors must stand: that all values are read.

#include "host/tensor_file.h"

namespace oxbow::testing {

inline void read_all(const TensorMap& tensors) {
  for (const auto& [name, tensor] : tensors) {
    if (is_float(tensor.dtype)) {
      static_cast<void>(to_floats(tensor));
    } else {
      static_cast<void>(to_integers(tensor));
    }
  }
}

}  // namespace oxbow::testing
