#include "tools/bench/trace.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "tools/common.h"

namespace oxbow::tools {

Trace::Trace(const KernelFiles& files) : end_(format("E|%d\n", static_cast<int>(::getpid()))) {
  std::string tried;
  // The second is where it was before Linux 4.1, and still is on many phones.
  for (const char* name :
       {"/sys/kernel/tracing/trace_marker", "/sys/kernel/debug/tracing/trace_marker"}) {
    fd_ = ::open(files.path(name).c_str(), O_WRONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd_ >= 0) return;
    tried += (tried.empty() ? "" : ", ") + std::string(name) + ": " + std::strerror(errno);
  }
  throw InputError("--trace cannot write the kernel's trace (" + tried + ")");
}

Trace::~Trace() {
  if (fd_ >= 0) ::close(fd_);
}

std::string Trace::begin_text(const std::string& name) {
  return format("B|%d|%s\n", static_cast<int>(::getpid()), name.c_str());
}

void Trace::learn_step(void* entry, uint32_t, const char* op, const char* output, uint64_t) {
  static_cast<Entry*>(entry)->steps.push_back(begin_text(std::string(op) + " " + output));
}

void Trace::mark_step(void* trace, uint32_t, const char*, const char*, uint64_t) {
  Trace& self = *static_cast<Trace*>(trace);
  self.write(self.end_);
  if (++self.done_ < self.entry_->steps.size()) self.write(self.entry_->steps[self.done_]);
}

void Trace::begin_run(oxb::Session& session, size_t index) {
  entry_ = &entries_[index];
  done_ = 0;
  session.set_profile(&mark_step, this);
  write(entry_->begin);
  if (!entry_->steps.empty()) write(entry_->steps[0]);
}

void Trace::end_run(oxb::Session& session) {
  session.set_profile(nullptr, nullptr);
  // A run that failed left the section of a step open.
  if (done_ < entry_->steps.size()) write(end_);
  write(end_);
}

void Trace::write(const std::string& text) const {
  // The kernel takes a mark or drops it, as when tracing is off: neither is the benchmark's concern.
  [[maybe_unused]] const ssize_t count = ::write(fd_, text.data(), text.size());
}

}  // namespace oxbow::tools
