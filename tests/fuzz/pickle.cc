// Any bytes as a pickle: read or refused with an InputError, and all references lead somewhere.

#include "converter/formats/pickle.h"

#include <cstdlib>

#include "host/errors.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace oxbow::convert;
  try {
    const Pickle pickle = read_pickle("input", std::as_bytes(std::span(data, size)));
    for (const PickleNode& node : pickle.nodes) {
      if (node.target >= pickle.nodes.size()) std::abort();
      for (const PickleRef ref : node.items) {
        if (ref >= pickle.nodes.size()) std::abort();
      }
    }
    if (pickle.root >= pickle.nodes.size() || pickle.size > size) std::abort();
  } catch (const oxbow::InputError&) {
  }
  return 0;
}
