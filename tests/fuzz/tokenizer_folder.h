#pragma once

// A folder of tokenizer files from one input: each file follows a line "--- NAME". What becomes of it
// is a tokenizer that the runtime takes and that keeps its promises, or an InputError.

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string_view>
#include <vector>

#include "converter/text/generation.h"
#include "converter/text/tokenizer/find.h"
#include "host/errors.h"
#include "tests/fuzz/check_text.h"

namespace oxbow::testing {

/// A folder of this process, in memory where there is such a thing.
inline const std::filesystem::path& fuzz_folder() {
  struct Folder {
    std::filesystem::path path;
    Folder() {
      const std::filesystem::path memory = "/dev/shm";
      const std::filesystem::path root =
          ::access(memory.c_str(), W_OK) == 0 ? memory : std::filesystem::temp_directory_path();
      path = root / ("oxbow-fuzz-" + std::to_string(::getpid()));
      std::filesystem::create_directory(path);
    }
    ~Folder() {
      std::error_code ignored;
      std::filesystem::remove_all(path, ignored);
    }
  };
  static const Folder folder;
  return folder.path;
}

/// Writes the files of an input whose names are known; any other text belongs to the file before it.
inline void write_fuzz_folder(std::string_view input) {
  constexpr std::string_view kNames[] = {"tokenizer.json",
                                         "vocab.json",
                                         "merges.txt",
                                         "vocab.txt",
                                         "tokenizer_config.json",
                                         "special_tokens_map.json",
                                         "added_tokens.json",
                                         "char_vocab.json",
                                         "tokenizer.model",
                                         "spiece.model",
                                         "source.spm",
                                         "target.spm",
                                         "chat_template.jinja",
                                         "generation_config.json"};
  constexpr std::string_view kMark = "--- ";
  // Those of the input before; calls of the system are most of what a small folder costs.
  static std::vector<std::filesystem::path> written;
  for (const std::filesystem::path& path : written) std::filesystem::remove(path);
  written.clear();
  std::ofstream file;
  while (!input.empty()) {
    const size_t end = std::min(input.find('\n'), input.size() - 1) + 1;
    const std::string_view line = input.substr(0, end);
    input.remove_prefix(end);
    bool begins = false;
    for (const std::string_view name : kNames) {
      if (!line.starts_with(kMark) || line.substr(kMark.size(), name.size()) != name ||
          line.size() != kMark.size() + name.size() + 1) {
        continue;
      }
      written.push_back(fuzz_folder() / name);
      file = std::ofstream(written.back(), std::ios::binary | std::ios::trunc);
      begins = true;
    }
    // The line's end before a mark is the mark's.
    const bool before_mark = input.starts_with(kMark) && line.ends_with('\n');
    if (!begins && file.is_open()) file << line.substr(0, line.size() - (before_mark ? 1 : 0));
  }
}

/// Reads what is in the folder as the converter does for a model of this type and size.
inline void read_fuzz_folder(const std::string& model_type, uint32_t vocabulary) {
  constexpr std::string_view kText =
      "Where does the Old River end? <s>caf\xc3\xa9\xff 12,345 don't\n";
  const std::string folder = fuzz_folder().string();
  try {
    const convert::FoundTokenizer found = convert::find_tokenizer(folder, {model_type, vocabulary});
    if (!found.tokenizer) return;
    flatbuffers::FlatBufferBuilder builder;
    builder.Finish(schema::CreateTokenizer(builder, found.tokenizer.get()));
    Tokenizer tokenizer;
    Error error;
    if (open_tokenizer(flatbuffers::GetRoot<schema::Tokenizer>(builder.GetBufferPointer()),
                       vocabulary, &tokenizer, &error) != Status::kOk) {
      broken("the runtime takes what the converter makes:", error.text);
    }
    oxb_encoder_options options = OXB_ENCODER_OPTIONS_INIT;
    options.max_word_bytes = 256;
    check_text(tokenizer, options, kText, 1);
    close_tokenizer(&tokenizer);
  } catch (const InputError&) {
  }
}

}  // namespace oxbow::testing
