#pragma once

// What the tests of NPUs share: models on them, fed with the same numbers as on the CPU.

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/api/oxbow.hpp"
#include "runtime/api/oxbow_npu.h"
#include "schema/model_generated.h"
#include "tests/support/cli.h"

/// Of examples/npu_plugin.c, which the tests also link.
extern "C" const oxb_npu_plugin* oxb_npu_plugin_get(uint32_t major);

namespace oxbow::testing {

/// A pack of each of the systems that the tests of NPUs run.
std::vector<std::string> npu_cases();

/// Those whose inputs are tokens that scales can be found with.
std::vector<std::string> static_cases();

/// A pack with int8 weights and static scales.
std::string static_model(const std::string& name, const std::vector<std::string>& options);

struct NpuSetup {
  /// Null: the CPU.
  oxb_npu* npu = nullptr;
  uint32_t least_rows = 0;
  uint32_t threads = 1;
  bool shadow = false;
};

/// All that a model gives for random inputs in runs of one to many rows.
std::vector<float> run_story(const std::string& file, const NpuSetup& setup,
                             oxb_npu_report* report = nullptr);

/// What is said about a file with another graph.
std::string refused_graph(const std::string& file, const schema::ModelT& model);

}  // namespace oxbow::testing
