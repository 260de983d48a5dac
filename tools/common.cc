#include "tools/common.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#if defined(__GLIBC__)
#include <malloc.h>
#endif

#include "host/describe.h"

namespace oxbow::tools {

namespace {

/// The library's, in the order of their numbers.
std::vector<std::string> backend_names() {
  std::vector<std::string> names;
  while (const char* name = oxb_backend_name(static_cast<oxb_backend>(names.size()))) {
    names.emplace_back(name);
  }
  return names;
}

bool is_built_in(size_t backend) {
  return oxb_backend_is_built_in(static_cast<oxb_backend>(backend)) != 0;
}

oxb_backend backend_of(const std::string& wanted) {
  const std::vector<std::string> names = backend_names();
  for (size_t i = 0; i < names.size(); ++i) {
    if (wanted != names[i]) continue;
    if (is_built_in(i)) return static_cast<oxb_backend>(i);
    std::string option = "OXBOW_WITH_" + wanted;
    std::transform(option.begin(), option.end(), option.begin(),
                   [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c; });
    throw UsageError("--backend " + wanted + " is not in this build: configure it with -D" +
                     option + "=ON");
  }
  throw UsageError("--backend " + wanted + " does not exist");
}

/// npu:NAME, where NAME is that of a plug-in or the path of one. Its settings are KEY=VALUE each.
std::shared_ptr<oxb::Npu> open_npu(const std::string& name,
                                   const std::vector<std::string>& settings) {
  std::vector<std::string> words;
  for (const std::string& setting : settings) {
    const size_t sign = setting.find('=');
    if (sign == std::string::npos) {
      throw UsageError("--npu-option " + setting + " is no KEY=VALUE");
    }
    words.push_back(setting.substr(0, sign));
    words.push_back(setting.substr(sign + 1));
  }
  std::vector<const char*> keys, values;
  for (size_t i = 0; i < words.size(); i += 2) {
    keys.push_back(words[i].c_str());
    values.push_back(words[i + 1].c_str());
  }
  oxb::NpuOptions options;
  options.plugin = name.c_str();
  options.keys = keys.data();
  options.values = values.data();
  options.key_count = keys.size();
  options.log = [](void*, oxb_log_level level, const char* text) {
    if (level >= OXB_LOG_WARNING) std::fprintf(stderr, "oxbow: %s\n", text);
  };
  oxb::Expected<oxb::Npu> npu = oxb::Npu::open(options);
  if (!npu) throw InputError("--backend npu:" + name + ": " + npu.status().text());
  return std::make_shared<oxb::Npu>(std::move(*npu));
}

void read_npu_options(const Args& args, CommonOptions& options) {
  constexpr std::string_view kPrefix = "npu:";
  const std::string& name = options.backend;
  if (name == "npu") throw UsageError("--backend npu needs a plug-in: npu:NAME or npu:PATH");
  if (!name.starts_with(kPrefix)) {
    for (const char* option : {"npu-option", "npu-rows", "npu-shadow"}) {
      if (args.has(option)) {
        throw UsageError(std::string("--") + option + " needs --backend npu:NAME");
      }
    }
    return;
  }
  options.session.backend = backend_of("npu");
  options.npu = open_npu(name.substr(kPrefix.size()), args.texts("npu-option"));
  options.session.npu = options.npu->get();
  options.session.npu_least_rows = static_cast<uint32_t>(args.integer("npu-rows", 0, 1, 1 << 24));
  options.session.npu_shadow = args.has("npu-shadow") ? 1 : 0;
}

/// The tool's own thread is one of those that work, and is placed at once.
uint64_t cpu_mask_of(const Args& args) {
  const std::optional<std::string> text = args.text("cpu-mask");
  if (!text) return 0;
  uint64_t mask = 0;
  const char* end = text->data() + text->size();
  const char* begin = text->rfind("0x", 0) == 0 ? text->data() + 2 : text->data();
  const auto [stop, error] = std::from_chars(begin, end, mask, 16);
  if (error != std::errc() || stop != end || mask == 0) {
    throw UsageError("--cpu-mask " + *text + " is not a hexadecimal number above 0");
  }
  cpu_set_t cores;
  CPU_ZERO(&cores);
  for (int core = 0; core < 64; ++core) {
    if ((mask >> core & 1) != 0) CPU_SET(core, &cores);
  }
  if (sched_setaffinity(0, sizeof(cores), &cores) != 0) {
    throw UsageError("--cpu-mask " + *text + " names no core of this machine");
  }
  return mask;
}

}  // namespace

void add_common_options(Args& args) {
  args.option("threads", "N", "threads that work on a run (default 1)", 't');
  std::string built_in;
  const std::vector<std::string> names = backend_names();
  for (size_t i = 0; i < names.size(); ++i) {
    if (!is_built_in(i)) continue;
    built_in += (built_in.empty() ? "" : ", ") + names[i] + (i == OXB_BACKEND_NPU ? ":NAME" : "");
  }
  args.option("backend", "NAME", "built in are " + built_in + " (default auto)");
  if (oxb_backend_is_built_in(OXB_BACKEND_NPU) != 0) {
    args.repeated("npu-option", "KEY=VALUE", "with --backend npu:NAME: a setting of the plug-in");
    args.option("npu-rows", "N", "layers with fewer rows stay on the CPU (default 8)");
    args.flag("npu-shadow",
              "the CPU computes its layers too, and is believed; tells how they differ");
  }
  args.option("cpu-mask", "HEX", "cores to run on, bit i being core i, e.g. f0 for cores 4 to 7");
  args.option("memory", "BYTES", "refuse when a session needs more; K, M and G are understood");
}

CommonOptions read_common_options(const Args& args) {
  CommonOptions options;
  options.session.threads = static_cast<uint32_t>(args.integer("threads", 1, 1, 256));
  options.backend = args.text("backend", "auto");
  if (!options.backend.starts_with("npu")) {
    options.backend = args.choice("backend", "auto", backend_names());
    options.session.backend = backend_of(options.backend);
  }
  read_npu_options(args, options);
  options.session.cpu_mask = cpu_mask_of(args);
  options.memory_limit = args.size("memory", UINT64_MAX, 1, UINT64_MAX);
  return options;
}

void check(const oxb::Status& status, const std::string& what) {
  if (!status.ok()) throw InputError(what + ": " + status.text());
}

oxb::Model open_model(const std::string& path, const CommonOptions* planned) {
  oxb_open_options options = oxb::OpenOptions();
  if (planned != nullptr) options.session = &planned->session;
  options.log = [](void*, oxb_log_level level, const char* text) {
    if (level >= OXB_LOG_WARNING) std::fprintf(stderr, "oxbow: %s\n", text);
  };
  oxb::Expected<oxb::Model> model = oxb::Model::open(path.c_str(), options);
  check(model.status(), path);
  return std::move(*model);
}

oxb_plan session_memory(const oxb::Model& model, const std::string& path,
                        const CommonOptions& options) {
  const oxb::Expected<oxb_plan> memory = model.plan(options.session);
  check(memory.status(), path);
  if (memory->arena_bytes > options.memory_limit) {
    throw InputError(path + ": a session needs " + size_text(memory->arena_bytes) +
                     "; --memory allows " + size_text(options.memory_limit));
  }
  return *memory;
}

oxb::Session open_session(const oxb::Model& model, const std::string& path,
                          const CommonOptions& options) {
  const oxb_plan memory = session_memory(model, path, options);
  oxb::Expected<oxb::Session> session = oxb::Session::create(model, options.session);
  check(session.status(), path);
  // A library behind the backend takes memory of its own, and tells how much only then.
  const uint64_t all = memory.arena_bytes + session->backend_bytes();
  if (all > options.memory_limit) {
    throw InputError(path + ": a session needs " + size_text(all) + " with backend " +
                     options.backend + "; --memory allows " + size_text(options.memory_limit));
  }
  return std::move(*session);
}

void report_npu(const oxb::Session& session) {
  const oxb::Expected<oxb_npu_report> report = session.npu_report();
  if (!report) return;
  std::fprintf(stderr, "npu: %s; %s with %s there in %.3f s, %s on the CPU\n",
               count_text(report->layers, "layer").c_str(), count_text(report->runs, "run").c_str(),
               count_text(report->rows, "row").c_str(),
               static_cast<double>(report->nanoseconds) * 1e-9,
               count_text(report->cpu_runs, "run").c_str());
  if (report->compared != 0) {
    std::fprintf(stderr, "npu: shadow: %llu of %llu numbers differ, by at most %g (step %u)\n",
                 static_cast<unsigned long long>(report->different),
                 static_cast<unsigned long long>(report->compared),
                 static_cast<double>(report->largest_difference), report->largest_step);
  }
  if (report->failed != 0) std::fprintf(stderr, "npu: the plug-in failed: %s\n", report->failure);
}

ResidentMemory resident_memory() {
  const int fd = ::open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return {};
  char text[128];
  const ssize_t count = ::read(fd, text, sizeof(text) - 1);
  ::close(fd);
  if (count <= 0) return {};
  text[count] = '\0';
  unsigned long long total = 0, resident = 0, file = 0;
  if (std::sscanf(text, "%llu %llu %llu", &total, &resident, &file) != 3) return {};
  const auto page = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  return {resident * page, (resident - std::min(file, resident)) * page};
}

std::optional<uint64_t> heap_bytes() {
#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 33)
  const struct mallinfo2 info = ::mallinfo2();
  return info.uordblks + info.hblkhd;
#else
  return std::nullopt;
#endif
}

static double seconds_of(clockid_t clock) {
  timespec time = {};
  if (::clock_gettime(clock, &time) != 0) return 0.0;
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

double thread_seconds() { return seconds_of(CLOCK_THREAD_CPUTIME_ID); }
double process_seconds() { return seconds_of(CLOCK_PROCESS_CPUTIME_ID); }

uint64_t involuntary_switches() {
  rusage usage = {};
  return ::getrusage(RUSAGE_SELF, &usage) == 0 ? static_cast<uint64_t>(usage.ru_nivcsw) : 0;
}

std::string duration_text(double seconds) {
  const auto all = static_cast<uint64_t>(std::min(std::max(seconds, 0.0) + 0.5, 1e9));
  if (all < 120) return format("%llu s", static_cast<unsigned long long>(all));
  if (all < 7200) return format("%llu min", static_cast<unsigned long long>(all / 60));
  return format("%.1f h", static_cast<double>(all) / 3600);
}

Progress::Progress() : terminal_(::isatty(STDERR_FILENO) == 1) {}

Progress::~Progress() { clear(); }

void Progress::clear() {
  if (shown_) std::fputs("\r\033[K", stderr);
  shown_ = false;
}

void Progress::show(const char* what, uint64_t done, uint64_t total) {
  if (!due()) return;
  const double seconds = since_.seconds();
  std::string text = std::string(what) + " " + grouped_text(done);
  if (total > 0) text += " of " + grouped_text(total);
  // Rates of less are noise, and that of a pipe is that of who writes.
  if (seconds >= 0.5 && done > 0 && total > 0) {
    const double rate = static_cast<double>(done) / seconds;
    text += format(", %s/s", grouped_text(static_cast<uint64_t>(rate)).c_str());
    if (total >= done) {
      text += format(", %s left", duration_text(static_cast<double>(total - done) / rate).c_str());
    }
  }
  say(text);
}

void Progress::say(const std::string& text) {
  if (!due()) return;
  next_ = since_.seconds() + 0.1;
  shown_ = true;
  std::fprintf(stderr, "\r\033[K%s", text.c_str());
  std::fflush(stderr);
}

std::string format(const char* text, ...) {
  va_list arguments, again;
  va_start(arguments, text);
  va_copy(again, arguments);
  const int length = std::vsnprintf(nullptr, 0, text, arguments);
  va_end(arguments);
  std::string out(static_cast<size_t>(std::max(length, 0)), '\0');
  std::vsnprintf(out.data(), out.size() + 1, text, again);
  va_end(again);
  return out;
}

int32_t argmax(std::span<const float> logits) {
  return static_cast<int32_t>(
      std::distance(logits.begin(), std::max_element(logits.begin(), logits.end())));
}

int32_t RandomTokens::next() {
  state_ += 0x9e3779b97f4a7c15ull;
  uint64_t z = state_;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  z ^= z >> 31;
  return static_cast<int32_t>((z >> 32) * vocabulary_ >> 32);
}

}  // namespace oxbow::tools
