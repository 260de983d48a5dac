// Tensor files and configurations that lie about their sizes: refused as tests/support/refusal.h says.

#include <gtest/gtest.h>

#include <fstream>

#include "converter/testing/gguf.h"
#include "host/testing/files.h"
#include "host/testing/paths.h"
#include "tests/support/files.h"
#include "tests/support/refusal.h"

namespace oxbow::testing {
namespace {

using convert::GgufType;
using testing::GgufBuilder;
using testing::raw;
using testing::raw_text;
using testing::raw_type;

class HostileFormats : public ::testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directory(directory_ / "in");
    std::filesystem::copy(testing::source_dir() + "/tests/formats/config.json", directory_ / "in");
  }
  void write(const std::string& name, const std::string& bytes) {
    std::ofstream(directory_ / "in" / name, std::ios::binary) << bytes;
  }
  void refused(const std::string& words, uint64_t memory = kSmallMemory) {
    expect_refused(directory_, (directory_ / "in").string(), words, {}, memory);
  }
  void refused_safetensors(const std::string& header, const std::string& words,
                           uint64_t memory = kSmallMemory) {
    write("model.safetensors", testing::safetensors_bytes(header, std::string(16, '\0')));
    refused(words, memory);
  }
  static std::string entry(const std::string& shape, const std::string& offsets,
                           const std::string& dtype = "\"F32\"") {
    return R"({"dtype":)" + dtype + R"(,"shape":)" + shape + R"(,"data_offsets":)" + offsets + "}";
  }

  const TemporaryDirectory directory_;
};

TEST_F(HostileFormats, SafetensorsThatLieAreRefused) {
  for (const uint64_t size : {uint64_t{1} << 63, UINT64_MAX, uint64_t{1} << 32}) {
    write("model.safetensors", raw(size) + "{}");
    refused("the header claims " + std::to_string(size) + " bytes");
  }
  const auto one = [&](const std::string& tensor) { return R"({"x":)" + tensor + "}"; };
  refused_safetensors(one(entry("[4]", "[-4,12]")), "data_offsets");
  refused_safetensors(one(entry("[4]", "[12,28]")), "lies at bytes 12 to 28");
  refused_safetensors(one(entry("[4]", "[8,4]")), "lies at");
  refused_safetensors(one(entry("[4]", "[18446744073709551600,18446744073709551615]")), "lies at");
  refused_safetensors(
      R"({"x":)" + entry("[2]", "[0,8]") + R"(,"y":)" + entry("[2]", "[4,12]") + "}",
      "tensors x and y overlap");
  refused_safetensors(one(entry("[4294967296,4294967296,4294967296]", "[0,16]")), "64 bits");
  refused_safetensors(one(entry("[4611686018427387904]", "[0,16]")), "64 bits");
}

TEST_F(HostileFormats, DeepAndWideJsonIsRefused) {
  const std::string deep = std::string(200000, '[') + std::string(200000, ']');
  refused_safetensors(R"({"x":)" + entry("[4]", "[0,16]", deep) + "}", "nested deeper than");
  refused_safetensors(R"({"__metadata__":)" + deep + "}", "nested deeper than");
  // Each of these takes 80 bytes of memory for three of the file.
  std::string wide = "{\"x\":[";
  while (wide.size() < size_t{40} << 20) wide += "{},{},{},{},{},{},{},{},{},{},{},{},{},{},";
  wide += "{}]}";
  refused_safetensors(wide, "has more than", kSmallMemory * 3);
  write("model.safetensors", testing::safetensors_bytes("{}", ""));
  write("config.json", wide);
  refused("has more than", kSmallMemory * 3);
  write("config.json", deep);
  refused("nested deeper than");
  write("config.json", R"({"model_type": 1e999})");
  refused("config.json is not valid JSON: a number in it is too large");
  for (const char* value : {"[[[[[]]]]]", "{}", "-1", "1e300", "null", "\"x\""}) {
    for (const char* key : {"vocab_size", "n_embd", "n_layer", "n_head", "n_inner", "n_positions",
                            "layer_norm_epsilon", "activation_function", "model_type"}) {
      if (std::string(value) == "null" && std::string(key) == "n_inner") continue;
      std::string config = R"({"model_type":"gpt2","vocab_size":12,"n_positions":16,"n_embd":8,)"
                           R"("n_layer":1,"n_head":2,"n_inner":12,"layer_norm_epsilon":1e-5,)"
                           R"("activation_function":"relu",")";
      write("config.json", config + key + "\":" + value + "}");
      refused("");
    }
  }
}

TEST_F(HostileFormats, ShardsThatLieAreRefused) {
  const auto index = [&](const std::string& text, const std::string& words) {
    write("model.safetensors.index.json", text);
    refused(words);
  };
  index("[]", "weight_map");
  index(R"({"weight_map":{"a":"../../etc/passwd"}})", "same directory");
  index(R"({"weight_map":{"a":"absent.safetensors"}})", "absent.safetensors");
  index(R"({"weight_map":{"a":"config.json"}})", "config.json");
  index(R"({"weight_map":{}})", "");
  index(R"({"weight_map":)" + std::string(100000, '{') + "}", "nested deeper than");
}

TEST_F(HostileFormats, GgufFilesThatLieAreRefused) {
  constexpr uint64_t kHuge = uint64_t{1} << 63;
  const auto refused_gguf = [&](const std::function<void(GgufBuilder&)>& edit,
                                const std::string& words) {
    GgufBuilder file;
    file.add("general.architecture", std::string("llama"));
    file.add_floats("token_embd.weight", {2, 3}, {1, 2, 3, 4, 5, 6});
    file.add_floats("output_norm.weight", {2}, {1, 1});
    edit(file);
    const std::string path = (directory_ / "in.gguf").string();
    std::ofstream(path, std::ios::binary) << file.bytes();
    expect_refused(directory_, path, words);
  };
  refused_gguf([](GgufBuilder& f) { f.keys.push_back(raw(kHuge)); }, "9223372036854775808 bytes");
  refused_gguf(
      [](GgufBuilder& f) {
        f.keys.push_back(raw_text("k") + raw_type(GgufType::kString) + raw(kHuge));
      },
      "9223372036854775808 bytes");
  refused_gguf([](GgufBuilder& f) { f.add_array("k", GgufType::kString, kHuge, ""); }, "elements");
  refused_gguf([](GgufBuilder& f) { f.tensors[0].offset = UINT64_MAX - 31; }, "cut off");
  refused_gguf([](GgufBuilder& f) { f.tensors[1].offset = 0; }, "overlap");
  refused_gguf([](GgufBuilder& f) { f.tensors[0].sizes = {kHuge, 2}; }, "64 bits");
  refused_gguf([](GgufBuilder& f) { f.tensors[0].sizes = {0, 3}; }, "size 0");
}

}  // namespace
}  // namespace oxbow::testing
