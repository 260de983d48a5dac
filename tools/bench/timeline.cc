#include "tools/bench/timeline.h"

#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "host/describe.h"

namespace oxbow::tools {

void Timeline::keep_step(void* timeline, uint32_t step, const char* op, const char* output,
                         uint64_t nanoseconds) {
  Timeline& self = *static_cast<Timeline*>(timeline);
  const uint64_t now = self.clock_.nanoseconds();
  self.slices_.push_back({op, output, step, now - std::min(now, nanoseconds), nanoseconds});
}

std::string Timeline::json(const std::string& model) const {
  const int process = static_cast<int>(::getpid());
  const auto named = [&](const char* what, const std::string& name) {
    return nlohmann::json{{"ph", "M"},
                          {"name", what},
                          {"pid", process},
                          {"tid", process},
                          {"args", {{"name", name}}}};
  };
  nlohmann::json events = {named("process_name", "oxbow bench " + model),
                           named("thread_name", "calling thread")};
  for (const Slice& slice : slices_) {
    nlohmann::json event = {{"ph", "X"},
                            {"name", slice.name},
                            {"cat", slice.step == kRun ? "run" : "step"},
                            {"pid", process},
                            {"tid", process},
                            {"ts", static_cast<double>(slice.start) / 1e3},
                            {"dur", static_cast<double>(slice.duration) / 1e3}};
    if (slice.step != kRun) event["args"] = {{"step", slice.step}, {"output", slice.output}};
    events.push_back(event);
  }
  return json_text({{"displayTimeUnit", "ns"}, {"traceEvents", events}});
}

}  // namespace oxbow::tools
