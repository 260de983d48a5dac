// Which words stand where some are masked.

#include <algorithm>
#include <cstdio>

#include "tools/classes.h"
#include "tools/run/run.h"

namespace oxbow::tools {
namespace {

int32_t mask_token(const Request& request) {
  if (request.args.has("mask")) {
    return static_cast<int32_t>(request.args.integer("mask", 0, 0, request.info.vocabulary - 1));
  }
  if (request.info.mask_token < 0) {
    throw UsageError("the model fills masks: give the masked token with --mask ID");
  }
  return request.info.mask_token;
}

std::vector<int32_t> read_masked(const Request& request, int32_t mask) {
  std::vector<int32_t> ids = read_prompt(request, request.info.max_segment);
  if (std::find(ids.begin(), ids.end(), mask) != ids.end()) return ids;
  if (request.as_ids) throw InputError(format("the text has no token %d to fill", mask));
  const std::string word = visible(token_bytes(request.model, mask));
  throw InputError("the text has nothing to fill: write " + word + " where a word is missing");
}

/// A token as people read it: without the space it may begin with, or as it is in the vocabulary when
/// nothing is left of it.
std::string word_text(const Request& request, int32_t token) {
  if (request.as_ids) return std::to_string(token);
  oxb::Decoder decoder = open_decoder(request.model);
  std::string text = decode(decoder, {&token, 1});
  const size_t first = text.find_first_not_of(' ');
  text = first == text.npos ? token_bytes(request.model, token) : text.substr(first);
  return visible(text);
}

}  // namespace

int run_fill_mask(const Request& request) {
  const int32_t mask = mask_token(request);
  std::vector<int32_t> ids = read_masked(request, mask);
  oxb::Session session = open_session(request.model, request.path, request.common);
  const size_t width = request.info.output_width;
  std::vector<float> logits(ids.size() * width);
  check(session.run(ids, logits), request.path);
  const size_t shown = request.args.integer("top-k", 0, 0, UINT32_MAX);
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] != mask) continue;
    const std::vector<double> shares = probabilities(std::span(logits).subspan(i * width, width));
    const std::vector<size_t> best = best_first(shares, shown == 0 ? 5 : shown);
    std::printf("token %zu\n", i);
    for (const size_t index : best) {
      std::printf("  %.6f  %s\n", shares[index],
                  word_text(request, static_cast<int32_t>(index)).c_str());
    }
    ids[i] = static_cast<int32_t>(best[0]);
  }
  if (!request.as_ids) {
    oxb::Decoder decoder = open_decoder(request.model);
    request.out.write(decode(decoder, ids) + "\n");
  }
  return kExitGood;
}

}  // namespace oxbow::tools
