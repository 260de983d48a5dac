#include "host/image.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "host/errors.h"

#if OXB_HOST_PNG
#include <png.h>
#endif
#if OXB_HOST_JPEG
#include <jpeglib.h>

#include <csetjmp>
#include <cstdio>
#endif

namespace oxbow {
namespace {

// Of a side. What is larger is no picture for a model.
constexpr uint32_t kMaxSide = 1 << 14;
// A few bytes could ask for all memory: what PNG makes of a byte is some eight thousand pixels at most.
constexpr uint64_t kMaxPixelsOfByte = 8300;
// Each looks at all of a JPEG's pixels again, and one that changes nothing takes a few bytes. Files in use have some ten.
constexpr int kMaxScans = 100;

bool starts_with(std::span<const std::byte> file, std::string_view magic) {
  return file.size() >= magic.size() &&
         std::string_view(reinterpret_cast<const char*>(file.data()), magic.size()) == magic;
}

constexpr std::string_view kPng = "\x89PNG\r\n\x1a\n";
constexpr std::string_view kJpeg = "\xff\xd8\xff";

bool is_pnm(std::span<const std::byte> file) {
  return file.size() > 2 && file[0] == std::byte{'P'} &&
         std::string_view("2356").find(static_cast<char>(file[1])) != std::string_view::npos;
}

bool is_size(uint64_t width, uint64_t height, size_t file_bytes) {
  return width != 0 && height != 0 && width <= kMaxSide && height <= kMaxSide &&
         width * height <= file_bytes * kMaxPixelsOfByte;
}

void check_size(const std::string& path, uint64_t width, uint64_t height, size_t file_bytes) {
  if (is_size(width, height, file_bytes)) return;
  throw InputError(path + ": the picture is " + std::to_string(width) + " by " +
                   std::to_string(height) + ", expected 1 to " + std::to_string(kMaxSide) +
                   ", and no more pixels than its " + std::to_string(file_bytes) +
                   " bytes can hold");
}

[[noreturn, maybe_unused]] void fail_without(const std::string& path, const std::string& format,
                                             const std::string& package) {
  throw InputError(path + ": this build cannot read " + format + "; install " + package +
                   " and build again, or convert the picture to PNM");
}

#if OXB_HOST_PNG
Image read_png(const std::string& path, std::span<const std::byte> file) {
  png_image png = {};
  png.version = PNG_IMAGE_VERSION;
  const auto refuse = [&] {
    const std::string why = png.message;
    png_image_free(&png);
    throw InputError(path + ": " + printable(why));
  };
  if (png_image_begin_read_from_memory(&png, file.data(), file.size()) == 0) refuse();
  if (!is_size(png.width, png.height, file.size())) {
    png_image_free(&png);
    check_size(path, png.width, png.height, file.size());
  }
  const bool colour = (png.format & PNG_FORMAT_FLAG_COLOR) != 0;
  png.format = colour ? PNG_FORMAT_RGB : PNG_FORMAT_GRAY;
  Image image{png.width, png.height, colour ? 3u : 1u, {}};
  image.pixels.resize(PNG_IMAGE_SIZE(png));
  // What is transparent shows black.
  const png_color black = {0, 0, 0};
  if (png_image_finish_read(&png, &black, image.pixels.data(), 0, nullptr) == 0) refuse();
  return image;
}
#endif

#if OXB_HOST_JPEG
struct JpegFailure {
  jpeg_error_mgr manager;
  std::jmp_buf jump;
  char message[JMSG_LENGTH_MAX];
};

/// Fills `image`; false with a message. libjpeg leaves by longjmp, so nothing here has a destructor.
bool decode_jpeg(std::span<const std::byte> file, Image* image, JpegFailure* failure) {
  jpeg_decompress_struct jpeg;
  jpeg.err = jpeg_std_error(&failure->manager);
  failure->manager.error_exit = [](j_common_ptr info) {
    auto* to = reinterpret_cast<JpegFailure*>(info->err);
    info->err->format_message(info, to->message);
    std::longjmp(to->jump, 1);
  };
  failure->manager.output_message = [](j_common_ptr) {};
  jpeg_progress_mgr progress = {};
  progress.progress_monitor = [](j_common_ptr info) {
    if (reinterpret_cast<j_decompress_ptr>(info)->input_scan_number <= kMaxScans) return;
    auto* to = reinterpret_cast<JpegFailure*>(info->err);
    std::snprintf(to->message, sizeof(to->message), "more than %d scans", kMaxScans);
    std::longjmp(to->jump, 1);
  };
  if (setjmp(failure->jump) != 0) {
    jpeg_destroy_decompress(&jpeg);
    return false;
  }
  jpeg_create_decompress(&jpeg);
  jpeg.progress = &progress;
  jpeg_mem_src(&jpeg, reinterpret_cast<const unsigned char*>(file.data()), file.size());
  jpeg_read_header(&jpeg, TRUE);
  const bool fits = is_size(jpeg.image_width, jpeg.image_height, file.size());
  image->width = jpeg.image_width;
  image->height = jpeg.image_height;
  image->channels = jpeg.jpeg_color_space == JCS_GRAYSCALE ? 1 : 3;
  if (fits) {
    jpeg.out_color_space = image->channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_start_decompress(&jpeg);
    const size_t stride = size_t{image->width} * image->channels;
    image->pixels.resize(stride * image->height);
    while (jpeg.output_scanline < jpeg.output_height) {
      JSAMPROW row = image->pixels.data() + jpeg.output_scanline * stride;
      jpeg_read_scanlines(&jpeg, &row, 1);
    }
    jpeg_finish_decompress(&jpeg);
  }
  jpeg_destroy_decompress(&jpeg);
  return true;
}

Image read_jpeg(const std::string& path, std::span<const std::byte> file) {
  Image image;
  JpegFailure failure = {};
  if (!decode_jpeg(file, &image, &failure)) {
    throw InputError(path + ": " + printable(failure.message));
  }
  check_size(path, image.width, image.height, file.size());
  return image;
}
#endif

/// The numbers of a PNM file's header, and of its pixels where they are text.
class PnmReader {
 public:
  PnmReader(const std::string& path, std::span<const std::byte> file) : path_(path), file_(file) {}

  uint32_t number() {
    while (at_ < file_.size() && (is_space() || now() == '#')) {
      if (now() == '#') {
        while (at_ < file_.size() && now() != '\n') ++at_;
      } else {
        ++at_;
      }
    }
    uint32_t value = 0;
    const size_t begin = at_;
    for (; at_ < file_.size() && now() >= '0' && now() <= '9' && value < 1'000'000; ++at_) {
      value = 10 * value + static_cast<uint32_t>(now() - '0');
    }
    if (at_ == begin) throw InputError(path_ + ": expected a number in a PNM file");
    return value;
  }
  /// Behind the one space that ends the header.
  std::span<const std::byte> rest() const { return file_.subspan(std::min(at_ + 1, file_.size())); }

 private:
  char now() const { return static_cast<char>(file_[at_]); }
  bool is_space() const {
    return std::string_view(" \t\r\n").find(now()) != std::string_view::npos;
  }

  const std::string& path_;
  std::span<const std::byte> file_;
  size_t at_ = 2;
};

Image read_pnm(const std::string& path, std::span<const std::byte> file) {
  const char kind = static_cast<char>(file[1]);
  PnmReader reader(path, file);
  const uint32_t width = reader.number(), height = reader.number(), most = reader.number();
  check_size(path, width, height, file.size());
  if (most == 0 || most > 255) {
    throw InputError(path + ": the greatest value is " + std::to_string(most) +
                     ", expected 1 to 255");
  }
  Image image{width, height, kind == '3' || kind == '6' ? 3u : 1u, {}};
  const size_t count = size_t{width} * height * image.channels;
  const bool text = kind == '2' || kind == '3';
  const std::span<const std::byte> bytes = reader.rest();
  // Each number of a text takes two bytes at least.
  if (bytes.size() < (text ? 2 * count - 1 : count)) {
    throw InputError(path + ": the picture ends too early");
  }
  image.pixels.resize(count);
  for (size_t i = 0; i < count; ++i) {
    const uint32_t value = text ? reader.number() : std::to_integer<uint32_t>(bytes[i]);
    image.pixels[i] = static_cast<uint8_t>((std::min(value, most) * 255 + most / 2) / most);
  }
  return image;
}

/// Which pixels make one, and how much of each.
struct Taps {
  size_t first = 0;
  std::vector<double> weights;
};

std::vector<Taps> taps_of(uint32_t from, uint32_t to) {
  const double step = static_cast<double>(from) / to, support = std::max(step, 1.0);
  std::vector<Taps> all(to);
  for (uint32_t i = 0; i < to; ++i) {
    const double centre = (i + 0.5) * step;
    const auto first = static_cast<size_t>(std::max(0.0, std::floor(centre - support + 0.5)));
    const auto end = std::min<size_t>(from, static_cast<size_t>(centre + support + 0.5));
    double sum = 0;
    all[i].first = first;
    for (size_t j = first; j < end; ++j) {
      const double distance = std::fabs((static_cast<double>(j) + 0.5 - centre) / support);
      all[i].weights.push_back(std::max(0.0, 1 - distance));
      sum += all[i].weights.back();
    }
    for (double& weight : all[i].weights) weight /= sum;
  }
  return all;
}

uint8_t to_byte(double value) {
  return static_cast<uint8_t>(std::clamp(std::floor(value + 0.5), 0.0, 255.0));
}

}  // namespace

bool looks_like_image(std::span<const std::byte> file) {
  return starts_with(file, kPng) || starts_with(file, kJpeg) || is_pnm(file);
}

Image read_image(const std::string& path, std::span<const std::byte> file) {
  if (starts_with(file, kPng)) {
#if OXB_HOST_PNG
    return read_png(path, file);
#else
    fail_without(path, "PNG", "libpng-dev");
#endif
  }
  if (starts_with(file, kJpeg)) {
#if OXB_HOST_JPEG
    return read_jpeg(path, file);
#else
    fail_without(path, "JPEG", "libjpeg-dev");
#endif
  }
  if (is_pnm(file)) return read_pnm(path, file);
  throw InputError(path + ": neither PNG, JPEG nor PNM");
}

Image with_channels(const Image& image, uint32_t channels) {
  if (image.channels == channels) return image;
  Image result{image.width, image.height, channels, {}};
  const size_t pixels = size_t{image.width} * image.height;
  for (size_t i = 0; i < pixels; ++i) {
    if (image.channels == 1) {
      result.pixels.insert(result.pixels.end(), channels, image.pixels[i]);
    } else {
      const uint8_t* p = &image.pixels[3 * i];
      result.pixels.push_back(to_byte(0.299 * p[0] + 0.587 * p[1] + 0.114 * p[2]));
    }
  }
  return result;
}

Image resized(const Image& image, uint32_t width, uint32_t height) {
  if (image.width == width && image.height == height) return image;
  const size_t c = image.channels;
  const std::vector<Taps> across = taps_of(image.width, width),
                          down = taps_of(image.height, height);
  Image narrow{width, image.height, image.channels, {}};
  narrow.pixels.resize(size_t{width} * image.height * c);
  for (size_t y = 0; y < image.height; ++y) {
    for (size_t x = 0; x < width; ++x) {
      for (size_t k = 0; k < c; ++k) {
        double sum = 0;
        for (size_t i = 0; i < across[x].weights.size(); ++i) {
          sum +=
              across[x].weights[i] * image.pixels[(y * image.width + across[x].first + i) * c + k];
        }
        narrow.pixels[(y * width + x) * c + k] = to_byte(sum);
      }
    }
  }
  Image result{width, height, image.channels, {}};
  result.pixels.resize(size_t{width} * height * c);
  for (size_t y = 0; y < height; ++y) {
    for (size_t x = 0; x < width * c; ++x) {
      double sum = 0;
      for (size_t i = 0; i < down[y].weights.size(); ++i) {
        sum += down[y].weights[i] * narrow.pixels[(down[y].first + i) * width * c + x];
      }
      result.pixels[y * width * c + x] = to_byte(sum);
    }
  }
  return result;
}

std::vector<float> planes_of(const Image& image, const std::vector<double>& means,
                             const std::vector<double>& deviations) {
  const size_t pixels = size_t{image.width} * image.height;
  std::vector<float> planes(pixels * image.channels);
  for (size_t c = 0; c < image.channels; ++c) {
    const double mean = means.at(means.size() == 1 ? 0 : c);
    const double deviation = deviations.at(deviations.size() == 1 ? 0 : c);
    for (size_t i = 0; i < pixels; ++i) {
      planes[c * pixels + i] =
          static_cast<float>((image.pixels[i * image.channels + c] / 255.0 - mean) / deviation);
    }
  }
  return planes;
}

}  // namespace oxbow
