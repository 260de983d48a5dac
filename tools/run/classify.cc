// Which class a text or an image belongs to.

#include <cstdio>

#include "tools/classes.h"
#include "tools/run/run.h"

namespace oxbow::tools {

int run_classify(const Request& request) {
  std::vector<int32_t> ids;
  if (!request.takes_numbers()) ids = read_prompt(request, request.info.max_segment);
  oxb::Session session = open_session(request.model, request.path, request.common);
  std::vector<float> logits(request.info.output_width);
  if (request.takes_numbers()) {
    logits = run_numbers(request, session, false);
  } else {
    check(session.run(ids, logits), request.path);
  }
  if (logits.size() == 1) {  // A regression has one number and no classes.
    std::printf("%.6g\n", static_cast<double>(logits[0]));
    return kExitGood;
  }
  const std::vector<double> shares = probabilities(logits);
  for (const size_t index : best_first(shares, logits.size())) {
    std::printf("%.6f  %s\n", shares[index], class_name(request.model, index).c_str());
  }
  return kExitGood;
}

}  // namespace oxbow::tools
