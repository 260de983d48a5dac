#pragma once

// Folders laid out as a model hub lays them out: configuration, weights, tokenizer files, and what
// else lies around. The weights are those of a golden case with another vocabulary, so they mean
// nothing; the tokenizer files are real ones, of tests/tokenizers.

#include <filesystem>
#include <string>
#include <vector>

namespace oxbow::testing {

/// "gpt2", "bert", "llama", "marian" and "t5".
std::vector<std::string> hub_folder_names();

/// Makes the folder. Throws std::runtime_error.
void make_hub_folder(const std::string& name, const std::filesystem::path& directory);

}  // namespace oxbow::testing
