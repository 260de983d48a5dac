#include "tests/support/npu.h"

#include <algorithm>
#include <random>

#include "converter/writer.h"
#include "host/describe.h"
#include "host/exact_rows.h"
#include "host/testing/paths.h"
#include "tests/support/edit_model.h"
#include "tests/support/files.h"
#include "tests/support/golden.h"
#include "tests/support/random_inputs.h"

namespace oxbow::testing {

std::vector<std::string> npu_cases() {
  return {"bert/b1_cls", "labml_compressive/c1_d32_fullP", "labml_xl/x1_d32_fullP",
          "lite_transformer/lt1_dynamic", "llama/l1_gqa"};
}

std::vector<std::string> static_cases() {
  return {"bert/b1_cls", "labml_compressive/c1_d32_fullP", "labml_xl/x1_d32_fullP", "llama/l1_gqa"};
}

std::string static_model(const std::string& name, const std::vector<std::string>& options) {
  std::vector<std::string> words = {"--weights",
                                    "int8",
                                    "--no-quality",
                                    "--activations",
                                    "static",
                                    "--calibrate",
                                    source_dir() + "/tests/golden/" + name + "/io.safetensors"};
  words.insert(words.end(), options.begin(), options.end());
  return golden_model(name, words);
}

std::vector<float> run_story(const std::string& file, const NpuSetup& setup,
                             oxb_npu_report* report) {
  const auto model = oxb::Model::open(file.c_str());
  EXPECT_TRUE(model.ok()) << model.status().text();
  const schema::ModelT graph = std::move(describe_file(file).model);
  oxb::SessionOptions options;
  options.backend = setup.npu == nullptr ? OXB_BACKEND_CPU : OXB_BACKEND_NPU;
  options.threads = setup.threads;
  options.npu = setup.npu;
  options.npu_least_rows = setup.least_rows;
  options.npu_shadow = setup.shadow ? 1 : 0;
  auto session = oxb::Session::create(*model, options);
  EXPECT_TRUE(session.ok()) << session.status().text();
  if (!session.ok()) return {};
  const oxb_model_info info = model->info();
  std::mt19937 random(3);
  size_t room = info.capacity == 0 ? SIZE_MAX : info.capacity;
  std::vector<float> all;
  for (size_t e = 0; e < info.entry_count; ++e) {
    const oxb_entry_info entry = *model->entry_info(e);
    const bool main = e + 1 == info.entry_count;
    const bool exact = takes_exact_rows(graph, *graph.entry_points[e]);
    for (const size_t wanted : {1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 1, 31, 64, 1}) {
      const size_t most = exact ? entry.max_rows : std::min(wanted, size_t{entry.max_rows});
      const size_t count = main && entry.starts == 0 ? std::min(most, room) : most;
      if (count == 0) break;
      if (main && entry.starts == 0) room -= count;
      const RandomInputs inputs(*model, e, count, random);
      std::vector<float> output((entry.output_rows != 0 ? entry.output_rows : count) *
                                entry.output_width);
      const oxb::Status status =
          session->run_entry(e, inputs.list, output, output.size() / entry.output_width);
      EXPECT_TRUE(status.ok()) << status.text();
      all.insert(all.end(), output.begin(), output.end());
    }
  }
  if (report != nullptr) *report = *session->npu_report();
  return all;
}

std::string refused_graph(const std::string& file, const schema::ModelT& model) {
  const std::vector<std::byte> bytes = read_bytes(file);
  const FilePrefix prefix = read_prefix(bytes);
  const auto data = std::span(bytes).subspan(prefix.data_offset, prefix.data_bytes);
  const TemporaryDirectory directory;
  const std::string path = directory / "edited.oxb";
  write_bytes(path, convert::assemble_file(model, data));
  const auto opened = oxb::Model::open(path.c_str());
  return opened.ok() ? "" : opened.status().text();
}

}  // namespace oxbow::testing
