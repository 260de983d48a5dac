// Which class a text or an image belongs to.

#include <algorithm>
#include <cstdio>

#include "tools/classes.h"
#include "tools/run/run.h"

namespace oxbow::tools {

namespace {

/// Of a pair, the second text has type 1 where the model knows types.
std::vector<float> run_pair(const Request& request, oxb::Session& session,
                            const std::vector<int32_t>& ids, size_t first) {
  std::vector<float> logits(request.info.output_width);
  std::vector<int32_t> types(ids.size(), 0);
  std::fill(types.begin() + static_cast<ptrdiff_t>(std::min(first, types.size())), types.end(), 1);
  const auto found = request.model.find_input(0, "token_type_ids");
  if (!found) {
    check(session.run(ids, logits), request.path);
    return logits;
  }
  const oxb_input_info tokens = *request.model.input_info(0, 0);
  const oxb_input inputs[] = {oxb::input(tokens.name, ids), oxb::input("token_type_ids", types)};
  check(session.run_entry(0, inputs, logits, 1), request.path);
  return logits;
}

}  // namespace

int run_classify(const Request& request) {
  std::vector<int32_t> ids;
  size_t first = 0;
  if (!request.takes_numbers()) ids = read_prompt(request, request.info.max_segment, &first);
  oxb::Session session = open_session(request.model, request.path, request.common);
  std::vector<float> logits(request.info.output_width);
  if (request.takes_numbers()) {
    logits = run_numbers(request, session, false);
  } else if (request.args.has("second")) {
    logits = run_pair(request, session, ids, first);
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
