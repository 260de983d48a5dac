// beam.*: the likeliest texts that a beam search found (beam.sequences, one after another for each
// stream) and their scores (beam.scores). A reference does not say how it searched. What the command
// line does not tell either is tried: beams from 1 to 8, common length penalties, early stopping or
// not, and the lengths that the texts suggest. The first settings that reproduce all texts and scores
// are reported, or else those that come nearest.

#include <algorithm>
#include <cmath>

#include "host/divergence.h"
#include "tools/verify/verifier.h"

namespace oxbow::tools {

struct Verifier::BeamTexts {
  /// [texts][columns], padded.
  std::vector<int64_t> tokens;
  std::vector<float> scores;
  size_t columns = 0;
  /// Tokens that are as expected, and the largest difference of a score.
  size_t agree = 0;
  double score_error = 0.0;

  std::span<const int64_t> text(size_t index) const {
    return std::span(tokens).subspan(index * columns, columns);
  }
  bool better_than(const BeamTexts& other) const {
    return agree != other.agree ? agree > other.agree : score_error < other.score_error;
  }
};

namespace {

constexpr uint32_t kMostBeams = 8;
constexpr double kPenalties[] = {1.0, 0.6, 0.8, 1.2, 2.0, 0.0};

std::string describe(const oxb_beam_options& options) {
  return format(
      "%u beams, length penalty %g, %sat most %u tokens", options.beams, options.length_penalty,
      options.stop == OXB_BEAM_STOP_ENOUGH_TEXTS ? "early stopping, " : "", options.max_tokens);
}

}  // namespace

std::vector<oxb_beam_options> Verifier::beam_grid(uint32_t n_best, uint32_t columns) const {
  std::vector<uint32_t> lengths = {columns};
  // Texts that all ended early are stored in fewer columns than they might have had.
  if (const StoredTensor* greedy = io_.find("greedy.sequences");
      greedy != nullptr && greedy->shape.size() == 2) {
    lengths.push_back(static_cast<uint32_t>(greedy->shape[1]));
  }
  lengths.push_back(columns + columns / 2 + 1);
  if (beam_settings_.max_tokens) lengths = {*beam_settings_.max_tokens};
  // The last token of a text is not fed.
  const uint32_t capacity = graph_.entry_points.back()->capacity;
  std::erase_if(lengths, [&](uint32_t length) {
    return length < columns || (capacity != 0 && length - 1 > capacity);
  });
  lengths.erase(std::unique(lengths.begin(), lengths.end()), lengths.end());
  std::vector<oxb_beam_options> grid;
  for (const uint32_t length : lengths) {
    for (uint32_t beams = n_best; beams <= std::max(kMostBeams, n_best); ++beams) {
      if (beam_settings_.beams.value_or(beams) != beams) continue;
      for (const double penalty : kPenalties) {
        for (const bool early : {false, true}) {
          if (beam_settings_.early_stopping && !early) continue;
          oxb_beam_options options = OXB_BEAM_OPTIONS_INIT;
          options.beams = beams;
          options.n_best = n_best;
          options.max_tokens = length;
          options.length_penalty = beam_settings_.length_penalty.value_or(penalty);
          options.stop = early ? OXB_BEAM_STOP_ENOUGH_TEXTS : OXB_BEAM_STOP_UNLIKELY_BETTER;
          grid.push_back(options);
        }
        if (beam_settings_.length_penalty) break;
      }
    }
  }
  return grid;
}

Verifier::BeamTexts Verifier::search(const oxb_beam_options& options, const BeamTexts& expected,
                                     uint64_t streams) {
  const int32_t pad = graph_.generation == nullptr ? -1 : graph_.generation->pad_token;
  BeamTexts found;
  found.columns = expected.columns;
  auto search = oxb::BeamSearch::create(runner_.session(), options);
  if (!search.ok()) throw InputError(runner_.path() + ": " + search.status().text());
  for (uint64_t stream = 0; stream < streams; ++stream) {
    encode(stream);
    const oxb::Status status = search->run();
    if (!status.ok()) throw InputError(runner_.path() + ": " + status.text());
    for (size_t i = 0; i < search->count(); ++i) {
      const auto text = search->result(i);
      if (!text.ok()) throw InputError(runner_.path() + ": " + text.status().text());
      for (size_t column = 0; column < found.columns; ++column) {
        found.tokens.push_back(column < text->tokens.size() ? text->tokens[column] : pad);
      }
      found.scores.push_back(text->score);
    }
  }
  for (size_t i = 0; i < found.tokens.size(); ++i) {
    found.agree += found.tokens[i] == expected.tokens[i];
  }
  for (size_t i = 0; i < expected.scores.size(); ++i) {
    const double error = std::abs(static_cast<double>(found.scores[i] - expected.scores[i]));
    found.score_error = std::max(found.score_error, error);
  }
  return found;
}

float Verifier::forced_score(uint64_t stream, std::span<const int64_t> text,
                             const oxb_beam_options& options) {
  const schema::GenerationT rules =
      graph_.generation == nullptr ? schema::GenerationT() : *graph_.generation;
  encode(stream);
  Produced logits;
  double sum = 0.0;
  size_t length = 1;
  for (; length < text.size(); ++length) {
    const int64_t token = text[length];
    step(text.subspan(length - 1, 1), logits);
    const bool forced = rules.forced_last_token >= 0 && length + 1 == options.max_tokens;
    const std::span<const float> row = std::span(logits.values).last(logits.width);
    if (token < 0 || static_cast<size_t>(token) >= row.size()) return -INFINITY;
    if (!forced) sum += static_cast<double>(row[static_cast<size_t>(token)]) - log_sum_exp(row);
    if (token == rules.end_token) break;
  }
  return static_cast<float>(sum / std::pow(static_cast<double>(length), options.length_penalty));
}

void Verifier::run_beam() {
  const Part& part = parts_.at("beam.");
  const auto sequences = part.expected.find("sequences");
  const uint64_t streams = layout_of(parts_.at("")).batch;
  if (sequences == part.expected.end() || runner_.entries().size() < 2) return give_up(part);
  Outcome& outcome = outcomes_[sequences->second];
  if (!outcome.failure.empty()) return;
  const std::vector<uint64_t>& shape = outcome.shape;
  if (shape.size() != 2 || shape[0] == 0 || shape[0] % streams != 0 || shape[1] < 2 ||
      shape[0] / streams > 64) {
    outcome.failure = format("expected the texts of %llu streams, two tokens or more each",
                             static_cast<unsigned long long>(streams));
    return;
  }
  BeamTexts expected;
  expected.columns = shape[1];
  expected.tokens = io_.integers("beam.sequences");
  const auto scores = part.expected.find("scores");
  if (scores != part.expected.end() && outcomes_[scores->second].shape.size() == 1 &&
      outcomes_[scores->second].shape[0] == shape[0]) {
    expected.scores = io_.floats("beam.scores");
  }
  const auto n_best = static_cast<uint32_t>(shape[0] / streams);

  Progress progress;
  const std::vector<oxb_beam_options> grid = beam_grid(n_best, static_cast<uint32_t>(shape[1]));
  if (grid.empty()) {
    outcome.failure = "the settings given leave no room for the texts";
    return;
  }
  BeamTexts best;
  size_t best_at = grid.size();
  for (size_t i = 0; i < grid.size(); ++i) {
    progress.show("settings", i, grid.size());
    BeamTexts found = search(grid[i], expected, streams);
    if (best_at == grid.size() || found.better_than(best)) {
      best = std::move(found);
      best_at = i;
    }
    const bool exact = best.agree == expected.tokens.size();
    if (exact && best.score_error <= tolerance_.atol) break;
  }

  outcome.remark = describe(grid[best_at]);
  outcome.produced.assign(best.tokens.begin(), best.tokens.end());
  outcome.covered.assign(best.tokens.size(), true);
  for (size_t i = 0; i < expected.tokens.size() / shape[1]; ++i) {
    float gap = 0.0f;
    if (!std::ranges::equal(best.text(i), expected.text(i))) {
      gap = std::abs(best.scores[i] - forced_score(i / n_best, expected.text(i), grid[best_at]));
    }
    outcome.gaps.insert(outcome.gaps.end(), shape[1], gap);
  }
  if (expected.scores.empty()) return;
  Outcome& score_outcome = outcomes_[scores->second];
  score_outcome.produced = best.scores;
  score_outcome.covered.assign(best.scores.size(), true);
}

}  // namespace oxbow::tools
