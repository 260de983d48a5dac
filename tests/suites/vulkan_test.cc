// Whole models on a Vulkan device: the CPU's results, both kinds of memory, and everything that can fail.
// Validation with synchronisation checks is on in all of it.

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "ops/testing/vulkan_wanted.h"
#include "runtime/api/oxbow.hpp"
#include "runtime/device/vulkan/vulkan_op.h"
#include "runtime/device/vulkan/wrapper/buffer.h"
#include "runtime/device/vulkan/wrapper/command.h"
#include "runtime/device/vulkan/wrapper/context.h"
#include "runtime/device/vulkan/wrapper/hooks.h"
#include "tests/support/tiny_checkpoint.h"
#include "tests/support/vulkan_session.h"

namespace oxbow {
OXB_SHADER(add);
}  // namespace oxbow

namespace oxbow::testing {
namespace {

uint64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  uint64_t all = 0, resident = 0;
  file >> all >> resident;
  return resident * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

/// Puts the hooks back, and holds every test to: no error, nothing left.
class Vulkan : public VulkanTest {};

TEST_F(Vulkan, ADeviceIsThere) {
  vulkan::Context* context = nullptr;
  Error error;
  ASSERT_EQ(vulkan::acquire_context(&context, &error), Status::kOk) << error.text;
  EXPECT_GE(context->device.features.subgroup_size, 1u);
  vulkan::release_context(context);
}

TEST_F(Vulkan, AutoNeverChoosesIt) {
  TinyModel bytes = tiny_model("int8");
  const auto model = oxb::Model::open(std::span<const std::byte>(bytes.bytes()));
  const auto session = oxb::Session::create(*model, oxb::SessionOptions());
  ASSERT_TRUE(session.ok()) << session.status().text();
  for (size_t i = 0; session->step_provider(i) != nullptr; ++i) {
    EXPECT_STREQ(session->step_provider(i), "cpu") << i;
  }
}

TEST_F(Vulkan, ModelsGiveTheBitsOfTheCpuInBothKindsOfMemory) {
  for (const std::string kind : {"f32", "int8", "static"}) {
    TinyModel bytes = tiny_model(kind);
    const std::vector<float> own = logits_of(bytes, oxb::SessionOptions());
    for (const bool staged : {false, true}) {
      for (const bool no_int_dot : {false, true}) {
        SCOPED_TRACE(kind + (staged ? ", staged" : "") + (no_int_dot ? ", plain" : ""));
        vulkan::hooks().staged = staged;
        vulkan::hooks().no_int_dot = no_int_dot;
        EXPECT_EQ(logits_of(bytes, vulkan_options()), own);
      }
    }
  }
}

// Tensors lie at multiples of 64 bytes, here from what is bound on: shaders are told the rest.
TEST_F(Vulkan, ModelsGiveTheBitsOfTheCpuAtAnyAlignment) {
  for (const uint32_t alignment : {128u, 256u}) {
    TinyModel bytes = tiny_model(alignment == 128 ? "f32" : "int8");
    vulkan::hooks().staged = alignment == 128;
    vulkan::hooks().binding_alignment = alignment;
    EXPECT_EQ(logits_of(bytes, vulkan_options()), logits_of(bytes, oxb::SessionOptions()))
        << alignment;
  }
}

TEST_F(Vulkan, AlignmentsBeyondTheSpecificationAreRefused) {
  TinyModel bytes = tiny_model("f32");
  const auto model = oxb::Model::open(std::span<const std::byte>(bytes.bytes()));
  vulkan::hooks().binding_alignment = 512;
  const auto session = oxb::Session::create(*model, vulkan_options());
  EXPECT_EQ(session.status().code(), OXB_NO_DEVICE);
  EXPECT_NE(std::strstr(session.status().text(), "256 bytes"), nullptr) << session.status().text();
}

// Steps with a larger tensor are the CPU's, in the midst of the others.
TEST_F(Vulkan, ADeviceThatBindsLittleDoesTheRest) {
  for (const std::string kind : {"f32", "int8"}) {
    TinyModel bytes = tiny_model(kind);
    const std::vector<float> own = logits_of(bytes, oxb::SessionOptions());
    for (const bool staged : {false, true}) {
      for (const uint32_t most : {64u, 256u, 600u, 2000u}) {
        SCOPED_TRACE(kind + (staged ? ", staged, " : ", ") + std::to_string(most));
        vulkan::hooks().staged = staged;
        vulkan::hooks().max_binding_bytes = most;
        EXPECT_EQ(logits_of(bytes, vulkan_options()), own);
      }
    }
  }
}

TEST_F(Vulkan, ADeviceThatGivesLittleIsOutOfMemory) {
  TinyModel bytes = tiny_model("int8");
  const auto model = oxb::Model::open(std::span<const std::byte>(bytes.bytes()));
  for (const uint64_t most : {1u, 1000u, 2000u}) {
    vulkan::hooks().max_allocation = most;
    EXPECT_EQ(model->plan(vulkan_options()).status().code(), OXB_OUT_OF_MEMORY);
    const auto session = oxb::Session::create(*model, vulkan_options());
    EXPECT_EQ(session.status().code(), OXB_OUT_OF_MEMORY);
    EXPECT_NE(std::strstr(session.status().text(), "at most"), nullptr) << session.status().text();
  }
}

// No shader declares it: validation, which would say so, finds nothing on a device that was made without it.
TEST_F(Vulkan, ADeviceWithout8BitStorageIsGoodEnough) {
  TinyModel bytes = tiny_model("int8");
  const std::vector<float> own = logits_of(bytes, oxb::SessionOptions());
  vulkan::hooks().no_storage8 = true;
  EXPECT_EQ(logits_of(bytes, vulkan_options()), own);
}

TEST_F(Vulkan, StatesMoveBetweenBackends) {
  TinyModel bytes = tiny_model("f32");
  const auto model = oxb::Model::open(std::span<const std::byte>(bytes.bytes()));
  ASSERT_TRUE(model.ok());
  for (const bool staged : {false, true}) {
    vulkan::hooks().staged = staged;
    auto cpu = oxb::Session::create(*model, oxb::SessionOptions());
    auto device = oxb::Session::create(*model, vulkan_options());
    ASSERT_TRUE(cpu.ok() && device.ok()) << device.status().text();
    std::vector<float> a(model->info().vocabulary), b(a.size());
    for (int i = 0; i < 9; ++i) ASSERT_TRUE(device->run(kTokens).ok());
    std::vector<std::byte> saved(device->state_bytes());
    ASSERT_TRUE(device->save(saved).ok());
    ASSERT_TRUE(cpu->load(saved).ok());
    ASSERT_TRUE(cpu->run(kTokens, a).ok() && device->run(kTokens, b).ok());
    EXPECT_EQ(a, b);
  }
}

TEST_F(Vulkan, MemoryOfTheDeviceIsKnownBeforehandAndStaysTheSame) {
  TinyModel bytes = tiny_model("int8");
  const auto model = oxb::Model::open(std::span<const std::byte>(bytes.bytes()));
  ASSERT_TRUE(model.ok());
  for (const bool staged : {false, true}) {
    vulkan::hooks().staged = staged;
    const oxb_session_options options = vulkan_options();
    const auto asked = model->plan(options);
    ASSERT_TRUE(asked.ok()) << asked.status().text();
    const size_t told = asked->device_bytes;
    auto session = oxb::Session::create(*model, options);
    ASSERT_TRUE(session.ok()) << session.status().text();
    EXPECT_GT(told, bytes.size / 2);
    EXPECT_EQ(session->backend_bytes(), told);
    const int64_t objects = vulkan::counters().objects;
    for (int i = 0; i < 500; ++i) ASSERT_TRUE(session->run(kTokens).ok());
    EXPECT_EQ(vulkan::counters().bytes, static_cast<int64_t>(told));
    EXPECT_EQ(vulkan::counters().objects, objects);
  }
}

// Where programs are slow less must do.
#if defined(__SANITIZE_ADDRESS__)
constexpr uint64_t kStreamTokens = 100'000;
#else
constexpr uint64_t kStreamTokens = 1'000'000;
#endif

TEST_F(Vulkan, AMillionTokensTakeNoMoreMemory) {
  vulkan::hooks().validation = false;  // Which would take minutes.
  TinyModel bytes = tiny_model("int8");
  const auto model = oxb::Model::open(std::span<const std::byte>(bytes.bytes()));
  auto session = oxb::Session::create(*model, vulkan_options());
  ASSERT_TRUE(session.ok()) << session.status().text();
  std::vector<int32_t> tokens(model->info().max_segment);
  for (size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<int32_t>(i * i % 5);
  const auto feed = [&](uint64_t end) {
    while (session->position() < end) ASSERT_TRUE(session->run(tokens).ok());
  };
  feed(kStreamTokens / 10);
  const int64_t device = vulkan::counters().bytes, objects = vulkan::counters().objects;
  const uint64_t host = resident_bytes();
  EXPECT_EQ(device, static_cast<int64_t>(session->backend_bytes()));
  feed(kStreamTokens);
  EXPECT_EQ(vulkan::counters().bytes, device);
  EXPECT_EQ(vulkan::counters().objects, objects);
  // The device is a library in this process, so that is its memory as well.
  EXPECT_LE(resident_bytes(), host + (uint64_t{1} << 20));
}

// A session, and two that borrow from it, of which one takes over the stream of the other, in turns.
std::vector<float> family_of(const oxb::Model& model, oxb_session_options options) {
  auto lender = oxb::Session::create(model, options);
  EXPECT_TRUE(lender.ok()) << lender.status().text();
  oxb_session_options borrowing = oxb::SessionOptions();
  borrowing.lender = lender->get();
  auto first = oxb::Session::create(model, borrowing),
       second = oxb::Session::create(model, borrowing);
  EXPECT_TRUE(first.ok() && second.ok()) << first.status().text();
  std::vector<float> all, logits(model.info().vocabulary);
  const auto run = [&](oxb::Session& session, size_t count) {
    const oxb::Status status = session.run(std::span(kTokens).first(count), logits);
    EXPECT_TRUE(status.ok()) << status.text();
    all.insert(all.end(), logits.begin(), logits.end());
  };
  for (size_t i = 0; i < 12; ++i) {
    run(*lender, 1 + i % 4);
    run(*first, 1 + i % 3);
    run(*second, 1 + i % 5);
    if (i == 4) {
      EXPECT_TRUE(second->copy(*first).ok());
    }
    if (i == 6) {
      EXPECT_TRUE(lender->copy(*second).ok());
    }
    if (i == 8) {
      EXPECT_TRUE(first->copy(*lender).ok());
    }
  }
  return all;
}

TEST_F(Vulkan, BorrowersRunOnTheDeviceOfTheirLender) {
  for (const std::string kind : {"f32", "int8"}) {
    TinyModel bytes = tiny_model(kind);
    const auto model = oxb::Model::open(std::span<const std::byte>(bytes.bytes()));
    const std::vector<float> own = family_of(*model, oxb::SessionOptions());
    for (const bool staged : {false, true}) {
      vulkan::hooks().staged = staged;
      EXPECT_EQ(family_of(*model, vulkan_options()), own) << kind << staged;
    }
  }
}

TEST_F(Vulkan, WithoutLibraryOrDeviceCreationFailsCleanly) {
  TinyModel bytes = tiny_model("f32");
  const auto model = oxb::Model::open(std::span<const std::byte>(bytes.bytes()));
  vulkan::hooks().library = "libno_such_vulkan.so";
  EXPECT_EQ(oxb::Session::create(*model, vulkan_options()).status().code(), OXB_NO_DEVICE);
  vulkan::hooks().library = nullptr;
  vulkan::hooks().no_device = true;
  EXPECT_EQ(oxb::Session::create(*model, vulkan_options()).status().code(), OXB_NO_DEVICE);
}

/// Calls `use` with its n-th call failing, for every n until none fails; `use` gives its status.
template <typename Use>
void expect_clean_failures(VkResult result, oxb_status expected, const Use& use) {
  const int64_t before = vulkan::counters().objects;
  bool passed = false;
  for (uint32_t n = 1; !passed; ++n) {
    SCOPED_TRACE("call " + std::to_string(n));
    vulkan::hooks().fail_with = result;
    vulkan::hooks().fail_at = n;
    const oxb_status status = use();
    passed = vulkan::hooks().fail_at != 0;
    vulkan::hooks().fail_at = 0;
    EXPECT_EQ(status, passed ? oxb_status{OXB_OK} : expected);
    ASSERT_EQ(vulkan::counters().objects.load(), before) << "something is left";
    ASSERT_LT(n, 2000u);
  }
}

/// Opens a device and makes a pipeline.
oxb_status open_device() {
  vulkan::Context* context = nullptr;
  Status status = vulkan::acquire_context(&context, nullptr);
  if (status != Status::kOk) return static_cast<oxb_status>(status);
  vulkan::PipelineKey key;
  key.name = shader_add.name;
  key.code = shader_add.code.data();
  key.code_words = shader_add.code.size();
  key.bindings = 4;
  vulkan::Pipeline pipeline;
  status = context->pipelines.find_or_make(context->device, context->cache.handle(), key, &pipeline,
                                           nullptr);
  ShaderForm form = ShaderForm::kNone;
  if (status == Status::kOk) status = context->proofs.choose(*context, shader_add, &form, nullptr);
  vulkan::release_context(context);
  return static_cast<oxb_status>(status);
}

/// Every call of opening a device; then, with that one open and its pipelines made, of creating a session
/// and of running it.
void expect_clean_failures_everywhere(VkResult result, oxb_status expected) {
  expect_clean_failures(result, expected, open_device);
  vulkan::Context* context = nullptr;
  ASSERT_EQ(vulkan::acquire_context(&context, nullptr), Status::kOk);
  TinyModel bytes = tiny_model("int8");
  const auto model = oxb::Model::open(std::span<const std::byte>(bytes.bytes()));
  ASSERT_TRUE(oxb::Session::create(*model, vulkan_options()).ok());
  expect_clean_failures(result, expected, [&] {
    context->lost = false;  // It only seemed so, and its pipelines are still good.
    auto session = oxb::Session::create(*model, vulkan_options());
    if (!session.ok()) return session.status().code();
    const oxb::Status run = session->run(kTokens);
    if (!run.ok()) {
      EXPECT_EQ(session->run(kTokens).code(), OXB_NEEDS_RESET);
    }
    return run.code();
  });
  vulkan::release_context(context);
}

TEST_F(Vulkan, OutOfMemoryInAnyCallIsACleanError) {
  for (const bool staged : {false, true}) {
    vulkan::hooks().staged = staged;
    expect_clean_failures_everywhere(VK_ERROR_OUT_OF_DEVICE_MEMORY, OXB_OUT_OF_MEMORY);
  }
}

TEST_F(Vulkan, ALostDeviceInAnyCallIsACleanError) {
  for (const bool staged : {false, true}) {
    vulkan::hooks().staged = staged;
    expect_clean_failures_everywhere(VK_ERROR_DEVICE_LOST, OXB_DEVICE_LOST);
  }
}

/// Lets every call of a run fail, one after the other. `after` gets the session, failed or not.
template <typename After>
void fail_runs(VkResult result, const After& after) {
  TinyModel bytes = tiny_model("int8");
  const auto model = oxb::Model::open(std::span<const std::byte>(bytes.bytes()));
  vulkan::Context* context = nullptr;  // Keeps the pipelines.
  ASSERT_EQ(vulkan::acquire_context(&context, nullptr), Status::kOk);
  bool passed = false;
  for (uint32_t n = 1; !passed; ++n) {
    SCOPED_TRACE("call " + std::to_string(n));
    auto session = oxb::Session::create(*model, vulkan_options());
    ASSERT_TRUE(session.ok()) << session.status().text();
    vulkan::hooks().fail_with = result;
    vulkan::hooks().fail_at = n;
    const oxb::Status status = session->run(kTokens);
    passed = vulkan::hooks().fail_at != 0;
    vulkan::hooks().fail_at = 0;
    EXPECT_EQ(status.ok(), passed);
    after(*model, *session, passed);
    ASSERT_LT(n, 100u);
  }
  vulkan::release_context(context);
}

TEST_F(Vulkan, AfterAFailedRunTheSessionCanBeResetAndUsed) {
  for (const bool staged : {false, true}) {
    vulkan::hooks().staged = staged;
    fail_runs(VK_ERROR_OUT_OF_HOST_MEMORY,
              [](const oxb::Model& model, oxb::Session& session, bool) {
                session.reset();
                auto own = oxb::Session::create(model);
                std::vector<float> a(model.info().vocabulary), b(a.size());
                for (int i = 0; i < 3; ++i) {
                  const oxb::Status status = session.run(kTokens, a);
                  EXPECT_TRUE(status.ok()) << status.text();
                  EXPECT_TRUE(own->run(kTokens, b).ok());
                  EXPECT_EQ(a, b);
                }
              });
  }
}

TEST_F(Vulkan, ALostDeviceStaysLostAndNewSessionsGetAnother) {
  size_t lost = 0;
  fail_runs(VK_ERROR_DEVICE_LOST, [&](const oxb::Model& model, oxb::Session& session, bool passed) {
    session.reset();
    const oxb::Status again = session.run(kTokens);
    lost += again.code() == OXB_DEVICE_LOST;
    EXPECT_EQ(again.ok(), passed) << again.text();
    auto other = oxb::Session::create(model, vulkan_options());
    ASSERT_TRUE(other.ok()) << other.status().text();
    EXPECT_TRUE(other->run(kTokens).ok());
  });
  EXPECT_GE(lost, 3u) << "fence, submission, wait";
}

TEST_F(Vulkan, SessionsThatFailBesideOthersLeaveNothing) {
  vulkan::Context* context = nullptr;
  ASSERT_EQ(vulkan::acquire_context(&context, nullptr), Status::kOk);
  TinyModel bytes = tiny_model("int8");
  const auto model = oxb::Model::open(std::span<const std::byte>(bytes.bytes()));
  bool made = false;
  for (uint32_t n = 1; !made; ++n) {
    vulkan::hooks().fail_with = VK_ERROR_OUT_OF_DEVICE_MEMORY;
    vulkan::hooks().fail_at = n;
    made = oxb::Session::create(*model, vulkan_options()).ok();
    ASSERT_LT(n, 2000u);
  }
  vulkan::hooks().fail_at = 0;
  vulkan::release_context(context);  // TearDown and validation count what is left.
}

TEST_F(Vulkan, SessionsOfSeveralThreadsShareTheDevice) {
  TinyModel bytes = tiny_model("int8");
  const auto model = oxb::Model::open(std::span<const std::byte>(bytes.bytes()));
  const std::vector<float> own = logits_of(bytes, oxb::SessionOptions());
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] { EXPECT_EQ(logits_of(bytes, vulkan_options()), own); });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(Vulkan, CompiledPipelinesCanBeStored) {
  TinyModel bytes = tiny_model("f32");
  const auto model = oxb::Model::open(std::span<const std::byte>(bytes.bytes()));
  std::vector<std::byte> blob;
  {
    const auto session = oxb::Session::create(*model, vulkan_options());
    ASSERT_TRUE(session.ok()) << session.status().text();
    const auto size = session->pipeline_cache();
    ASSERT_TRUE(size.ok()) << size.status().text();
    blob.resize(*size);
    EXPECT_EQ(session->pipeline_cache(std::span(blob).first(*size - 1)).status().code(),
              OXB_BUFFER_TOO_SMALL);
    ASSERT_TRUE(session->pipeline_cache(blob).ok());
  }
  // As it is, damaged in every part, cut anywhere: the session works, and says nothing of it.
  const auto expect_harmless = [&](std::span<const std::byte> cache) {
    oxb_session_options options = vulkan_options();
    options.pipeline_cache = cache.data();
    options.pipeline_cache_bytes = cache.size();
    auto session = oxb::Session::create(*model, options);
    ASSERT_TRUE(session.ok()) << session.status().text();
    EXPECT_TRUE(session->run(kTokens).ok());
  };
  vulkan::Context* context = nullptr;  // The rest need not open it again and again.
  ASSERT_EQ(vulkan::acquire_context(&context, nullptr), Status::kOk);
  expect_harmless(blob);
  for (size_t at = 0; at < blob.size(); at += 1 + at / 8) {
    std::vector<std::byte> damaged = blob;
    damaged[at] ^= std::byte{1};
    expect_harmless(damaged);
    expect_harmless(std::span<const std::byte>(blob).first(at));
  }
  vulkan::release_context(context);
}

TEST_F(Vulkan, WithoutADeviceThereIsNothingToStore) {
  TinyModel bytes = tiny_model("f32");
  const auto model = oxb::Model::open(std::span<const std::byte>(bytes.bytes()));
  const auto session = oxb::Session::create(*model);
  ASSERT_TRUE(session.ok());
  EXPECT_EQ(*session->pipeline_cache(), 0u);
}

TEST_F(Vulkan, ValidationWouldCatchAMissingBarrier) {
  vulkan::Context* context = nullptr;
  Error error;
  ASSERT_EQ(vulkan::acquire_context(&context, &error), Status::kOk) << error.text;
  const vulkan::Device& device = context->device;
  vulkan::Buffer buffer;
  ASSERT_EQ(buffer.open(device, vulkan::Place::kShared, 256, "a test", &error), Status::kOk);
  vulkan::Commands commands;
  ASSERT_EQ(commands.open(*context, &error), Status::kOk);
  for (const bool with_barrier : {true, false}) {
    VkCommandBuffer recorded = VK_NULL_HANDLE;
    ASSERT_EQ(commands.begin(&recorded, &error), Status::kOk);
    const VkBufferCopy there = {0, 128, 64}, back = {128, 64, 64};
    device.api().CmdCopyBuffer(recorded, buffer.handle, buffer.handle, 1, &there);
    if (with_barrier) {
      vulkan::barrier(device.api(), recorded, VK_PIPELINE_STAGE_TRANSFER_BIT,
                      VK_ACCESS_TRANSFER_WRITE_BIT, VK_PIPELINE_STAGE_TRANSFER_BIT,
                      VK_ACCESS_TRANSFER_READ_BIT);
    }
    device.api().CmdCopyBuffer(recorded, buffer.handle, buffer.handle, 1, &back);
    ASSERT_EQ(commands.end(recorded, &error), Status::kOk);
    EXPECT_EQ(vulkan::counters().errors.load() == 0, with_barrier);
  }
  vulkan::counters().errors = 0;
  commands.close();
  buffer.close(device);
  vulkan::release_context(context);
}

TEST_F(Vulkan, ValidationWouldCatchAnError) {
  vulkan::Context* context = nullptr;
  Error error;
  ASSERT_EQ(vulkan::acquire_context(&context, &error), Status::kOk) << error.text;
  const vulkan::Device& device = context->device;
  VkBufferCreateInfo info = {};
  info.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO;
  info.size = 0;
  info.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT;
  VkBuffer buffer = VK_NULL_HANDLE;
  if (device.api().CreateBuffer(device.handle, &info, nullptr, &buffer) == VK_SUCCESS) {
    device.api().DestroyBuffer(device.handle, buffer, nullptr);
  }
  EXPECT_GT(vulkan::counters().errors.load(), 0u) << "a buffer of no bytes is an error";
  vulkan::counters().errors = 0;
  vulkan::release_context(context);
}

}  // namespace
}  // namespace oxbow::testing
