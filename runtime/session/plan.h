#pragma once

// What counting a session's bytes finds out. Binding every step to count is most of the work of creating a session, so
// the model keeps the plan of the options it was asked about last: opening makes the first, oxb_session_plan
// takes it from there, and so does creation.

#include <pthread.h>

#include <cstddef>

#include "runtime/base/status.h"
#include "runtime/device.h"
#include "runtime/session/session.h"

namespace oxbow {

struct SessionPlan {
  /// As they are used: at least one thread, a lender that has none itself.
  SessionOptions options;
  size_t params_bytes = 0;
  size_t scratch_bytes = 0;
  SessionMemory memory;
  /// Open, and has seen every step, when the options have one and no lender.
  Device device;
};

/// Binds every step to count. On failure nothing is open.
Status make_plan(const Model& model, const SessionOptions& options, SessionPlan* plan,
                 Error* error);

/// One plan, of any thread.
class PlanCache {
 public:
  PlanCache() { pthread_mutex_init(&mutex_, nullptr); }
  ~PlanCache();
  PlanCache(const PlanCache&) = delete;
  PlanCache& operator=(const PlanCache&) = delete;

  /// False: these options were not asked about last, or their device is lost.
  bool find(const SessionOptions& options, SessionMemory* memory);
  /// The same for creation. A device goes with the plan, which is then forgotten: the next session opens its own.
  bool take(const SessionOptions& options, SessionPlan* plan);
  void keep(const SessionPlan& plan);

 private:
  bool holds(const SessionOptions& options) const;

  pthread_mutex_t mutex_;
  bool full_ = false;
  SessionPlan plan_;
};

}  // namespace oxbow
