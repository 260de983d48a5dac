#include "host/safetensors.h"

#include <gtest/gtest.h>

#include <cmath>
#include <ctime>

#include "host/errors.h"
#include "host/half.h"
#include "host/testing/files.h"

namespace oxbow {
namespace {

using testing::safetensors_bytes;
using testing::TemporaryDirectory;

std::string refusal(const std::string& bytes) {
  const TemporaryDirectory directory;
  testing::write_text(directory / "t.safetensors", bytes);
  try {
    const Safetensors file(directory / "t.safetensors");
  } catch (const InputError& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("t.safetensors"), std::string::npos) << text;
    return text;
  }
  return "";
}

std::string entry(const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return R"({"x":{"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" + offsets +
         "}}";
}

TEST(Safetensors, AHeaderOfManyTensorsTakesATimeInProportion) {
  const auto seconds = [](int count) {
    std::string header = "{";
    for (int i = 0; i < count; ++i) {
      header += (i > 0 ? ",\"t" : "\"t") + std::to_string(i) +
                R"(":{"dtype":"F32","shape":[0],"data_offsets":[0,0]})";
    }
    const TemporaryDirectory directory;
    testing::write_text(directory / "t.safetensors", safetensors_bytes(header + "}", ""));
    const std::clock_t begin = std::clock();
    EXPECT_EQ(Safetensors(directory / "t.safetensors").tensors().size(),
              static_cast<size_t>(count));
    return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  };
  // Eight times the tensors took 64 times as long when the time was quadratic; map and sort may take 12.
  const double few = seconds(5'000);
  EXPECT_LT(seconds(40'000), 30 * few + 0.01);
}

TEST(Safetensors, ReadsEveryType) {
  const TemporaryDirectory directory;
  // The header's length is odd, so that no tensor is aligned.
  const std::string header =
      R"({"__metadata__":{"format":"pt"},"f":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
      R"("h":{"dtype":"F16","shape":[1],"data_offsets":[8,10]},)"
      R"("b":{"dtype":"BF16","shape":[1,1],"data_offsets":[10,12]},)"
      R"("i":{"dtype":"I64","shape":[1],"data_offsets":[12,20]},)"
      R"("j":{"dtype":"I32","shape":[1],"data_offsets":[20,24]},)"
      R"("k":{"dtype":"I8","shape":[1],"data_offsets":[24,25]},)"
      R"("u":{"dtype":"U8","shape":[1],"data_offsets":[25,26]},)"
      R"("t":{"dtype":"BOOL","shape":[],"data_offsets":[26,27]},)"
      R"("e":{"dtype":"F32","shape":[0,4],"data_offsets":[27,27]}})";
  std::string data(27, '\0');
  const float floats[2] = {1.5f, -2.0f};
  const uint16_t half = 0x3c00, brain = 0xbf80;
  const int64_t wide = -5000000000;
  const int32_t narrow = -7;
  std::memcpy(data.data(), floats, 8);
  std::memcpy(data.data() + 8, &half, 2);
  std::memcpy(data.data() + 10, &brain, 2);
  std::memcpy(data.data() + 12, &wide, 8);
  std::memcpy(data.data() + 20, &narrow, 4);
  data[24] = -3;
  data[25] = static_cast<char>(200);
  data[26] = 1;
  testing::write_text(directory / "t.safetensors", safetensors_bytes(header, data));
  const Safetensors file(directory / "t.safetensors");
  EXPECT_EQ(file.metadata().at("format"), "pt");
  EXPECT_EQ(file.tensors().size(), 9u);
  EXPECT_EQ(file.floats("f"), (std::vector<float>{1.5f, -2.0f}));
  EXPECT_EQ(file.floats("h"), std::vector<float>{1.0f});
  EXPECT_EQ(file.floats("b"), std::vector<float>{-1.0f});
  EXPECT_EQ(file.integers("i"), std::vector<int64_t>{-5000000000});
  EXPECT_EQ(file.integers("j"), std::vector<int64_t>{-7});
  EXPECT_EQ(file.integers("k"), std::vector<int64_t>{-3});
  EXPECT_EQ(file.integers("u"), std::vector<int64_t>{200});
  EXPECT_EQ(file.integers("t"), std::vector<int64_t>{1});
  EXPECT_TRUE(file.floats("e").empty());
  EXPECT_EQ(file.at("b").describe(), "BF16[1, 1]");
  EXPECT_THROW(file.floats("i"), InputError);
  EXPECT_THROW(file.integers("f"), InputError);
  EXPECT_THROW(file.at("absent"), InputError);
  EXPECT_EQ(file.find("absent"), nullptr);
}

TEST(Safetensors, RefusesHostileHeaders) {
  const std::string data(16, '\0');
  EXPECT_EQ(refusal(safetensors_bytes(entry("F32", "[4]", "[0,16]"), data)), "");
  struct Case {
    std::string header, words;
  };
  const Case cases[] = {
      {"", "not valid JSON"},
      {"{", "not valid JSON"},
      {std::string(100000, '['), "the header is nested deeper than 100 levels"},
      {R"({"x":{"dtype":)" + std::string(200000, '[') + std::string(200000, ']') + "}}",
       "the header is nested deeper than 100 levels"},
      {"[]", "not a JSON object"},
      {"\"x\"", "not a JSON object"},
      {R"({"x":1})", "tensor x lacks"},
      {R"({"x":{"dtype":"F32","shape":[4]}})", "tensor x lacks"},
      {entry("F31", "[4]", "[0,16]"), "tensor x has dtype \"F31\", expected F64"},
      {entry("F32", "[4]", "[0,17]"), "tensor x lies at bytes 0 to 17"},
      {entry("F32", "[4]", "[8,4]"), "tensor x lies at"},
      {entry("F32", "[4]", "[0,12]"), "tensor x has 12 bytes, expected 16 for F32[4]"},
      {entry("F32", "[3]", "[0,16]"), "expected 12"},
      {entry("F32", "[-4]", "[0,16]"), "shape"},
      {entry("F32", "[4.0]", "[0,16]"), "shape"},
      {entry("F32", "4", "[0,16]"), "shape"},
      {entry("F32", "[4294967296,4294967296]", "[0,16]"), "does not fit in 64 bits"},
      {entry("F32", "[4611686018427387908]", "[0,16]"), "does not fit in 64 bits"},
      {entry("F32", "[0,18446744073709551615,18446744073709551615]", "[0,0]"),
       "does not fit in 64 bits"},
      {entry("F32", "[0,4]", "[0,16]"), "expected 0"},
      {entry("F32", "[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,4]", "[0,16]"), "at most 16"},
      {entry("F32", "[4]", "[0]"), "data_offsets"},
      {entry("F32", "[4]", "[0,18446744073709551616]"), "data_offsets"},
      {R"({"x":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},)"
       R"("y":{"dtype":"U8","shape":[4],"data_offsets":[3,7]}})",
       "tensors x and y overlap"},
      {R"({"x":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},)"
       R"("x":{"dtype":"U8","shape":[4],"data_offsets":[4,8]}})",
       "tensor x is in the header twice"},
      {R"({"__metadata__":{"a":1}})", "__metadata__ a is not a string"},
      {"{\"\xff\":1}", "not valid JSON"},
  };
  for (const Case& c : cases) {
    const std::string text = refusal(safetensors_bytes(c.header, data));
    EXPECT_NE(text.find(c.words), std::string::npos) << c.header.substr(0, 80) << " gave: " << text;
  }
}

TEST(Safetensors, RefusesTruncatedFilesAndLengths) {
  const std::string good = safetensors_bytes(entry("F32", "[4]", "[0,16]"), std::string(16, '\0'));
  for (size_t size = 0; size < good.size(); ++size) {
    EXPECT_NE(refusal(good.substr(0, size)), "") << size;
  }
  for (const uint64_t length : {uint64_t{100'000'001}, UINT64_MAX, UINT64_MAX - 7}) {
    std::string bad = good;
    std::memcpy(bad.data(), &length, 8);
    EXPECT_NE(refusal(bad).find("the header claims"), std::string::npos);
  }
}

TEST(Half, WidensExactly) {
  EXPECT_EQ(float_from_f16(0x0000), 0.0f);
  EXPECT_TRUE(std::signbit(float_from_f16(0x8000)));
  EXPECT_EQ(float_from_f16(0x0001), 0x1p-24f);
  EXPECT_EQ(float_from_f16(0x83ff), -1023 * 0x1p-24f);
  EXPECT_EQ(float_from_f16(0x0400), 0x1p-14f);
  EXPECT_EQ(float_from_f16(0x3c01), 1.0f + 0x1p-10f);
  EXPECT_EQ(float_from_f16(0x7bff), 65504.0f);
  EXPECT_EQ(float_from_f16(0x7c00), INFINITY);
  EXPECT_EQ(float_from_f16(0xfc00), -INFINITY);
  EXPECT_TRUE(std::isnan(float_from_f16(0x7e00)));
  EXPECT_EQ(float_from_bf16(0x3f80), 1.0f);
  EXPECT_EQ(float_from_bf16(0x0001), 0x1p-133f);
  EXPECT_EQ(float_from_bf16(0xff80), -INFINITY);
  EXPECT_TRUE(std::isnan(float_from_bf16(0x7fc0)));
}

}  // namespace
}  // namespace oxbow
