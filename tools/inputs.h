#pragma once

// Numbers from a file for an input of a model that takes no tokens: --input of the commands.

#include <string>
#include <vector>

#include "host/args.h"
#include "runtime/api/oxbow.hpp"

namespace oxbow::tools {

struct FloatRows {
  size_t rows = 0;
  std::vector<float> values;
};

/// How pictures become numbers.
struct PictureOptions {
  /// What the model takes; 0: it takes none.
  uint32_t width = 0, height = 0;
  /// One for each channel, or one for all.
  std::vector<double> means, deviations;
};

/// --image-mean and --image-std.
void add_picture_options(Args& args);
/// Those for the model at `model_path`. Throws UsageError.
PictureOptions read_picture_options(const Args& args, const std::string& model_path);

/// Rows for `input` of a file, known by its first bytes:
///   .npy, .safetensors   with a tensor of the input's name or only one. The last dimensions, as many as it takes, are a
///                        row: an image is [channels, height, width] and a plane one row
///   PNG, JPEG, PNM       scaled to the model's size
///   WAV                  16,000 samples a second, as the spectrogram that Whisper reads
/// Throws InputError.
FloatRows read_input(const std::string& path, const oxb_input_info& input,
                     const PictureOptions& picture);

}  // namespace oxbow::tools
