// Runs a fuzz target on changed copies of good inputs, for a given time. It needs no compiler but the one that builds
// everything else; with Clang, a target links with libFuzzer just as well.
//
//   fuzz_TARGET [--seconds N] [--seed N] FILE_OR_DIRECTORY...
//
// Every file is tried as it is, then they are changed and mixed by a generator whose seed is printed, so that a run can
// be repeated. An input on which the target crashes, or that takes more than a minute of a processor, or ten in which it
// waits, is written to crash-<target>.bin in the current directory.

#include <fcntl.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
// Of the sanitizers, where they are.
extern "C" __attribute__((weak)) void __sanitizer_set_death_callback(void (*callback)());

namespace {

using Bytes = std::vector<uint8_t>;

constexpr size_t kMaxInput = size_t{1} << 20;
// Of processors: what else a machine does says nothing about an input. And of a clock, for what waits for ever.
constexpr unsigned kSecondsForOneInput = 60;
constexpr unsigned kSecondsToWait = 600;

// Stays when everything else is gone: what is lost is told at the very end.
std::string& crash_name = *new std::string();
const uint8_t* current = nullptr;
size_t current_size = 0;

/// Only what a signal handler may call.
void write_current() {
  const int fd = ::open(crash_name.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  if (fd < 0) return;
  for (size_t done = 0; done < current_size;) {
    const ssize_t wrote = ::write(fd, current + done, current_size - done);
    if (wrote <= 0) break;
    done += static_cast<size_t>(wrote);
  }
  ::close(fd);
  constexpr char kText[] = "\nthe input is in ";
  static_cast<void>(!::write(STDERR_FILENO, kText, sizeof(kText) - 1));
  static_cast<void>(!::write(STDERR_FILENO, crash_name.data(), crash_name.size()));
  static_cast<void>(!::write(STDERR_FILENO, "\n", 1));
}

void on_signal(int number) {
  write_current();
  std::signal(number, SIG_DFL);
  ::raise(number);
}

/// 0 seconds: none.
void set_limits(unsigned of_processor, unsigned of_clock) {
  itimerval limit = {};
  limit.it_value.tv_sec = of_processor;
  ::setitimer(ITIMER_PROF, &limit, nullptr);
  ::alarm(of_clock);
}

void try_one(const Bytes& input) {
  // A copy of exactly this size, so that the sanitizer sees the first byte read beyond it.
  const auto exact = std::make_unique<uint8_t[]>(input.size());
  std::copy(input.begin(), input.end(), exact.get());
  current = exact.get();
  current_size = input.size();
  set_limits(kSecondsForOneInput, kSecondsToWait);
  LLVMFuzzerTestOneInput(exact.get(), input.size());
  set_limits(0, 0);
  current_size = 0;
}

class Mutator {
 public:
  Mutator(uint64_t seed, const std::vector<Bytes>& corpus) : random_(seed), corpus_(corpus) {}

  Bytes next() {
    Bytes out = corpus_[below(corpus_.size())];
    for (size_t changes = 1 + below(below(4) == 0 ? 16 : 3); changes > 0; --changes) change(out);
    if (out.size() > kMaxInput) out.resize(kMaxInput);
    return out;
  }

 private:
  size_t below(size_t bound) { return bound == 0 ? 0 : random_() % bound; }
  auto at(Bytes& bytes, size_t place) { return bytes.begin() + static_cast<std::ptrdiff_t>(place); }

  /// Half of the time near the ends, where headers and directories are.
  size_t place(const Bytes& bytes) {
    const size_t near = std::min<size_t>(bytes.size(), 128);
    switch (below(4)) {
      case 0:
        return below(near);
      case 1:
        return bytes.size() - near + below(near);
      default:
        return below(bytes.size());
    }
  }

  void change(Bytes& out) {
    if (out.empty()) out.push_back(0);
    const size_t where = place(out);
    switch (below(8)) {
      case 0:
        out[where] ^= static_cast<uint8_t>(1u << below(8));
        break;
      case 1:
        out[where] = static_cast<uint8_t>(random_());
        break;
      case 2:
        out.resize(where);
        break;
      case 3:
      case 4:
        write_integer(out, where);
        break;
      case 5: {  // a part of itself or another input, inserted or over what was there
        const Bytes& from = corpus_[below(corpus_.size())];
        const size_t begin = below(from.size());
        const size_t size = std::min(from.size() - begin, 1 + below(below(2) == 0 ? 8 : 256));
        const Bytes part(from.begin() + static_cast<std::ptrdiff_t>(begin),
                         from.begin() + static_cast<std::ptrdiff_t>(begin + size));
        if (below(2) == 0) {
          out.insert(at(out, where), part.begin(), part.end());
        } else {
          std::copy_n(part.begin(), std::min(size, out.size() - where), at(out, where));
        }
        break;
      }
      case 6: {  // a part less
        const size_t size = std::min(out.size() - where, 1 + below(32));
        out.erase(at(out, where), at(out, where + size));
        break;
      }
      default: {  // the same bytes again and again
        const Bytes part(at(out, where), at(out, std::min(out.size(), where + 1 + below(16))));
        for (size_t times = 1 + below(64); times > 0; --times) {
          out.insert(at(out, where), part.begin(), part.end());
        }
      }
    }
  }

  void write_integer(Bytes& out, size_t where) {
    constexpr uint64_t kInteresting[] = {0,          1,
                                         0x7f,       0x80,
                                         0xff,       0x7fff,
                                         0xffff,     0x10000,
                                         0x7fffffff, 0x80000000,
                                         0xffffffff, uint64_t{1} << 32,
                                         INT64_MAX,  uint64_t{1} << 63,
                                         UINT64_MAX, uint64_t{1} << 61};
    uint64_t value = kInteresting[below(std::size(kInteresting))];
    if (below(3) == 0) value = out.size() + below(9) - 4;
    uint8_t bytes[8];
    std::memcpy(bytes, &value, 8);
    const size_t size = std::min<size_t>(size_t{1} << below(4), out.size() - where);
    std::copy_n(bytes, size, at(out, where));
  }

  std::mt19937_64 random_;
  const std::vector<Bytes>& corpus_;
};

void add_seed(const std::filesystem::path& path, std::vector<Bytes>& corpus) {
  std::ifstream file(path, std::ios::binary);
  corpus.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
}

}  // namespace

int main(int argc, char** argv) {
  double seconds = 2;
  uint64_t seed = 1;
  std::vector<Bytes> corpus;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--seconds" && i + 1 < argc) {
      seconds = std::atof(argv[++i]);
    } else if (argument == "--seed" && i + 1 < argc) {
      seed = std::strtoull(argv[++i], nullptr, 10);
    } else if (std::filesystem::is_directory(argument)) {
      std::vector<std::filesystem::path> files;
      for (const auto& entry : std::filesystem::directory_iterator(argument)) {
        if (entry.is_regular_file()) files.push_back(entry.path());
      }
      std::sort(files.begin(), files.end());
      for (const auto& file : files) add_seed(file, corpus);
    } else if (std::filesystem::exists(argument)) {
      add_seed(argument, corpus);
    } else {
      std::fprintf(stderr, "usage: %s [--seconds N] [--seed N] FILE_OR_DIRECTORY...\n", argv[0]);
      return 2;
    }
  }
  const std::string target = std::filesystem::path(argv[0]).filename().string();
  if (corpus.empty()) {
    std::fprintf(stderr, "%s: no seeds\n", target.c_str());
    return 2;
  }
  crash_name = "crash-" + target + ".bin";
  for (const int number : {SIGABRT, SIGALRM, SIGPROF}) std::signal(number, on_signal);
  if (__sanitizer_set_death_callback != nullptr) {
    // It has handlers of its own for the rest, which say more.
    __sanitizer_set_death_callback(write_current);
  } else {
    for (const int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL}) std::signal(number, on_signal);
  }

  std::printf("%s: seed %llu, %zu inputs, %g s\n", target.c_str(),
              static_cast<unsigned long long>(seed), corpus.size(), seconds);
  std::fflush(stdout);
  for (const Bytes& input : corpus) try_one(input);
  Mutator mutator(seed, corpus);
  uint64_t runs = 0;
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  for (; std::chrono::steady_clock::now() < end; ++runs) try_one(mutator.next());
  std::printf("%s: %llu runs\n", target.c_str(), static_cast<unsigned long long>(runs));
  return 0;
}
