#include "converter/measure/calibrate.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <set>

#include "converter/measure/quality.h"
#include "host/errors.h"
#include "ops/traits.h"
#include "runtime/base/hadamard.h"
#include "runtime/base/quantize.h"
#include "runtime/base/weight_blocks.h"

namespace oxbow::convert {
namespace {

/// Enough that a tensor's largest values have been seen, few enough to wait for.
constexpr size_t kMostTokens = 4096;
/// For the sizes of columns, which few tokens tell as well.
constexpr size_t kMostChannelTokens = 1024;
/// For what enters matrices, whose columns are many: so many of those that are read, in pieces of so many, that all languages
/// of a text have their part.
constexpr size_t kMostFitTokens = 2048, kMostReadTokens = 16384, kPieceTokens = 128;
/// 5 bits of the mantissa are left.
constexpr int kBinShift = 18;
constexpr uint32_t kBins = 0x7f800000u >> kBinShift;
/// Clips looked at: down to 1/16 of the largest value.
constexpr uint32_t kMostBinsClipped = 128;
constexpr char kPrefix[] = "calibrate.";

/// A step that multiplies a matrix: the tensors its scales belong to.
struct MatrixStep {
  size_t entry;
  schema::StepT& step;
  uint32_t x, weight, y;
};

/// Calls visit(const MatrixStep&).
template <typename Visit>
void for_each_matrix(const Graph& graph, const Visit& visit) {
  for (size_t e = 0; e < graph.model.entry_points.size(); ++e) {
    for (const auto& step : graph.model.entry_points[e]->steps) {
      const OpTraits& traits = op_traits(step->op);
      const auto weight = weight_input(traits);
      if (traits.multiplied_input < 0 || !weight) continue;
      visit(MatrixStep{e, *step, step->inputs[static_cast<size_t>(traits.multiplied_input)],
                       step->inputs[weight->input], step->outputs[0]});
    }
  }
}

/// Value in the middle of a bin.
double bin_value(uint32_t bin) {
  return std::bit_cast<float>((bin << kBinShift) | (1u << (kBinShift - 1)));
}

/// What is told of a tensor after each run: its name and rows.
using Observe = std::function<void(const std::string& name, std::span<float> values, size_t width)>;

/// Reads all tensors that observe_matrices has marked.
class Recorder {
 public:
  explicit Recorder(const Runner& runner) : runner_(runner) {
    size_t count = 0;
    (void)oxb_session_tensor_count(runner.session(), &count, nullptr);
    for (size_t i = 0; i < count; ++i) {
      const std::string name = info(i).name;
      if (name.starts_with(kPrefix)) kept_.emplace_back(i, name.substr(sizeof(kPrefix) - 1));
    }
  }

  /// `written` are the tensors of the entry point that has just run.
  void record(const std::set<std::string>& written, const Observe& observe) {
    for (const auto& [index, name] : kept_) {
      if (!written.contains(name)) continue;
      const oxb_tensor_info now = info(index);
      values_.resize(size_t{now.rows} * now.width);
      oxb_error error = OXB_ERROR_INIT;
      if (!values_.empty() && oxb_session_tensor_read(runner_.session(), index, values_.data(),
                                                      values_.size(), &error) != OXB_OK) {
        throw InputError(std::string("calibration: ") + error.text);
      }
      observe(name, values_, now.width);
    }
  }

 private:
  oxb_tensor_info info(size_t index) const {
    oxb_tensor_info info = OXB_TENSOR_INFO_INIT;
    oxb_error error = OXB_ERROR_INIT;
    if (oxb_session_tensor_info(runner_.session(), index, &info, &error) != OXB_OK) {
      throw InputError(std::string("calibration: ") + error.text);
    }
    return info;
  }

  const Runner& runner_;
  std::vector<std::pair<size_t, std::string>> kept_;
  std::vector<float> values_;
};

/// Runs the observed graph over some tokens.
void observe_run(const Graph& graph, Runner& runner, std::span<const int32_t> tokens,
                 const Observe& observe) {
  Recorder recorder(runner);
  std::vector<std::set<std::string>> written(graph.model.entry_points.size());
  for_each_matrix(graph, [&](const MatrixStep& m) {
    written[m.entry].insert({graph.tensor(m.x).name, graph.tensor(m.y).name});
  });
  std::vector<float> output;
  feed(
      runner, tokens, [&] { runner.reset(); },
      [&](size_t entry, std::span<const oxb_input> inputs, std::span<const int32_t>) {
        runner.run(entry, inputs, output);
        recorder.record(written[entry], observe);
        const schema::TensorT& logits = graph.tensor(graph.model.entry_points[entry]->logits);
        observe(logits.name, output, logits.width);
      });
}

/// At most so many tokens of a text, in pieces from all of it.
std::vector<int32_t> spread(const std::vector<int32_t>& tokens, size_t most) {
  if (tokens.size() <= most) return tokens;
  std::vector<int32_t> taken;
  const size_t pieces = most / kPieceTokens;
  for (size_t i = 0; i < pieces; ++i) {
    const size_t first = i * (tokens.size() - kPieceTokens) / (pieces - 1);
    taken.insert(taken.end(), tokens.begin() + static_cast<ptrdiff_t>(first),
                 tokens.begin() + static_cast<ptrdiff_t>(first + kPieceTokens));
  }
  return taken;
}

}  // namespace

void Spread::add(std::span<const float> values) {
  bins_.resize(kBins);
  for (const float value : values) {
    if (!std::isfinite(value)) continue;
    ++bins_[std::bit_cast<uint32_t>(std::fabs(value)) >> kBinShift];
  }
}

float Spread::best_scale() const {
  auto top = static_cast<uint32_t>(bins_.size());
  while (top > 0 && bins_[top - 1] == 0) --top;
  // Bin 0 holds zeros and what is next to nothing.
  if (top <= 1) return 0.0f;
  double least = INFINITY;
  float best = 0.0f;
  for (uint32_t bin = top; bin > 0 && top - bin < kMostBinsClipped; --bin) {
    const double clip = std::bit_cast<float>(bin << kBinShift);
    const double step = clip / kQuantMax;
    double loss = 0;
    for (uint32_t at = 0; at < top; ++at) {
      if (bins_[at] == 0) continue;
      const double value = bin_value(at);
      // What is smaller than half a step loses itself and no more.
      const double error = value > clip ? (value - clip) * (value - clip)
                                        : std::min(value * value, step * step / 12);
      loss += error * static_cast<double>(bins_[at]);
    }
    if (loss < least) {
      least = loss;
      best = static_cast<float>(step);
    }
  }
  return best;
}

void observe_matrices(Graph& graph) {
  std::vector<std::set<uint32_t>> wanted(graph.model.entry_points.size());
  for_each_matrix(graph, [&](const MatrixStep& m) { wanted[m.entry].insert({m.x, m.y}); });
  for (size_t e = 0; e < wanted.size(); ++e) {
    schema::EntryPointT& entry = *graph.model.entry_points[e];
    if (entry.kept_names.empty()) {
      for (const uint32_t kept : entry.kept) entry.kept_names.push_back(graph.tensor(kept).name);
    }
    for (const uint32_t index : wanted[e]) {
      if (graph.tensor(index).kind != schema::TensorKind::Activation) continue;
      entry.kept.push_back(index);
      entry.kept_names.push_back(kPrefix + graph.tensor(index).name);
    }
  }
}

ChannelSizes measure_channels(const Graph& graph, const std::string& file,
                              const TokenSource& source) {
  struct Sums {
    std::vector<double> squares;
    double rows = 0;
  };
  std::map<std::string, Sums> sums;
  for_each_matrix(graph, [&](const MatrixStep& m) {
    sums[graph.tensor(m.x).name].squares.resize(graph.tensor(m.x).width);
  });
  Runner runner(file);
  observe_run(graph, runner, source.take(runner, kMostChannelTokens),
              [&](const std::string& name, std::span<float> values, size_t width) {
                const auto found = sums.find(name);
                if (found == sums.end() || found->second.squares.size() != width) return;
                for (size_t i = 0; i < values.size(); ++i) {
                  if (!std::isfinite(values[i])) continue;
                  found->second.squares[i % width] += double{values[i]} * values[i];
                }
                found->second.rows += static_cast<double>(values.size() / width);
              });
  ChannelSizes sizes;
  for (const auto& [name, sum] : sums) {
    if (sum.rows == 0) continue;
    std::vector<float>& out = sizes[name];
    for (const double square : sum.squares) {
      out.push_back(static_cast<float>(std::sqrt(square / sum.rows)));
    }
  }
  return sizes;
}

MatrixInputs record_inputs(const Graph& graph, const std::string& file, const TokenSource& source,
                           const std::shared_ptr<FloatFile>& store) {
  MatrixInputs inputs;
  for_each_matrix(graph, [&](const MatrixStep& m) {
    inputs.of[graph.tensor(m.weight).name].insert(graph.tensor(m.x).name);
    inputs.rows[graph.tensor(m.x).name];
  });
  Runner runner(file);
  const size_t judged = source.is_random() ? 0 : kMostJudgedTokens;
  const size_t most = source.is_random() ? kMostRandomTokens : kMostFitTokens;
  std::vector<int32_t> tokens =
      source.take(runner, judged + (source.is_random() ? most : kMostReadTokens));
  tokens.erase(tokens.begin(),
               tokens.begin() + static_cast<ptrdiff_t>(std::min(judged, tokens.size())));
  tokens = spread(tokens, most);
  if (tokens.size() < most) {
    const std::vector<int32_t> random = TokenSource().take(runner, most - tokens.size());
    tokens.insert(tokens.end(), random.begin(), random.end());
  }
  observe_run(graph, runner, tokens,
              [&](const std::string& name, std::span<float> values, size_t width) {
                const auto found = inputs.rows.find(name);
                if (found == inputs.rows.end()) return;
                // Two bytes each, which is exact enough for sums of many.
                for (float& value : values) value = to_f32(to_bf16(value));
                found->second.emplace_back(static_cast<uint32_t>(values.size() / width),
                                           static_cast<uint32_t>(width),
                                           std::vector<float>(values.begin(), values.end()), store);
              });
  return inputs;
}

Calibration calibrate(const Graph& graph, const std::string& file, const TokenSource& source) {
  std::map<std::string, Spread> spreads, turned;
  Runner runner(file);
  observe_run(graph, runner, source.take(runner, kMostTokens),
              [&](const std::string& name, std::span<float> values, size_t width) {
                spreads[name].add(values);
                const size_t block = largest_hadamard_block(width);
                if (block == 0) return;
                hadamard_row(values.data(), values.size(), block);
                turned[name].add(values);
              });
  Calibration calibration;
  for_each_matrix(graph, [&](const MatrixStep& m) {
    const std::string& x = graph.tensor(m.x).name;
    const std::string& y = graph.tensor(m.y).name;
    // A matrix may be used twice with the same rows: then it gives the same.
    calibration.inputs[x] = spreads[x].best_scale();
    calibration.turned_inputs[x] = turned[x].best_scale();
    calibration.outputs[{x, graph.tensor(m.weight).name}] = spreads[y].best_scale();
  });
  return calibration;
}

size_t set_static_scales(Graph& graph, const Calibration& calibration) {
  // The float tensor an int8 copy is made of.
  std::map<uint32_t, uint32_t> copied;
  for (const auto& entry : graph.model.entry_points) {
    for (const auto& step : entry->steps) {
      if (copies_as_i8(op_traits(step->op))) copied[step->outputs[0]] = step->inputs[0];
    }
  }
  const auto known = [](const auto& map, const auto& key) -> float {
    const auto found = map.find(key);
    return found != map.end() && is_static_scale(found->second) ? found->second : 0.0f;
  };
  size_t unseen = 0;
  for_each_matrix(graph, [&](const MatrixStep& m) {
    schema::TensorT& x = graph.tensor(m.x);
    if (x.type != schema::DataType::I8 || x.kind != schema::TensorKind::Activation) return;
    const auto copy = copied.find(m.x);
    const std::string name = copy == copied.end() ? x.name : graph.tensor(copy->second).name;
    const float scale =
        known(x.hadamard != 0 ? calibration.turned_inputs : calibration.inputs, name);
    if (scale == 0.0f) {
      ++unseen;
      return;
    }
    x.static_scale = scale;
    const auto set_output_scale = op_traits(m.step.op).set_output_scale;
    const auto key = std::pair(name, graph.tensor(m.weight).name);
    if (const float output = known(calibration.outputs, key);
        output != 0.0f && set_output_scale != nullptr) {
      set_output_scale(m.step, output);
    }
  });
  return unseen;
}

}  // namespace oxbow::convert
