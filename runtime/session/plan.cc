#include "runtime/session/plan.h"

#include <algorithm>

namespace oxbow {
namespace {

class Lock {
 public:
  explicit Lock(pthread_mutex_t& mutex) : mutex_(mutex) { pthread_mutex_lock(&mutex_); }
  ~Lock() { pthread_mutex_unlock(&mutex_); }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

 private:
  pthread_mutex_t& mutex_;
};

}  // namespace

PlanCache::~PlanCache() {
  plan_.device.close();
  pthread_mutex_destroy(&mutex_);
}

// Cores and compiled code change no byte; what a lender lends is counted by its own plan.
bool PlanCache::holds(const SessionOptions& options) const {
  const SessionOptions& kept = plan_.options;
  return full_ && options.lender == nullptr && std::max(options.threads, 1u) == kept.threads &&
         options.backend == kept.backend && options.device == kept.device &&
         options.device_options == kept.device_options &&
         !(plan_.device && plan_.device.driver->is_lost(plan_.device.self));
}

bool PlanCache::find(const SessionOptions& options, SessionMemory* memory) {
  const Lock lock(mutex_);
  if (!holds(options)) return false;
  *memory = plan_.memory;
  return true;
}

bool PlanCache::take(const SessionOptions& options, SessionPlan* plan) {
  const Lock lock(mutex_);
  if (!holds(options)) return false;
  *plan = plan_;
  plan->options.cpu_mask = options.cpu_mask;
  if (plan_.device) {
    plan_ = {};
    full_ = false;
  }
  return true;
}

void PlanCache::keep(const SessionPlan& plan) {
  Device before;
  {
    const Lock lock(mutex_);
    before = plan_.device;
    plan_ = plan;
    full_ = true;
  }
  before.close();
}

}  // namespace oxbow
