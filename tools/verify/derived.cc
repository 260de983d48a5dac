// Expectations that are no tensors of the model but follow from some: the loss of given targets, the
// tokens a row of logits would choose, who sees whom in an attention that is a model of its own, and which experts
// the tokens of all streams took.

#include <algorithm>
#include <cmath>

#include "host/divergence.h"
#include "tools/verify/verifier.h"

namespace oxbow::tools {
namespace {

/// logsumexp(logits) - logits[target]
float negative_log_likelihood(std::span<const float> logits, int64_t target) {
  return static_cast<float>(log_sum_exp(logits) -
                            static_cast<double>(logits[static_cast<size_t>(target)]));
}

/// The stride of a model whose attention is strided, else 0.
uint64_t stride_of(const schema::ModelT& graph) {
  for (const auto& step : graph.entry_points.back()->steps) {
    const schema::AttentionOptionsT* options = step->options.AsAttentionOptions();
    if (options == nullptr || options->pattern == nullptr) continue;
    if (options->pattern->kind == schema::PatternKind::Strided) return options->pattern->length;
  }
  return 0;
}

}  // namespace

void Verifier::derive(const Part& part, const Layout& layout, uint64_t stream,
                      ProducedByName& produced) {
  derive_routes(part, layout, stream, produced);
  const auto output = produced.find(runner_.entries()[runner_.main_entry()].info.output);
  if (output == produced.end()) return;
  const Produced logits = output->second;
  const auto row = [&](uint64_t i) {
    return std::span(logits.values).subspan(i * logits.width, logits.width);
  };
  if (part.expected.contains("nll")) {
    const std::vector<int64_t> targets = integer_rows(part.prefix + "target_ids", layout, stream);
    Produced& nll = produced["nll"];
    nll.rows = std::min<uint64_t>(targets.size(), logits.rows);
    nll.width = 1;
    for (uint64_t i = 0; i < nll.rows; ++i) {
      if (targets[i] < 0 || targets[i] >= static_cast<int64_t>(logits.width)) {
        throw InputError(format("%s: %starget_ids has the id %lld", io_.path().c_str(),
                                part.prefix.c_str(), static_cast<long long>(targets[i])));
      }
      nll.values.push_back(negative_log_likelihood(row(i), targets[i]));
    }
  }
  if (part.expected.contains("next_ids")) {
    const Outcome& outcome = outcomes_[part.expected.at("next_ids")];
    if (!outcome.failure.empty()) return;
    const std::vector<int64_t> expected = integer_rows(outcome.name, layout, stream);
    Produced chosen{0, 1, {}, {}, {}, false};
    for (uint64_t i = 0; i < logits.rows; ++i) {
      const Produced one{1, logits.width, {row(i).begin(), row(i).end()}, {}, {}, false};
      choose(one, i < expected.size() ? expected[i] : -1, {}, chosen);
    }
    produced["next_ids"] = chosen;
  }
}

size_t Verifier::routed_layers() const {
  size_t layers = 0;
  while (runner_.produces(route_name("route", layers))) ++layers;
  return layers;
}

/// route_counts [layers, experts] counts the tokens of all streams; route_prob_max [layers, tokens * streams] has them in
/// the order of time, the streams of each time together.
void Verifier::derive_routes(const Part& part, const Layout& layout, uint64_t stream,
                             const ProducedByName& produced) {
  for (const char* name : {"route_counts", "route_prob_max"}) {
    if (!part.expected.contains(name)) continue;
    const bool counts = name == std::string("route_counts");
    Outcome& outcome = outcomes_[part.expected.at(name)];
    const std::vector<uint64_t>& shape = outcome.shape;
    if (shape.size() != 2 || shape[0] != routed_layers()) {
      outcome.failure = format("the model has %zu layers of experts", routed_layers());
      continue;
    }
    outcome.produced.resize(shape[0] * shape[1]);
    outcome.covered.assign(outcome.produced.size(), true);
    for (uint64_t layer = 0; layer < shape[0]; ++layer) {
      const auto rows = produced.find(route_name(counts ? "route" : name, layer));
      if (rows == produced.end()) continue;
      for (uint64_t row = 0; row < rows->second.rows; ++row) {
        const float value = rows->second.values[row];
        const uint64_t at = counts              ? static_cast<uint64_t>(value)
                            : layout.time_major ? row * layout.batch + stream
                                                : stream * rows->second.rows + row;
        if (at >= shape[1]) {
          outcome.failure =
              format("the model has more than %llu", static_cast<unsigned long long>(shape[1]));
          break;
        }
        float& to = outcome.produced[layer * shape[1] + at];
        to = counts ? to + 1.0f : value;
      }
    }
  }
}

/// With queries and keys of zeros every query spreads its attention evenly over the keys it sees, so
/// that a value at one key alone tells who sees that key.
void Verifier::derive_masks() {
  const auto plain = parts_.find("");
  if (plain == parts_.end() || !plain->second.expected.contains("mask")) return;
  Outcome& mask = outcomes_[plain->second.expected.at("mask")];
  const size_t entry = runner_.main_entry();
  std::vector<InputRows> inputs = inputs_of(plain->second, entry, 0);
  const auto value = std::find_if(inputs.begin(), inputs.end(),
                                  [](const InputRows& input) { return input.name == "value"; });
  if (value == inputs.end() || value->floats.empty()) {
    mask.given_up = true;
    return;
  }
  const uint64_t n = inputs[0].rows, width = runner_.output_width();
  if (mask.shape.size() != 3 || mask.shape[0] == 0 || width % mask.shape[0] != 0 ||
      mask.shape[1] != n || mask.shape[2] != n) {
    mask.failure =
        format("the model has queries and keys of %llu tokens", static_cast<unsigned long long>(n));
    return;
  }
  const uint64_t heads = mask.shape[0], head_width = width / heads;
  mask.produced.assign(heads * n * n, 0.0f);
  mask.covered.assign(mask.produced.size(), true);
  for (InputRows& input : inputs) std::fill(input.floats.begin(), input.floats.end(), 0.0f);
  for (uint64_t key = 0; key < n; ++key) {
    std::fill(value->floats.begin(), value->floats.end(), 0.0f);
    std::fill_n(value->floats.begin() + static_cast<ptrdiff_t>(key * value->width), value->width,
                1.0f);
    ProducedByName produced;
    runner_.reset();
    runner_.run(entry, inputs, SIZE_MAX, {}, "value", produced);
    const std::vector<float>& output = produced.begin()->second.values;
    for (uint64_t head = 0; head < heads; ++head) {
      for (uint64_t query = 0; query < n; ++query) {
        const bool sees = output[query * width + head * head_width] > 1e-6f;
        mask.produced[(head * n + query) * n + key] = sees ? 1.0f : 0.0f;
      }
    }
  }
  if (!plain->second.expected.contains("block_layout")) return;

  // A block is there when anything in it is seen. Strided blocks are made of tokens that were sorted
  // by column when written as rows of `stride` tokens.
  Outcome& blocks = outcomes_[plain->second.expected.at("block_layout")];
  if (blocks.shape.size() != 3 || blocks.shape[0] != heads || blocks.shape[1] == 0 ||
      blocks.shape[2] != blocks.shape[1] || n % blocks.shape[1] != 0) {
    blocks.failure = "expected as many blocks of queries as of keys";
    return;
  }
  const uint64_t count = blocks.shape[1], block = n / count, stride = stride_of(graph_);
  const auto block_of = [&](uint64_t token) {
    const bool sorted = stride != 0 && n % stride == 0;
    return (sorted ? token % stride * (n / stride) + token / stride : token) / block;
  };
  blocks.produced.assign(heads * count * count, 0.0f);
  blocks.covered.assign(blocks.produced.size(), true);
  for (uint64_t head = 0; head < heads; ++head) {
    for (uint64_t query = 0; query < n; ++query) {
      for (uint64_t key = 0; key < n; ++key) {
        if (mask.produced[(head * n + query) * n + key] == 0.0f) continue;
        blocks.produced[(head * count + block_of(query)) * count + block_of(key)] = 1.0f;
      }
    }
  }
}

}  // namespace oxbow::tools
