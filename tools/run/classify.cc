// Models that read a text as a whole: which class it belongs to, or which tokens stand where some are
// masked.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>

#include "tools/classes.h"
#include "tools/run/run.h"

namespace oxbow::tools {

int run_classify(const Request& request) {
  const std::vector<int32_t> ids = read_prompt(request, request.info.max_segment);
  oxb::Session session = open_session(request.model, request.path, request.common);
  std::vector<float> logits(request.info.output_width);
  check(session.run(ids, logits), request.path);
  if (logits.size() == 1) {  // A regression has one number and no classes.
    std::printf("%.6g\n", static_cast<double>(logits[0]));
    return convert::kExitGood;
  }
  const std::vector<double> shares = probabilities(logits);
  for (const size_t index : best_first(shares, logits.size())) {
    std::printf("%.6f  %s\n", shares[index], class_name(request.model, index).c_str());
  }
  return convert::kExitGood;
}

int run_fill_mask(const Request& request) {
  if (!request.args.has("mask")) {
    throw UsageError("the model fills masks: give the masked token with --mask ID");
  }
  const auto mask =
      static_cast<int32_t>(request.args.integer("mask", 0, 0, request.info.vocabulary - 1));
  const std::vector<int32_t> ids = read_prompt(request, request.info.max_segment);
  if (std::find(ids.begin(), ids.end(), mask) == ids.end()) {
    throw InputError(format("the text has no token %d to fill", mask));
  }
  oxb::Session session = open_session(request.model, request.path, request.common);
  const size_t width = request.info.output_width;
  std::vector<float> logits(ids.size() * width);
  check(session.run(ids, logits), request.path);
  const size_t shown = request.sampling.top_k == 0 ? 5 : request.sampling.top_k;
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] != mask) continue;
    const std::vector<double> shares = probabilities(std::span(logits).subspan(i * width, width));
    std::printf("token %zu\n", i);
    for (const size_t index : best_first(shares, std::min(shown, width))) {
      std::printf("  %.6f  %s\n", shares[index],
                  token_text(request, static_cast<int32_t>(index)).c_str());
    }
  }
  return convert::kExitGood;
}

}  // namespace oxbow::tools
