#include "host/image.h"

#include <gtest/gtest.h>

#include <string>

#include "host/errors.h"

namespace oxbow {
namespace {

Image read(const std::string& file) { return read_image("a", std::as_bytes(std::span(file))); }

std::string refusal(const std::string& file) {
  try {
    read(file);
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Image, ReadsPnmAsBytesAndAsText) {
  const Image grey = read("P2\n# a comment\n3 2\n10\n0 5 10\n10 5 0\n");
  EXPECT_EQ(grey.width, 3u);
  EXPECT_EQ(grey.height, 2u);
  EXPECT_EQ(grey.channels, 1u);
  EXPECT_EQ(grey.pixels, (std::vector<uint8_t>{0, 128, 255, 255, 128, 0}));
  const Image colour = read(std::string("P6 1 2 255\n\x01\x02\x03\x04\x05\x06"));
  EXPECT_EQ(colour.channels, 3u);
  EXPECT_EQ(colour.pixels, (std::vector<uint8_t>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(with_channels(colour, 1).pixels, (std::vector<uint8_t>{2, 5}));
  EXPECT_EQ(with_channels(grey, 3).pixels.size(), 18u);
}

TEST(Image, RefusesWhatIsNoPicture) {
  EXPECT_NE(refusal("hello").find("neither"), std::string::npos);
  EXPECT_NE(refusal("P5 2 2 255\n\x01\x02\x03").find("ends too early"), std::string::npos);
  EXPECT_NE(refusal("P2 2 2 255\n1 2 3 ").find("too early"), std::string::npos);
  EXPECT_NE(refusal("P5 99999 99999 255\n").find("99999"), std::string::npos);
  EXPECT_NE(refusal("P5 2 2 65535\n").find("greatest value"), std::string::npos);
  EXPECT_NE(refusal("P5 x").find("a number"), std::string::npos);
  EXPECT_NE(refusal("\x89PNG\r\n\x1a\nnothing"), "accepted");
  EXPECT_NE(refusal("\xff\xd8\xffnothing"), "accepted");
}

TEST(Image, ResizesByTriangles) {
  const Image ramp{4, 1, 1, {0, 100, 100, 200}};
  // Half of it: triangles four pixels wide, cut off at the edges.
  const Image half = resized(ramp, 2, 1);
  EXPECT_EQ(half.pixels[0], 57);   // (0 * 3 + 100 * 3 + 100 * 1) / 7
  EXPECT_EQ(half.pixels[1], 143);  // (100 * 1 + 100 * 3 + 200 * 3) / 7
  const Image twice = resized(Image{2, 1, 1, {0, 100}}, 4, 1);
  EXPECT_EQ(twice.pixels, (std::vector<uint8_t>{0, 25, 75, 100}));
  EXPECT_EQ(resized(ramp, 4, 3).pixels.size(), 12u);
}

TEST(Image, PlanesAreNormalised) {
  const Image image{1, 2, 3, {255, 0, 51, 0, 255, 102}};
  EXPECT_EQ(planes_of(image, {0.5}, {0.5}),
            (std::vector<float>{1, -1, -1, 1, static_cast<float>(-0.6), static_cast<float>(-0.2)}));
  EXPECT_EQ(planes_of(image, {0, 1, 0}, {1, 1, 2})[2], -1.0f);
}

}  // namespace
}  // namespace oxbow
