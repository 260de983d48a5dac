// Any bytes as what a model is given with --input: a picture, a recording or an array; read, or refused with an InputError.

#include "host/errors.h"
#include "host/image.h"
#include "host/npy.h"
#include "host/wav.h"
#include "tests/fuzz/broken.h"
#include "tests/fuzz/read_all.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace oxbow;
  using testing::broken;
  const auto file = std::as_bytes(std::span(data, size));
  try {
    if (looks_like_npy(file)) {
      testing::read_all({{"array", read_npy("input", file)}});
    } else if (looks_like_wav(file)) {
      if (read_wav("input", file).rate == 0) broken("a recording has a rate");
    } else if (looks_like_image(file)) {
      const Image image = read_image("input", file);
      if (image.pixels.size() != size_t{image.width} * image.height * image.channels) {
        broken("a picture has all of its pixels");
      }
      const Image small = resized(with_channels(image, 3), 7, 5);
      if (small.pixels.size() != 7 * 5 * 3) broken("a picture gets the size that is wanted");
    }
  } catch (const InputError&) {
  }
  return 0;
}
