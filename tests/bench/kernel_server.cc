// One int8 matrix product, or one limit of the machine, at a time and on demand, for
// compare_kernels: waits for commands on standard input and answers each with a line of JSON.
//
//   oxbow KERNEL DEPTH CHANNELS ROWS SECONDS    KERNEL: i8, as int8 models run it
//   xnnpack KERNEL DEPTH CHANNELS ROWS SECONDS  KERNEL: qs8, a fully connected layer; qc8, a 1x1 convolution with a
//                                               scale per channel
//   limit NAME THREADS SECONDS                  NAME: multiply, read1, read4 (machine_limits.h)
//
// The answer tells how often it ran in about so many seconds, the seconds and the processor seconds. Everything is made
// and set up before, run once to warm up, and kept for the next time.

#include <time.h>
#include <xnnpack.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "ops/linear/linear.h"
#include "ops/testing/op_runner.h"
#include "tests/bench/machine_limits.h"

namespace oxbow {
namespace {

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "oxbow_bench_peers: %s\n", what.c_str());
  std::exit(3);
}

struct Shape {
  uint32_t depth, channels, rows;
};

/// Something that can be run again and again.
class Product {
 public:
  virtual ~Product() = default;
  virtual void run() = 0;
};

/// The op as a session runs it: its way of cutting into pieces, the kernel it picks here.
class OxbowI8 : public Product {
 public:
  explicit OxbowI8(const Shape& shape)
      : x_(testing::i8_tensor("x", shape.rows, shape.depth)),
        weight_(testing::block_tensor("weight", shape.channels, shape.depth)),
        y_(testing::f32_tensor("y", shape.rows, shape.channels)),
        op_(bind_linear) {
    testing::fill_uniform(x_, 1);
    testing::fill_uniform(weight_, 2);
    op_.options(schema::LinearOptionsT());
    op_.inputs = {&x_, &weight_};
    op_.outputs = {&y_};
    op_.reference_only = false;
    if (op_.bind() != Status::kOk) fail(op_.message());
  }
  void run() override {
    if (op_.run() != Status::kOk) fail(op_.message());
  }

 private:
  testing::TestTensor x_, weight_, y_;
  testing::OpRunner op_;
};

class Xnnpack : public Product {
 public:
  Xnnpack(const std::string& kernel, const Shape& shape)
      : input_(size_t{shape.rows} * shape.depth + kOverread),
        weight_(size_t{shape.channels} * shape.depth),
        output_(size_t{shape.rows} * shape.channels + kOverread),
        bias_(shape.channels),
        scales_(shape.channels, 0.01f) {
    uint32_t state = 1;
    for (auto* codes : {&input_, &weight_}) {
      for (int8_t& code : *codes) {
        state = state * 1664525u + 1013904223u;
        code = static_cast<int8_t>(static_cast<int>(state >> 24) % 255 - 127);
      }
    }
    check(xnn_initialize(nullptr));
    if (kernel == "qs8") {
      check(xnn_create_fully_connected_nc_qs8(shape.depth, shape.channels, shape.depth,
                                              shape.channels, 0, 0.01f, 0.01f, weight_.data(),
                                              bias_.data(), 0, 1.0f, -127, 127, 0, &operator_));
      check(xnn_setup_fully_connected_nc_qs8(operator_, shape.rows, input_.data(), output_.data(),
                                             nullptr));
    } else if (kernel == "qc8") {
      check(xnn_create_convolution2d_nhwc_qc8(0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, shape.depth,
                                              shape.channels, shape.depth, shape.channels, 0, 0.01f,
                                              scales_.data(), weight_.data(), bias_.data(), 0, 1.0f,
                                              -127, 127, 0, &operator_));
      check(xnn_setup_convolution2d_nhwc_qc8(operator_, 1, 1, shape.rows, input_.data(),
                                             output_.data(), nullptr));
    } else {
      fail("unknown kernel '" + kernel + "'");
    }
  }
  ~Xnnpack() override { xnn_delete_operator(operator_); }
  void run() override { check(xnn_run_operator(operator_, nullptr)); }

 private:
  static constexpr size_t kOverread = XNN_EXTRA_BYTES;

  static void check(xnn_status status) {
    if (status != xnn_status_success) fail("XNNPACK: status " + std::to_string(status));
  }

  std::vector<int8_t> input_, weight_, output_;
  std::vector<int32_t> bias_;
  std::vector<float> scales_;
  xnn_operator_t operator_ = nullptr;
};

double processor_seconds() {
  timespec time = {};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

double wall_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// `batch` runs between looks at the clock, `amount` units of work each.
void measure(const std::function<void()>& run, size_t batch, double amount, double seconds) {
  run();
  const double processor = processor_seconds();
  const double start = wall_seconds();
  size_t runs = 0;
  double now = start;
  // The fastest batch: what it does while nothing else runs.
  double fastest = 1e30;
  while (now - start < seconds) {
    for (size_t i = 0; i < batch; ++i) run();
    runs += batch;
    const double then = now;
    now = wall_seconds();
    if (now - then < fastest) fastest = now - then;
  }
  std::printf(
      "{\"runs\": %zu, \"amount\": %.0f, \"seconds\": %.9f, \"processor\": %.9f, \"fastest\": "
      "%.9f}\n",
      runs, amount, now - start, processor_seconds() - processor,
      fastest / static_cast<double>(batch));
}

std::unique_ptr<Product> make(const std::string& who, const std::string& kernel,
                              const Shape& shape) {
  if (who == "xnnpack") return std::make_unique<Xnnpack>(kernel, shape);
  if (who == "oxbow" && kernel == "i8") return std::make_unique<OxbowI8>(shape);
  fail("unknown product '" + who + " " + kernel + "'");
}

void answer(const std::string& line, std::map<std::string, std::unique_ptr<Product>>* products) {
  std::istringstream words(line);
  std::string who, kernel;
  words >> who >> kernel;
  double seconds = 0;
  if (who == "limit") {
    size_t threads = 0;
    words >> threads >> seconds;
    if (!words || threads < 1) fail("expected: limit NAME THREADS SECONDS");
    const bench::Limit limit = bench::make_limit(kernel, threads);
    if (!limit.run) fail("unknown limit '" + kernel + "'");
    measure(limit.run, 1, limit.amount, seconds);
  } else {
    Shape shape = {};
    words >> shape.depth >> shape.channels >> shape.rows;
    const std::string key = line.substr(0, static_cast<size_t>(words.tellg()));
    words >> seconds;
    if (!words) fail("expected: WHO KERNEL DEPTH CHANNELS ROWS SECONDS");
    std::unique_ptr<Product>& product = (*products)[key];
    if (product == nullptr) product = make(who, kernel, shape);
    const double amount = double{1} * shape.depth * shape.channels * shape.rows;
    // About 0.1 ms, so that looking at the clock costs nothing.
    const auto batch = static_cast<size_t>(1.0 + 5e6 / amount);
    measure([&] { product->run(); }, batch, amount, seconds);
  }
  std::fflush(stdout);
}

}  // namespace
}  // namespace oxbow

int main() {
  std::printf("{\"name\": \"Oxbow and XNNPACK\", \"version\": \"\"}\n");
  std::fflush(stdout);
  std::map<std::string, std::unique_ptr<oxbow::Product>> products;
  for (std::string line; std::getline(std::cin, line) && line != "quit";) {
    oxbow::answer(line, &products);
  }
  return 0;
}
