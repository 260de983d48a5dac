#pragma once

// Files as the converter wants them: whole, read-only in memory; written all or not at all.

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace oxbow {

/// A regular file mapped read-only. Throws InputError when it cannot be read.
class MappedFile {
 public:
  explicit MappedFile(const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const { return {data_, size_}; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
};

/// Reads a whole file. Throws InputError, also when it is larger than `limit` bytes.
std::string read_file(const std::string& path, size_t limit = size_t{64} << 20);

bool file_exists(const std::string& path);

/// Throws UsageError when `output` is one of `inputs`, by whatever name, and InputError when it could not be written:
/// before the work that is to fill it.
void refuse_overwriting(const std::string& output, const std::vector<std::string>& inputs);

/// Writes `parts` one after another to a temporary file in the directory of `path`, syncs it, lets
/// `check` look at the temporary (it throws to refuse it), and renames it to `path`. The temporary
/// has no name until then where the system can do that, so that nothing is left behind even when the
/// program is killed. On any failure an older file at `path` is as it was, and an InputError says
/// what happened and what to do.
void write_atomically(const std::string& path, std::span<const std::span<const std::byte>> parts,
                      const std::function<void(const std::string& temporary)>& check = {});
void write_atomically(const std::string& path, const std::string& text);

}  // namespace oxbow
