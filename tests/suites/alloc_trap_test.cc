// Nothing is allocated once a session exists, and every allocation before that may fail: this program replaces malloc,
// counts, and refuses.

#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <span>
#include <string>
#include <vector>

#include "host/testing/paths.h"
#include "runtime/api/oxbow.hpp"
#include "tests/support/golden.h"
#include "tests/support/npu.h"
#include "tests/support/tiny_checkpoint.h"

namespace {
// Any thread's allocations count, those of the session's own team included.
std::atomic<bool> trapping{false};
std::atomic<size_t> trapped{0};
// The trapped allocation that fails; 0: none.
std::atomic<size_t> failing{0};
// Allocated and not freed again while the trap was set.
std::atomic<ptrdiff_t> alive{0};

bool fails() {
  if (!trapping.load(std::memory_order_relaxed)) return false;
  return trapped.fetch_add(1, std::memory_order_relaxed) + 1 == failing;
}

void* note(void* made) {
  if (made != nullptr && trapping.load(std::memory_order_relaxed)) alive.fetch_add(1);
  return made;
}
}  // namespace

extern "C" {
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);
void __libc_free(void*);

void* malloc(size_t bytes) { return fails() ? nullptr : note(__libc_malloc(bytes)); }
void* calloc(size_t count, size_t bytes) {
  return fails() ? nullptr : note(__libc_calloc(count, bytes));
}
void* realloc(void* old, size_t bytes) {
  if (fails()) return nullptr;
  void* const made = __libc_realloc(old, bytes);
  return old == nullptr ? note(made) : made;
}
void* aligned_alloc(size_t alignment, size_t bytes) {
  return fails() ? nullptr : note(__libc_memalign(alignment, bytes));
}
int posix_memalign(void** out, size_t alignment, size_t bytes) {
  *out = fails() ? nullptr : note(__libc_memalign(alignment, bytes));
  return *out == nullptr ? 12 : 0;
}
void free(void* old) {
  if (old != nullptr && trapping.load(std::memory_order_relaxed)) alive.fetch_sub(1);
  __libc_free(old);
}
}

namespace oxbow::testing {
namespace {

TEST(AllocTrap, TheTrapSeesAllocations) {
  trapped = 0;
  trapping = true;
  void* volatile p = std::malloc(10);
  int* volatile q = new int(1);
  trapping = false;
  std::free(p);
  delete q;
  EXPECT_GE(trapped.load(), 2u);
}

// A model with no end token searches to the greatest length. The memory is static, so that it is there
// before the trap is set.
bool search_without_allocating(oxb_session* session) {
  static std::byte memory[1 << 20];
  oxb_beam_options options = OXB_BEAM_OPTIONS_INIT;
  options.n_best = 2;
  options.max_tokens = 20;
  oxb_beam_search* search = nullptr;
  oxb_error error = OXB_ERROR_INIT;
  const int32_t prompt[3] = {1, 2, 3};
  const int32_t* tokens = nullptr;
  size_t count = 0;
  float score = 0.0f;
  return oxb_beam_search_create(session, &options, memory, sizeof(memory), &search, &error) ==
             OXB_OK &&
         oxb_beam_search_run(search, prompt, 3, &error) == OXB_OK &&
         oxb_beam_search_result(search, 1, &tokens, &count, &score, &error) == OXB_OK &&
         oxb_beam_search_result(search, 2, &tokens, &count, &score, &error) != OXB_OK &&
         oxb_beam_search_run(search, prompt, 1000, &error) == OXB_INVALID_ARGUMENT && count == 20;
}

// Tokens in, tokens out, saved and loaded in between, in memory that is there before the trap is set.
bool generate_without_allocating(oxb_session* session) {
  static std::byte memory[1 << 20], state[1 << 20];
  oxb_generator_options options = OXB_GENERATOR_OPTIONS_INIT;
  options.max_tokens = 20;
  options.undo_turns = 1;
  oxb_generator* generator = nullptr;
  oxb_error error = OXB_ERROR_INIT;
  const int32_t prompt[3] = {1, 2, 3};
  if (oxb_generator_create(session, &options, memory, sizeof(memory), &generator, &error) !=
          OXB_OK ||
      oxb_generator_add_tokens(generator, prompt, 3, &error) != OXB_OK) {
    return false;
  }
  oxb_piece piece = OXB_PIECE_INIT;
  const size_t bytes = oxb_generator_state_bytes(generator);
  bool good = bytes <= sizeof(state);
  for (int i = 0; i < 20 && good; ++i) {
    good = oxb_generator_next(generator, &piece, &error) == OXB_OK &&
           oxb_generator_save(generator, state, sizeof(state), &error) == OXB_OK &&
           oxb_generator_load(generator, state, bytes, &error) == OXB_OK;
  }
  oxb_generator_destroy(generator);
  return good && piece.end == OXB_END_MAX_TOKENS;
}

void expect_no_allocation(const char* weights, const char* activations, uint32_t threads,
                          oxb_backend backend = OXB_BACKEND_AUTO) {
  TinyModel bytes(weights, activations);
  oxb_model* model = nullptr;
  oxb_error error = OXB_ERROR_INIT;
  ASSERT_EQ(oxb_model_open_memory(bytes.data.get(), bytes.size, nullptr, &model, &error), OXB_OK);
  oxb_model_info info = OXB_MODEL_INFO_INIT;
  ASSERT_EQ(oxb_model_get_info(model, &info, &error), OXB_OK);
  oxb_session_options options = OXB_SESSION_OPTIONS_INIT;
  options.threads = threads;
  options.backend = backend;
  oxb_plan plan = OXB_PLAN_INIT;
  ASSERT_EQ(oxb_session_plan(model, &options, &plan, &error), OXB_OK);
  std::vector<std::byte> arena(plan.arena_bytes);
  std::vector<float> logits(5 * info.output_width), rows(4096);
  oxb_sampler_options sampling = OXB_SAMPLER_OPTIONS_INIT;
  sampling.temperature = 0.9f;
  sampling.top_k = 3;
  sampling.top_p = 0.9f;
  sampling.repetition_penalty = 1.1f;
  size_t sampler_bytes = 0;
  ASSERT_EQ(oxb_sampler_bytes(info.output_width, &sampling, &sampler_bytes, &error), OXB_OK);
  std::vector<std::byte> sampler_memory(sampler_bytes);

  oxb_session* session = nullptr;
  ASSERT_EQ(oxb_session_create(model, &plan, arena.data(), arena.size(), &session, &error), OXB_OK);
  const bool library = backend == OXB_BACKEND_XNNPACK || backend == OXB_BACKEND_ACL;
  size_t taken = 0, tensors = 0;
  ASSERT_EQ(oxb_session_backend_bytes(session, &taken, &error), OXB_OK);
  EXPECT_EQ(taken > 0, library);
  EXPECT_EQ(plan.library_bytes > 0, library);
  ASSERT_EQ(oxb_session_tensor_count(session, &tensors, &error), OXB_OK);
  std::vector<std::byte> blob(plan.checkpoint_bytes);
  trapped = 0;
  trapping = true;
  oxb_sampler* sampler = nullptr;
  bool good = oxb_sampler_create(info.output_width, &sampling, sampler_memory.data(), sampler_bytes,
                                 &sampler, &error) == OXB_OK;
  int32_t tokens[5] = {0, 1, 2, 3, 4};
  for (size_t i = 0; i < 200 && good; ++i) {
    const size_t count = 1 + i % 5;
    good = oxb_session_run(session, tokens, count, count, logits.data(), logits.size(), &error) ==
               OXB_OK &&
           oxb_sampler_pick(sampler, logits.data(), info.output_width, &tokens[i % 5], &error) ==
               OXB_OK;
    (void)oxb_sampler_accept(sampler, tokens[i % 5], &error);
  }
  // A refused call must not allocate either.
  const int32_t wrong = 1000;
  good = good && oxb_session_run(session, &wrong, 1, 0, nullptr, 0, &error) == OXB_INVALID_ARGUMENT;
  good = good && oxb_session_save(session, blob.data(), blob.size(), &error) == OXB_OK &&
         oxb_session_load(session, blob.data(), blob.size(), &error) == OXB_OK &&
         oxb_session_checkpoint(session, blob.data(), blob.size(), &error) == OXB_OK &&
         oxb_session_rewind(session, blob.data(), blob.size(), &error) == OXB_OK;
  for (size_t i = 0; i < tensors; ++i) {
    good = good && oxb_session_tensor_read(session, i, rows.data(), rows.size(), &error) == OXB_OK;
  }
  (void)oxb_session_reset(session, &error);
  good = good && search_without_allocating(session);
  (void)oxb_session_reset(session, &error);
  good = good && generate_without_allocating(session);
  trapping = false;
  EXPECT_TRUE(good) << error.text;
  EXPECT_EQ(trapped.load(), 0u);
  oxb_session_destroy(session);
  oxb_model_close(model);
}

TEST(AllocTrap, AFloatSessionAllocatesNothing) { expect_no_allocation("f32", "f32", 1); }
TEST(AllocTrap, AnInt8SessionAllocatesNothing) { expect_no_allocation("int8", "dynamic", 1); }
TEST(AllocTrap, AWeightOnlySessionAllocatesNothing) { expect_no_allocation("int8", "f32", 1); }
TEST(AllocTrap, ThreadsAllocateNothing) { expect_no_allocation("int8", "dynamic", 3); }
TEST(AllocTrap, AStaticSessionAllocatesNothing) { expect_no_allocation("int8", "static", 1); }

// Runs of 1 to 5 rows in turn, and sessions of beams that share the layers: a library must not allocate for another
// number of rows, nor for another session.
void expect_no_allocation_by(oxb_backend backend) {
  if (oxb_backend_is_built_in(backend) == 0) GTEST_SKIP() << "not in this build";
  for (const uint32_t threads : {1u, 3u}) {
    expect_no_allocation("f32", "f32", threads, backend);
    expect_no_allocation("int8", "static", threads, backend);
  }
}
TEST(AllocTrap, XnnpackAllocatesNothing) { expect_no_allocation_by(OXB_BACKEND_XNNPACK); }
TEST(AllocTrap, AclAllocatesNothing) { expect_no_allocation_by(OXB_BACKEND_ACL); }

void expect_no_allocation_on_npu(const std::string& file, const oxb::NpuOptions& npu_options) {
  if (oxb_backend_is_built_in(OXB_BACKEND_NPU) == 0) GTEST_SKIP() << "not in this build";
  const auto npu = oxb::Npu::open(npu_options);
  ASSERT_TRUE(npu.ok()) << npu.status().text();
  const auto model = oxb::Model::open(file.c_str());
  for (const uint32_t threads : {1u, 3u}) {
    oxb::SessionOptions options;
    options.backend = OXB_BACKEND_NPU;
    options.threads = threads;
    options.npu = npu->get();
    options.npu_least_rows = 1;
    auto session = oxb::Session::create(*model, options);
    ASSERT_TRUE(session.ok()) << session.status().text();
    const std::vector<int32_t> tokens = {1, 2, 3, 4, 5};
    std::vector<float> logits(model->info().output_width);
    bool good = true;
    trapped = 0;
    trapping = true;
    for (size_t count = 1; count <= tokens.size(); ++count) {
      good = good && session->run(std::span(tokens).first(count), logits).ok();
    }
    trapping = false;
    EXPECT_TRUE(good);
    EXPECT_EQ(trapped.load(), 0u);
    EXPECT_GT(session->npu_report()->runs, 0u);
    EXPECT_EQ(session->npu_report()->failed, 0);
  }
}

void expect_no_allocation_on_example(const std::string& file) {
  const std::string path = program_dir() + "/liboxbow_npu_example.so";
  oxb::NpuOptions options;
  options.plugin = path.c_str();
  expect_no_allocation_on_npu(file, options);
}

TEST(AllocTrap, LayersOnAnNpuAllocateNothing) {
  expect_no_allocation_on_example(
      golden_model("labml_compressive/c1_d32_fullP",
                   {"--weights", "int8", "--no-quality", "--npu", "example-i8"}));
}
TEST(AllocTrap, ChainsOnAnNpuAllocateNothing) {
  expect_no_allocation_on_example(
      static_model("labml_compressive/c1_d32_fullP", {"--npu", "example-i8-chain"}));
}
/// The plug-in's own part: the chip does nothing, and its results are whatever lies there.
TEST(AllocTrap, LayersAndChainsOnEthosUAllocateNothing) {
  const auto idle = [](void*, const void*, size_t, void* const*, const size_t*, size_t) {
    return int32_t{0};
  };
  const oxb_ethosu_driver driver = {sizeof(driver), "ethos-u55-256", nullptr, 0, nullptr, idle};
  oxb::NpuOptions options;
  options.plugin = "ethosu";
  options.driver = &driver;
  expect_no_allocation_on_npu(source_dir() + "/tests/npu/relu_chains.oxb", options);
}

/// What is created until a stream can begin, and closed again: a model, a session and one that borrows of it.
oxb_status create_and_close(const char* path, uint32_t threads, oxb_backend backend,
                            oxb_error* error) {
  alignas(64) static std::byte arenas[2][1 << 20];
  oxb_model* model = nullptr;
  oxb_session* sessions[2] = {};
  oxb_status status = oxb_model_open_file(path, nullptr, &model, error);
  for (int i = 0; i < 2 && status == OXB_OK; ++i) {
    oxb_session_options options = OXB_SESSION_OPTIONS_INIT;
    options.threads = threads;
    options.backend = backend;
    options.lender = i == 0 ? nullptr : sessions[0];
    oxb_plan plan = OXB_PLAN_INIT;
    status = oxb_session_plan(model, &options, &plan, error);
    if (status == OXB_OK) {
      status = oxb_session_create(model, &plan, arenas[i], sizeof(arenas[i]), &sessions[i], error);
    }
  }
  oxb_session_destroy(sessions[1]);
  oxb_session_destroy(sessions[0]);
  oxb_model_close(model);
  return status;
}

void expect_failing_allocations_are_told(const std::string& path, uint32_t threads,
                                         oxb_backend backend) {
  oxb_error error = OXB_ERROR_INIT;
  // What the system and libraries keep is there from then on.
  ASSERT_EQ(create_and_close(path.c_str(), threads, backend, &error), OXB_OK) << error.text;
  size_t refused = 0;
  for (size_t n = 1;; ++n) {
    error = OXB_ERROR_INIT;
    failing = n;
    alive = 0;
    trapped = 0;
    trapping = true;
    const oxb_status status = create_and_close(path.c_str(), threads, backend, &error);
    trapping = false;
    failing = 0;
    EXPECT_EQ(alive.load(), 0) << "allocation " << n << " is lost";
    if (trapped.load() < n) {
      EXPECT_EQ(status, OXB_OK) << error.text;
      break;
    }
    // Without some of them a library goes on.
    if (status == OXB_OK) continue;
    ++refused;
    EXPECT_EQ(status, OXB_OUT_OF_MEMORY) << "allocation " << n << ": " << error.text;
    EXPECT_STRNE(error.text, "") << "allocation " << n;
  }
  EXPECT_GT(refused, 0u);
}

TEST(AllocFailure, EveryAllocationOfCreationIsToldAndNothingIsLost) {
  const std::string dense = golden_model("gpt2/g1_tied", {"--no-quality"});
  const std::string memories = golden_model("labml_compressive/c1_d32_fullP", {"--no-quality"});
  for (const uint32_t threads : {1u, 3u}) {
    expect_failing_allocations_are_told(dense, threads, OXB_BACKEND_AUTO);
    expect_failing_allocations_are_told(memories, threads, OXB_BACKEND_AUTO);
  }
}

TEST(AllocFailure, WithXnnpackToo) {
  if (oxb_backend_is_built_in(OXB_BACKEND_XNNPACK) == 0) GTEST_SKIP() << "not in this build";
  expect_failing_allocations_are_told(
      golden_model("gpt2/g1_tied", {"--no-quality", "--weights", "f32"}), 1, OXB_BACKEND_XNNPACK);
}

}  // namespace
}  // namespace oxbow::testing
