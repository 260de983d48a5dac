#include "runtime/api/log.h"

#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "runtime/base/cpu.h"
#include "schema/model_generated.h"

namespace oxbow {
namespace {

/// Part of a line. What does not fit is left out.
class Words {
 public:
  [[gnu::format(printf, 2, 3)]] void add(const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    const size_t room = sizeof(text_) - length_;
    const int written = std::vsnprintf(text_ + length_, room, format, arguments);
    va_end(arguments);
    if (written > 0)
      length_ += static_cast<size_t>(written) < room ? static_cast<size_t>(written) : room - 1;
  }
  const char* text() const { return text_; }

 private:
  char text_[160] = {};
  size_t length_ = 0;
};

/// Whether a step before this one has the same op and is the CPU's too.
bool was_named(const Session& session, size_t step) {
  for (size_t i = 0; i < step; ++i) {
    const BoundStep& other = session.steps[i];
    if (!other.on_device() && std::strcmp(other.op, session.steps[step].op) == 0) return true;
  }
  return false;
}

void log_left_to_cpu(const Session& session, const char* backend) {
  size_t left = 0;
  Words ops;
  for (size_t i = 0; i < session.steps.size(); ++i) {
    if (session.steps[i].on_device()) continue;
    if (!was_named(session, i)) ops.add("%s%s", left == 0 ? "" : ", ", session.steps[i].op);
    ++left;
  }
  if (left == 0) return;
  session.model->log(Log::kInfo, "%s leaves %zu of %zu steps to the CPU: %s", backend, left,
                     session.steps.size(), ops.text());
}

/// Steps by who computes them, in the order in which they come first.
Words count_providers(const Session& session) {
  Words words;
  const auto provider = [&](size_t step) { return session.steps[step].provider; };
  for (size_t i = 0; i < session.steps.size(); ++i) {
    size_t count = 0;
    bool counted = false;
    for (size_t j = 0; j < session.steps.size(); ++j) {
      if (std::strcmp(provider(i), provider(j)) != 0) continue;
      counted = counted || j < i;
      ++count;
    }
    if (!counted) words.add("%s%zu %s", i == 0 ? "" : ", ", count, provider(i));
  }
  return words;
}

Words kernels(const Session& session) {
  Words words;
  const bool reference = session.options.backend == Backend::kReference;
  for (const Isa isa : {Isa::kAvx2, Isa::kNeon, Isa::kNeonDotprod, Isa::kNeonI8mm}) {
    if (!reference && cpu_supports(isa)) words.add(" %s", isa_name(isa));
  }
  if (words.text()[0] == '\0') words.add(" plain");
  return words;
}

const char* end_name(oxb_end end) {
  switch (end) {
    case OXB_END_OF_TEXT:
      return "end of text";
    case OXB_END_MAX_TOKENS:
      return "as many tokens as wanted";
    case OXB_END_STOP_TEXT:
      return "stop text";
    case OXB_END_CANCELLED:
      return "cancelled";
    case OXB_END_STREAM_FULL:
      return "stream full";
    case OXB_END_CONSTRAINT:
      return "constraint met";
    default:
      return "unknown";
  }
}

unsigned long long number(uint64_t value) { return value; }

}  // namespace

void log_opened(const Model& model) {
  if (model.log.write == nullptr) return;
  const char* where = model.mapping != nullptr      ? "mapped"
                      : model.allocation != nullptr ? "read"
                                                    : "in the caller's memory";
  const schema::Metadata& metadata = *model.graph->metadata();
  size_t steps = 0;
  for (size_t e = 0; e < model.entry_count(); ++e) steps += model.entry(e).steps()->size();
  model.log(Log::kInfo, "model opened: %.40s, %zu steps, %llu parameters, %zu bytes, %s",
            metadata.architecture()->c_str(), steps, number(metadata.parameters()),
            model.file_bytes, where);
}

void log_created(const Session& session, const char* backend, size_t arena_bytes) {
  const Log& log = session.model->log;
  if (log.write == nullptr) return;
  log(Log::kInfo, "session created: %s, threads: %u, steps: %s, kernels:%s, arena: %zu bytes",
      backend, session.options.threads, count_providers(session).text(), kernels(session).text(),
      arena_bytes);
  if (session.device) log_left_to_cpu(session, backend);
}

void log_refused(const Model& model, const char* backend, const Error& why) {
  model.log(Log::kWarning, "no session%s%s: %.200s", backend == nullptr ? "" : " on ",
            backend == nullptr ? "" : backend, why.text);
}

void log_end(const Model& model, const oxb_generation& text) {
  model.log(Log::kInfo, "text ended: %s, %llu + %llu tokens, position %llu, %.3f + %.3f ms",
            end_name(text.end), number(text.prompt_tokens), number(text.tokens),
            number(text.position), static_cast<double>(text.prompt_nanoseconds) * 1e-6,
            static_cast<double>(text.token_nanoseconds) * 1e-6);
}

}  // namespace oxbow
