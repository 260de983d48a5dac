// masked.*: the plain part's tokens with padding among them. A stream has no padding: its tokens are
// fed without, and the rows of the others compared. A model that takes the mask gets it.

#include <algorithm>

#include "tools/verify/verifier.h"

namespace oxbow::tools {
namespace {

std::vector<uint64_t> real_rows(const std::vector<int64_t>& mask) {
  std::vector<uint64_t> rows;
  for (uint64_t i = 0; i < mask.size(); ++i) {
    if (mask[i] != 0) rows.push_back(i);
  }
  return rows;
}

Produced selected(const Produced& produced, const std::vector<uint64_t>& rows) {
  Produced some{rows.size(), produced.width, {}, {}, {}, false};
  for (const uint64_t row : rows) {
    const auto from = produced.values.begin() + static_cast<ptrdiff_t>(row * produced.width);
    some.values.insert(some.values.end(), from, from + static_cast<ptrdiff_t>(produced.width));
  }
  return some;
}

}  // namespace

/// Whether leaving the padding out is the same thing: it stands at one end or both, and positions are
/// counted from the first real token.
bool Verifier::can_mask(const Layout& layout, uint64_t stream) const {
  const std::vector<uint64_t> rows =
      real_rows(integer_rows("masked.attention_mask", layout, stream));
  if (rows.empty() || rows.back() - rows.front() + 1 != rows.size()) return false;
  if (io_.find("masked.position_ids") == nullptr) return true;
  const std::vector<int64_t> positions = integer_rows("masked.position_ids", layout, stream);
  for (size_t i = 0; i < rows.size(); ++i) {
    if (rows[i] >= positions.size() || positions[rows[i]] != static_cast<int64_t>(i)) return false;
  }
  return true;
}

void Verifier::skip_blank_rows(const Part& part, const Layout& layout, uint64_t stream) {
  const std::vector<int64_t> mask = integer_rows(part.prefix + "attention_mask", layout, stream);
  for (const auto& [name, index] : part.expected) {
    Outcome& outcome = outcomes_[index];
    const std::optional<Layout::View> view = layout.view(outcome.shape);
    if (outcome.produced.empty() || outcome.is_ids || !view || view->rows != mask.size()) continue;
    const std::vector<float> expected = io_.floats(outcome.name);
    for (uint64_t row = 0; row < mask.size(); ++row) {
      const auto begin = static_cast<ptrdiff_t>(view->at(stream, row));
      const auto width = static_cast<ptrdiff_t>(view->width);
      const bool blank = std::all_of(expected.begin() + begin, expected.begin() + begin + width,
                                     [](float value) { return value == 0; });
      if (mask[row] == 0 && blank) std::fill_n(outcome.covered.begin() + begin, width, false);
    }
  }
}

void Verifier::run_masked() {
  const Part& part = parts_.at("masked.");
  const Runner::Entry& entry = runner_.entries().back();
  const bool has_ids = io_.find(std::string("masked.") + entry.inputs[0].name) != nullptr ||
                       io_.find(entry.inputs[0].name) != nullptr;
  const bool takes_mask = entry.find("attention_mask") != nullptr;
  if (runner_.entries().size() != 1 || !has_ids || !part.given.contains("attention_mask") ||
      (entry.info.starts != 0 && !takes_mask)) {
    give_up(part);
    return;
  }
  const bool own_ids = part.given.contains(entry.inputs[0].name);
  const Layout layout = layout_of(own_ids ? part : parts_.at(""));
  for (uint64_t stream = 0; stream < layout.batch; ++stream) {
    if (!takes_mask && !can_mask(layout, stream)) {
      give_up(part);
      return;
    }
  }
  for (uint64_t stream = 0; stream < layout.batch; ++stream) run_masked_stream(layout, stream);
}

void Verifier::run_masked_stream(const Layout& layout, uint64_t stream) {
  const Part& part = parts_.at("masked.");
  const std::vector<int64_t> mask = integer_rows("masked.attention_mask", layout, stream);
  const std::vector<uint64_t> rows = real_rows(mask);
  const auto plain = parts_.find("");
  std::vector<InputRows> inputs =
      inputs_of(part, 0, stream, plain == parts_.end() ? nullptr : &plain->second);
  const size_t all = inputs[0].rows;
  if (mask.size() != all) {
    throw InputError(format("%s: masked.attention_mask is for %zu tokens; there are %zu",
                            io_.path().c_str(), mask.size(), all));
  }
  const bool takes_mask = runner_.entries()[0].find("attention_mask") != nullptr;
  if (!takes_mask) inputs = select_rows(inputs, rows);
  runner_.reset();
  ProducedByName produced;
  runner_.run(0, inputs, SIZE_MAX, wanted(part), "masked." + inputs[0].name, produced);
  for (auto& [name, tensor] : produced) {
    if (takes_mask && tensor.rows == all) tensor = selected(tensor, rows);
  }
  place_all(part, layout, stream, produced, &rows);
}

}  // namespace oxbow::tools
