#pragma once

// Compilers of others, which are programs.

#include <filesystem>
#include <string>
#include <vector>

namespace oxbow::convert {

/// A folder that goes with the object.
class WorkFolder {
 public:
  WorkFolder();
  ~WorkFolder();
  WorkFolder(const WorkFolder&) = delete;
  WorkFolder& operator=(const WorkFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

/// Runs a program with both outputs in a file; throws InputError with the last line when it fails, and with `hint` when it is not
/// there.
void run_program(const std::vector<std::string>& words, const std::filesystem::path& log,
                 const std::string& hint);

}  // namespace oxbow::convert
