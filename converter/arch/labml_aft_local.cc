// labml.ai's attention-free transformer with local biases (labml_nn/transformers/aft): every channel is a mean
// of its own values, weighted by e^key, and by a learned bias where a value is near. Beyond the window the past
// is two sums and their greatest exponent.

#include <algorithm>

#include "converter/blocks/labml_stack.h"

namespace oxbow::convert {
namespace {

/// The biases of the `rows` newest rows: row i of the table, the own row's last. Only the `window` newest
/// have one.
std::vector<float> near_biases(const std::vector<float>& table, uint32_t length, uint32_t window,
                               uint32_t rows) {
  std::vector<float> out(size_t{length} * rows);
  for (uint32_t i = 0; i < length; ++i) {
    for (uint32_t d = 0; d < std::min(window, i + 1); ++d) {
      out[size_t{i} * rows + rows - 1 - d] = table[size_t{i} * length + i - d];
    }
  }
  return out;
}

}  // namespace

void import_labml_aft_local(const Checkpoint& checkpoint, const ImportOptions& options,
                            Graph& graph) {
  const LabmlStackShape shape = read_labml_stack(checkpoint);
  const uint32_t length = checkpoint.size("seq_len", 1, 1u << 14), width = shape.width;
  const uint32_t window = std::min(checkpoint.size("local_window_size", 1, kMaxSize), length);
  // Of queries, keys and values; the tensors tell.
  checkpoint.ignore_keys({"bias"});
  GraphBuilder::Entry entry;
  entry.max_segment = std::min(read_segment(checkpoint, options), length);
  entry.capacity = length;
  entry.any_pieces = true;
  LabmlStack stack(checkpoint, shape, entry, graph);
  GraphBuilder& builder = stack.builder();

  uint32_t x = stack.embed();
  for (uint32_t i = 0; i < shape.layers; ++i) {
    const std::string name = LabmlStack::name(i), of = LabmlStack::tensors(i) + "self_attn.";
    const uint32_t z = stack.normed(i, x);
    const auto project = [&](const char* suffix, const char* which) {
      return stack.parts().linear(name + suffix, z, of + which, width, width,
                                  checkpoint.has_tensor(of + which + ".bias"));
    };
    const uint32_t gate =
        builder.activate(name + ".gate", project(".q", "query"), schema::Activation::Sigmoid);
    const uint32_t k = project(".k", "key"), v = project(".v", "value");
    checkpoint.ignore_tensor(of + "local_mask");

    // Of one row alone the scan would have a bonus for each channel.
    schema::ScanOptionsT scan;
    scan.window = std::max(window, 2u);
    std::vector<float> biases = near_biases(checkpoint.matrix(of + "pos_bias", length, length),
                                            length, window, scan.window);
    const std::string state = "past.layer" + std::to_string(i);
    const uint32_t ring = builder.ring(state, scan.window - 1);
    const uint32_t keys = builder.ring_state(state + ".key", ring, width);
    const uint32_t values = builder.ring_state(state + ".value", ring, width);
    const uint32_t average = builder.scan(
        name + ".average", scan,
        {k, v, builder.weight(of + "decay", 1, width, std::vector<float>(width)),
         builder.weight(of + "pos_bias", length, scan.window, std::move(biases)), keys, values},
        {builder.state(state + ".num", 1, width), builder.state(state + ".den", 1, width),
         builder.constant_state(state + ".most", 1, width, -1e30f)})[0];
    builder.ring_push({k, v}, {keys, values});
    x = builder.add(name + ".attended", x,
                    stack.parts().linear(name + ".attention.out",
                                         builder.multiply(name + ".gated", average, gate),
                                         of + "output", width, width));
    x = stack.feed_forward(i, x);
  }
  stack.finish(
      x, {{"local_window_size", window}, {"max_segment", entry.max_segment}, {"seq_len", length}});
}

}  // namespace oxbow::convert
