// Runs one model for the scripts of this folder, which measure it beside others: a process that
// waits for commands on standard input and answers each with one line of JSON. The servers of the
// other programs know the same commands (README.md).
//
//   oxbow_bench_session MODEL [THREADS [vulkan]]

#include <time.h>

#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include "runtime/api/oxbow.hpp"

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// Processor time of all threads.
double processor_seconds() {
  timespec time = {};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

/// Bytes of a line of /proc/self/status, such as "VmHWM:"; 0 when there is none.
uint64_t status_bytes(const char* name) {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind(name, 0) == 0) return std::stoull(line.substr(std::strlen(name))) * 1024;
  }
  return 0;
}

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "oxbow_bench_session: %s\n", what.c_str());
  std::exit(3);
}

void check(const oxb::Status& status) {
  if (!status.ok()) fail(status.text());
}

/// A stream that can be fed as a prompt or token by token.
class Stream {
 public:
  Stream(const oxb::Model& model, oxb::Session session)
      : session_(std::move(session)),
        max_segment_(model.info().max_segment),
        width_(model.info().output_width),
        logits_(width_) {}

  std::map<std::string, std::vector<std::byte>> states;

  oxb::Session& session() { return session_; }
  std::span<const float> logits() const { return logits_; }

  /// A text through an encoder: a row for each token.
  void encode(std::span<const int32_t> tokens) {
    logits_.resize(tokens.size() * width_);
    check(session_.run(tokens, logits_));
  }

  /// The logits of the last token only, as a prompt needs them.
  void feed(std::span<const int32_t> tokens) {
    while (!tokens.empty()) {
      const auto part = tokens.first(std::min(tokens.size(), max_segment_));
      tokens = tokens.subspan(part.size());
      check(session_.run(part, tokens.empty() ? std::span<float>(logits_) : std::span<float>()));
    }
  }

 private:
  oxb::Session session_;
  size_t max_segment_;
  size_t width_;
  std::vector<float> logits_;
};

/// Numbers between spaces.
std::vector<int32_t> numbers(std::string_view text) {
  std::vector<int32_t> values;
  const char* at = text.data();
  const char* end = at + text.size();
  while (at < end) {
    if (*at == ' ') {
      ++at;
      continue;
    }
    int32_t value = 0;
    const auto [next, error] = std::from_chars(at, end, value);
    if (error != std::errc()) fail("expected numbers after the command");
    values.push_back(value);
    at = next;
  }
  return values;
}

void print_memory() {
  std::printf("{\"peak\": %llu, \"resident\": %llu, \"anonymous\": %llu}\n",
              static_cast<unsigned long long>(status_bytes("VmHWM:")),
              static_cast<unsigned long long>(status_bytes("VmRSS:")),
              static_cast<unsigned long long>(status_bytes("RssAnon:")));
}

/// With the start token a translation has one more than it is long; none may end earlier.
void print_translation(Stream& stream, uint32_t beams, uint32_t length,
                       std::span<const int32_t> text) {
  oxb::BeamOptions options;
  options.beams = beams;
  options.max_tokens = options.min_tokens = length + 1;
  auto search = oxb::BeamSearch::create(stream.session(), options);
  if (!search) fail(search.status().text());
  const double processor = processor_seconds();
  const auto start = Clock::now();
  check(stream.session().encode(text));
  check(search->run());
  const double seconds = seconds_since(start);
  std::printf("{\"seconds\": %.9f, \"processor\": %.9f, \"tokens\": [", seconds,
              processor_seconds() - processor);
  const auto best = search->result(0);
  for (size_t i = 1; i < best->tokens.size(); ++i) {
    std::printf("%s%d", i > 1 ? ", " : "", best->tokens[i]);
  }
  std::puts("]}");
}

void answer(Stream& stream, const std::string& line) {
  const size_t space = std::min(line.find(' '), line.size());
  const std::string command = line.substr(0, space);
  if (command == "prompt" || command == "feed" || command == "encode") {
    // At the beginning of a stream or further on: the time until the logits behind it are there. A text of its own: all.
    const std::vector<int32_t> tokens = numbers(line.substr(space));
    if (command == "prompt") stream.session().reset();
    const double processor = processor_seconds();
    const auto start = Clock::now();
    command == "encode" ? stream.encode(tokens) : stream.feed(tokens);
    const double seconds = seconds_since(start);
    std::printf("{\"seconds\": %.9f, \"processor\": %.9f}\n", seconds,
                processor_seconds() - processor);
  } else if (command == "decode") {
    // One after another; the time of each.
    const std::vector<int32_t> tokens = numbers(line.substr(space));
    std::vector<double> seconds;
    const double processor = processor_seconds();
    for (const int32_t token : tokens) {
      const auto start = Clock::now();
      stream.feed({&token, 1});
      seconds.push_back(seconds_since(start));
    }
    std::printf("{\"processor\": %.9f, \"seconds\": [", processor_seconds() - processor);
    for (size_t i = 0; i < seconds.size(); ++i)
      std::printf("%s%.9f", i > 0 ? ", " : "", seconds[i]);
    std::puts("]}");
  } else if (command == "translate") {
    // Beams, then the length of the translation, then the text.
    const std::vector<int32_t> given = numbers(line.substr(space));
    if (given.size() < 3) fail("translate needs beams, a length and a text");
    print_translation(stream, static_cast<uint32_t>(given[0]), static_cast<uint32_t>(given[1]),
                      std::span(given).subspan(2));
  } else if (command == "save" || command == "load") {
    // A state by its name, to go on from it in the same memory.
    std::vector<std::byte>& state = stream.states[line.substr(space)];
    if (command == "save") {
      state.resize(stream.session().state_bytes());
      check(stream.session().save(state));
    } else {
      check(stream.session().load(state));
    }
    std::printf("{\"position\": %llu}\n",
                static_cast<unsigned long long>(stream.session().position()));
  } else if (command == "keep") {
    // What is kept is decided by the file: a full ring stays full.
    std::puts("{}");
  } else if (command == "logits") {
    std::ofstream file(line.substr(space + 1), std::ios::binary);
    file.write(reinterpret_cast<const char*>(stream.logits().data()),
               static_cast<std::streamsize>(stream.logits().size_bytes()));
    if (!file.flush()) fail("cannot write " + line.substr(space + 1));
    std::puts("{}");
  } else if (command == "memory") {
    print_memory();
  } else {
    fail("unknown command '" + command + "'");
  }
  std::fflush(stdout);
}

/// What a device says of each entry point, for a list in JSON: submissions, dispatches and barriers for few rows, and both for many.
void add_commands(void* context, oxb_log_level, const char* text) {
  const char* at = std::strstr(text, " on Vulkan: ");
  unsigned numbers[5] = {};
  if (at == nullptr ||
      std::sscanf(
          at,
          " on Vulkan: %u submissions, for few rows %u dispatches and %u barriers, for many "
          "%u and %u",
          &numbers[0], &numbers[1], &numbers[2], &numbers[3], &numbers[4]) != 5) {
    return;
  }
  std::string& list = *static_cast<std::string*>(context);
  list += list.empty() ? "[" : ", [";
  for (size_t i = 0; i < 5; ++i) list += (i == 0 ? "" : ", ") + std::to_string(numbers[i]);
  list += "]";
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2 || argc > 4 || (argc == 4 && std::strcmp(argv[3], "vulkan") != 0)) {
    std::fprintf(stderr, "usage: oxbow_bench_session MODEL [THREADS [vulkan]]\n");
    return 2;
  }
  oxb::SessionOptions options;
  options.threads = argc > 2 ? static_cast<uint32_t>(std::stoul(argv[2])) : 1;
  if (argc == 4) options.backend = OXB_BACKEND_VULKAN;
  const uint64_t before = status_bytes("VmRSS:");
  const uint64_t anonymous_before = status_bytes("RssAnon:");

  const double processor = processor_seconds();
  const auto start = Clock::now();
  std::string commands;
  oxb_open_options open_options = oxb::OpenOptions();
  open_options.log = add_commands;
  open_options.log_context = &commands;
  auto model = oxb::Model::open(argv[1], open_options);
  if (!model) fail(model.status().text());
  const double open = seconds_since(start);
  auto session = oxb::Session::create(*model, options);
  if (!session) fail(session.status().text());
  const double load = seconds_since(start);
  const double load_processor = processor_seconds() - processor;

  const uint64_t arena = session->arena_bytes();
  std::printf(
      "{\"name\": \"Oxbow\", \"version\": \"%d.%d.%d\", \"open_seconds\": %.9f, \"load_seconds\": "
      "%.9f, \"load_processor\": %.9f, \"before\": %llu, \"grown\": %llu, \"anonymous_grown\": "
      "%llu, \"arena\": %llu, "
      "\"commands\": [%s], \"vocabulary\": %u}\n",
      OXB_VERSION_MAJOR, OXB_VERSION_MINOR, OXB_VERSION_PATCH, open, load, load_processor,
      static_cast<unsigned long long>(before),
      static_cast<unsigned long long>(status_bytes("VmRSS:") - before),
      static_cast<unsigned long long>(status_bytes("RssAnon:") - anonymous_before),
      static_cast<unsigned long long>(arena), commands.c_str(), model->info().vocabulary);
  std::fflush(stdout);

  Stream stream(*model, std::move(*session));
  for (std::string line; std::getline(std::cin, line) && line != "quit";) answer(stream, line);
  return 0;
}
