// What the command line makes of images, recordings and numbers.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "host/safetensors.h"
#include "tests/support/cli.h"
#include "tests/support/edit_model.h"
#include "tests/support/files.h"
#include "tests/support/golden.h"

namespace oxbow::testing {
namespace {

std::string io_of(const std::string& pack) { return (golden() / pack / "io.safetensors").string(); }

void write(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

template <typename T>
std::string raw(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

std::string npy(const std::string& shape, const std::vector<float>& values) {
  std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': " + shape + ", }";
  header.resize(117, ' ');
  header += '\n';
  return std::string("\x93NUMPY\x01\x00\x76\x00", 10) + header + raw(values);
}

/// 16 bits, one channel.
std::string wav(uint32_t rate, const std::vector<int16_t>& samples) {
  const auto four = [](uint32_t v) { return raw(std::vector<uint32_t>{v}); };
  const auto two = [](uint16_t v) { return raw(std::vector<uint16_t>{v}); };
  const std::string data = raw(samples);
  return "RIFF" + four(static_cast<uint32_t>(36 + data.size())) + "WAVEfmt " + four(16) + two(1) +
         two(1) + four(rate) + four(2 * rate) + two(2) + two(16) + "data" +
         four(static_cast<uint32_t>(data.size())) + data;
}

class CliInputs : public ::testing::Test {
 protected:
  static std::string good(const Words& words) {
    const CommandResult result = oxbow(words);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return result.out;
  }
  static void refused(const Words& words, int code, const std::string& part) {
    const CommandResult result = oxbow(words);
    EXPECT_EQ(result.exit_code, code) << result.out << result.err;
    expect_one_line(result, part);
  }
  TemporaryDirectory directory_;
};

TEST_F(CliInputs, APictureIsNotMadeLargerThanWhatTheModelTakes) {
  // A table for each column of the picture that a file asks for.
  const std::string changed = directory_ / "changed.oxb", picture = directory_ / "a.ppm";
  edit_model(golden_model("vit/vi1", {}), changed, [](schema::ModelT& model) {
    for (auto& size : model.metadata->sizes) {
      if (size->key == "image_width") size->value = "20000000";
    }
  });
  write(picture, "P6 1 1 255\nabc");
  refused({"run", changed, "--input", picture}, 3,
          "is a picture, which 'pixel_values' does not take");
}

TEST_F(CliInputs, AnImageIsClassifiedFromTensorsArraysAndPictures) {
  const std::string model = golden_model("vit/vi1", {});
  const std::string classes = good({"run", model, "--input", io_of("vit/vi1")});
  EXPECT_EQ(std::count(classes.begin(), classes.end(), '\n'), 11);
  EXPECT_NE(classes.find("LABEL_"), std::string::npos);

  const std::vector<float> pixels = Safetensors(io_of("vit/vi1")).floats("pixel_values");
  const std::string array = directory_ / "image.npy";
  write(array, npy("(3, 42, 42)", pixels));
  EXPECT_EQ(good({"run", model, "--input", array}), classes);

  // A picture of one colour is the same at any size, and so many numbers.
  std::string picture = "P6 84 21 255\n";
  for (size_t i = 0; i < 84 * 21; ++i) picture += "\xff\x80\x20";
  const std::string path = directory_ / "a.ppm";
  write(path, picture);
  std::vector<float> planes;
  for (const float byte : {255.0f, 128.0f, 32.0f}) planes.insert(planes.end(), 42 * 42, byte / 255);
  write(array, npy("(1, 3, 42, 42)", planes));
  EXPECT_EQ(good({"run", model, "--input", path, "--image-mean", "0", "--image-std", "1"}),
            good({"run", model, "--input", array}));
  refused({"run", model, "--input", path, "--image-mean", "1,2"}, 2, "1 or 3 numbers");
  refused({"run", model, "--input", path, "--image-std", "0"}, 2, "--image-std");
  refused({"run", model, "--input", path, "--ids", "1"}, 2, "one of --prompt");
  refused({"run", model, "--ids", "1"}, 2, "--input FILE");
  write(array, npy("(2, 42, 42)", std::vector<float>(2 * 42 * 42)));
  refused({"run", model, "--input", array}, 3, "expected exactly 3");
  write(array, npy("(3, 42, 41)", std::vector<float>(3 * 42 * 41)));
  refused({"run", model, "--input", array}, 3, "rows of 1764 numbers");
  write(array, "no picture");
  refused({"run", model, "--input", array}, 3, "neither .npy");
}

TEST_F(CliInputs, ARecordingIsWrittenDownGreedilyAndWithBeams) {
  const std::string model = golden_model("whisper/wh2", {});
  std::vector<int16_t> samples(9000);
  for (size_t i = 0; i < samples.size(); ++i) {
    samples[i] = static_cast<int16_t>(8000 * std::sin(0.05 * static_cast<double>(i)));
  }
  const std::string path = directory_ / "a.wav";
  write(path, wav(16000, samples));
  const std::string text = good({"run", model, "--input", path, "--tokens", "6"});
  EXPECT_FALSE(text.empty());
  EXPECT_EQ(text, good({"run", model, "--input", path, "--tokens", "6"}));
  const std::string two =
      good({"run", model, "--input", path, "--tokens", "6", "--beams", "3", "--n-best", "2"});
  EXPECT_EQ(std::count(two.begin(), two.end(), '\n'), 2) << two;
  write(path, wav(8000, samples));
  refused({"run", model, "--input", path}, 3, "expected 16000");
  refused({"run", golden_model("vit/vi1", {}), "--input", path}, 3, "is a recording");
}

TEST_F(CliInputs, RowsOfNumbersGiveRowsOfNumbers) {
  const std::string model = golden_model("gtrxl/gt1", {});
  const std::string array = directory_ / "a.npy";
  const nlohmann::json config =
      nlohmann::json::parse(std::ifstream(golden() / "gtrxl/gt1/config.json"));
  const size_t width = config["input_dim"];
  write(array, npy("(70, " + std::to_string(width) + ")", std::vector<float>(70 * width, 0.25f)));
  const std::string rows = good({"run", model, "--input", array});
  EXPECT_EQ(std::count(rows.begin(), rows.end(), '\n'), 70);
}

TEST_F(CliInputs, ModelsOfNumbersAreMeasuredWithRandomOnesOrAFile) {
  const std::string model = golden_model("vit/vi1", {});
  EXPECT_NE(good({"bench", model, "--prefill", "5"}).find("prefill"), std::string::npos);
  EXPECT_NE(good({"bench", model, "--prefill", "5", "--input", io_of("vit/vi1")}).find("prefill"),
            std::string::npos);
  EXPECT_NE(good({"bench", golden_model("whisper/wh2", {}), "--decode", "4"}).find("decode"),
            std::string::npos);
}

TEST_F(CliInputs, ATextWithoutAMaskIsPaddedOnRequest) {
  refused({"run", golden_model("gpt2/g1_tied", {}), "--ids", "1,2", "--pad-to", "4"}, 2,
          "--pad-to");
}

}  // namespace
}  // namespace oxbow::testing
