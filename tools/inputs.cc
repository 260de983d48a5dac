#include "tools/inputs.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "host/describe.h"
#include "host/image.h"
#include "host/npy.h"
#include "host/safetensors.h"
#include "host/wav.h"
#include "tools/common.h"
#include "tools/verify/layout.h"

namespace oxbow::tools {
namespace {

const StoredTensor& find_tensor(const std::string& path, const TensorMap& tensors,
                                const std::string& name) {
  const auto found = tensors.find(name);
  if (found != tensors.end()) return found->second;
  if (tensors.size() == 1) return tensors.begin()->second;
  throw InputError(path + ": expected a tensor " + name + ", or only one tensor");
}

std::vector<float> values_of(const StoredTensor& tensor) {
  if (is_float(tensor.dtype)) return to_floats(tensor);
  std::vector<float> values;
  for (const int64_t value : to_integers(tensor)) values.push_back(static_cast<float>(value));
  return values;
}

/// How many rows of `width` numbers a tensor is, for one run: dimensions in front may only be 1.
size_t count_rows(const std::string& path, const std::vector<uint64_t>& shape,
                  const oxb_input_info& input) {
  uint64_t elements = 1;
  size_t rank = shape.size();
  while (rank > 0 && elements < input.width) elements *= shape[--rank];
  // A row of one number may have a dimension of its own.
  if (input.width == 1 && rank > 1 && shape[rank - 1] == 1) --rank;
  const size_t rows = rank == 0 ? 1 : shape[rank - 1];
  const bool one =
      std::all_of(shape.begin(), shape.begin() + static_cast<ptrdiff_t>(rank == 0 ? 0 : rank - 1),
                  [](uint64_t size) { return size == 1; });
  if (elements != input.width || !one || rows == 0) {
    throw InputError(
        format("%s is %s; '%s' takes rows of %u numbers, of one image, recording or "
               "stream",
               path.c_str(), shape_text(shape).c_str(), input.name, input.width));
  }
  return rows;
}

FloatRows rows_of(const std::string& path, const StoredTensor& tensor,
                  const oxb_input_info& input) {
  return {count_rows(path, tensor.shape, input), values_of(tensor)};
}

FloatRows picture_rows(const std::string& path, std::span<const std::byte> file,
                       const oxb_input_info& input, const PictureOptions& options) {
  // The sizes are the file's words, and pictures are made as large.
  if (options.width == 0 || uint64_t{options.width} * options.height != input.width ||
      (input.max_rows != 1 && input.max_rows != 3)) {
    throw InputError(path + " is a picture, which '" + input.name + "' does not take");
  }
  for (const std::vector<double>* list : {&options.means, &options.deviations}) {
    if (list->size() != 1 && list->size() != input.max_rows) {
      throw UsageError(
          format("--image-mean and --image-std: expected 1 or %u numbers each", input.max_rows));
    }
  }
  const Image image =
      resized(with_channels(read_image(path, file), input.max_rows), options.width, options.height);
  return {input.max_rows, planes_of(image, options.means, options.deviations)};
}

FloatRows sound_rows(const std::string& path, std::span<const std::byte> file,
                     const oxb_input_info& input) {
  if (std::string(input.name) != "input_features") {
    throw InputError(path + " is a recording, which '" + input.name + "' does not take");
  }
  const Recording recording = read_wav(path, file);
  if (recording.rate != 16000) {
    throw InputError(format("%s has %u samples a second, expected 16000: resample it first",
                            path.c_str(), recording.rate));
  }
  oxb::Expected<oxb::LogMel> mel = oxb::LogMel::create(input.max_rows, input.width);
  check(mel.status(), path);
  if (const size_t taken = mel->push(recording.samples); taken < recording.samples.size()) {
    std::fprintf(stderr, "%s: only the first %.1f seconds are read\n", path.c_str(),
                 static_cast<double>(taken) / 16000);
  }
  FloatRows rows{input.max_rows, std::vector<float>(size_t{input.max_rows} * input.width)};
  check(mel->finish(rows.values), path);
  return rows;
}

/// "0.5" or "0.485,0.456,0.406"
std::vector<double> read_numbers(const Args& args, const std::string& name, double low) {
  std::vector<double> numbers;
  const std::string text = args.text(name, "0.5");
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const std::string word = text.substr(begin, end - begin);
    char* stop = nullptr;
    const double number = std::strtod(word.c_str(), &stop);
    if (word.empty() || *stop != '\0' || !(number >= low && number <= 1e6)) {
      throw UsageError("--" + name + " has '" + printable(word) +
                       "', expected numbers with commas");
    }
    numbers.push_back(number);
    begin = end + 1;
  }
  return numbers;
}

}  // namespace

void add_picture_options(Args& args) {
  args.option(
      "image-mean", "X,Y,Z",
      "of pictures: what is taken from pixels of 0 to 1, for all or each channel (default 0.5)");
  args.option("image-std", "X,Y,Z", "and what they are divided by then (default 0.5)");
}

PictureOptions read_picture_options(const Args& args, const std::string& model_path) {
  PictureOptions options;
  options.means = read_numbers(args, "image-mean", -1e6);
  options.deviations = read_numbers(args, "image-std", 1e-6);
  const Description description = describe_file(model_path);
  for (const auto& size : description.model.metadata->sizes) {
    const auto value = static_cast<uint32_t>(parse_integer(size->value).value_or(0));
    if (size->key == "image_width") options.width = value;
    if (size->key == "image_height") options.height = value;
  }
  return options;
}

FloatRows read_input(const std::string& path, const oxb_input_info& input,
                     const PictureOptions& picture) {
  const MappedFile file(path);
  const std::span<const std::byte> bytes = file.bytes();
  if (looks_like_npy(bytes)) return rows_of(path, read_npy(path, bytes), input);
  if (looks_like_wav(bytes)) return sound_rows(path, bytes, input);
  if (looks_like_image(bytes)) return picture_rows(path, bytes, input, picture);
  if (looks_like_safetensors(bytes)) {
    const SafetensorsContents contents = read_safetensors(path, bytes);
    return rows_of(path, find_tensor(path, contents.tensors, input.name), input);
  }
  throw InputError(path + ": neither .npy, .safetensors, PNG, JPEG, PNM nor WAV");
}

}  // namespace oxbow::tools
