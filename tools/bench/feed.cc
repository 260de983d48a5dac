#include "tools/bench/feed.h"

#include <algorithm>

#include "host/exact_rows.h"

namespace oxbow::tools {

EntryFeed::EntryFeed(const oxb::Model& model, const schema::ModelT& graph, size_t entry,
                     const std::string& path)
    : entry_(entry), whole_(takes_exact_rows(graph, *graph.entry_points.at(entry))) {
  const oxb::Expected<oxb_entry_info> info = model.entry_info(entry);
  check(info.status(), path);
  info_ = *info;
  for (size_t i = 0; i < info_.input_count; ++i) {
    const oxb::Expected<oxb_input_info> input = model.input_info(entry, i);
    check(input.status(), path);
    if (i > 0 && input->required == 0) continue;
    inputs_.push_back(*input);
    values_.emplace_back(size_t{info_.max_rows} * input->width);
    list_.push_back({sizeof(oxb_input), input->name, values_.back().data(), 0});
  }
  // A generator's prompt needs its last row only, a text that is encoded all of them.
  const bool last_only = info_.starts == 0 || model.info().entry_count > 1;
  output_rows_ = info_.output_rows != 0 ? info_.output_rows : last_only ? 1 : info_.max_rows;
  output_.resize(output_rows_ * info_.output_width);
}

bool EntryFeed::give(const FloatRows& rows) {
  if (takes_tokens() || rows.rows == 0 || rows.rows > info_.max_rows) return false;
  for (size_t i = 0; i < rows.values.size(); ++i) values_[0][i].number = rows.values[i];
  given_ = rows.rows;
  return true;
}

void EntryFeed::fill(RandomTokens& random, size_t rows) {
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const oxb_input_info& input = inputs_[i];
    for (size_t v = i == 0 ? given_ * input.width : 0; v < rows * input.width; ++v) {
      if (input.type == OXB_TYPE_I32) {
        values_[i][v].token =
            static_cast<int32_t>(static_cast<uint32_t>(random.next()) % std::max(input.limit, 1u));
      } else {
        values_[i][v].number = static_cast<float>(random.next() % 256) / 128.0f - 1.0f;
      }
    }
  }
}

oxb::Status EntryFeed::run(oxb::Session& session, size_t rows, bool last) {
  for (oxb_input& input : list_) input.rows = rows;
  const size_t wanted = info_.output_rows != 0 ? output_rows_
                        : last                 ? std::min(output_rows_, rows)
                                               : 0;
  return session.run_entry(entry_, list_, output_, wanted);
}

}  // namespace oxbow::tools
