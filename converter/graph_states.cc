// What importers make states with: the converter's side of runtime/model/state_kinds.h.

#include "converter/graph.h"

namespace oxbow::convert {

uint32_t GraphBuilder::ring_state(const std::string& name, uint32_t ring, uint32_t width,
                                  uint32_t initial) {
  const uint32_t index =
      tensor(name, schema::TensorKind::State, graph_.model.rings.at(ring)->capacity, width);
  graph_.tensor(index).ring = static_cast<int32_t>(ring);
  if (initial != kNone) graph_.tensor(index).initial = static_cast<int32_t>(initial);
  return index;
}

uint32_t GraphBuilder::state(const std::string& name, uint32_t rows, uint32_t width,
                             uint32_t initial) {
  const uint32_t index = tensor(name, schema::TensorKind::State, rows, width);
  if (initial == kNone) return index;
  const schema::TensorT& values = graph_.tensor(initial);
  require(values.width == width && (values.rows == 1 || values.rows == rows),
          "the initial values of " + name + " have another shape");
  graph_.tensor(index).initial = static_cast<int32_t>(initial);
  return index;
}

uint32_t GraphBuilder::constant_state(const std::string& name, uint32_t rows, uint32_t width,
                                      float value) {
  if (value == 0.0f) return state(name, rows, width);
  return state(name, rows, width,
               weight(name + ".initial", 1, width, std::vector<float>(width, value)));
}

}  // namespace oxbow::convert
