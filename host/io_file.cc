#include "host/io_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "host/errors.h"
#include "host/temporary_file.h"

namespace oxbow {
namespace {

[[noreturn]] void fail_read(const std::string& path, int code) {
  throw InputError("cannot read " + path + ": " + std::strerror(code));
}

}  // namespace

MappedFile::MappedFile(const std::string& path) : path_(path) {
  // Without O_NONBLOCK a FIFO that nobody writes to would never be opened.
  Descriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (fd.get() < 0) fail_read(path, errno);
  struct stat status = {};
  if (::fstat(fd.get(), &status) != 0) fail_read(path, errno);
  if (!S_ISREG(status.st_mode)) throw InputError("cannot read " + path + ": not a regular file");
  size_ = static_cast<size_t>(status.st_size);
  if (size_ == 0) return;
  void* mapped = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, fd.get(), 0);
  if (mapped == MAP_FAILED) fail_read(path, errno);
  data_ = static_cast<const std::byte*>(mapped);
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
}

std::string read_file(const std::string& path, size_t limit) {
  const MappedFile file(path);
  if (file.bytes().size() > limit) {
    throw InputError(path + " has " + std::to_string(file.bytes().size()) +
                     " bytes, expected at most " + std::to_string(limit));
  }
  return std::string(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
}

bool file_exists(const std::string& path) {
  struct stat status = {};
  return ::stat(path.c_str(), &status) == 0;
}

void refuse_overwriting(const std::string& output, const std::vector<std::string>& inputs) {
  struct stat out = {};
  const bool there = ::stat(output.c_str(), &out) == 0;
  for (const std::string& input : inputs) {
    struct stat in = {};
    if (output == input || (there && ::stat(input.c_str(), &in) == 0 && in.st_dev == out.st_dev &&
                            in.st_ino == out.st_ino)) {
      throw UsageError("writing " + output + " would destroy " + input + "; name another file");
    }
  }
  if (there && S_ISDIR(out.st_mode)) {
    throw InputError("cannot write " + output + ": it is a directory; name a file in it");
  }
  // Minutes of work are not begun for a place that takes nothing.
  const TemporaryFile tried(output);
}

void write_atomically(const std::string& path, std::span<const std::span<const std::byte>> parts,
                      const std::function<void(const std::string&)>& check) {
  TemporaryFile temporary(path);
  uint64_t end = 0;
  for (const std::span<const std::byte> part : parts) {
    temporary.write_at(end, part);
    end += part.size();
  }
  temporary.sync();
  if (check) check(temporary.path());
  temporary.keep();
}

void write_atomically(const std::string& path, const std::string& text) {
  const std::span<const std::byte> part = std::as_bytes(std::span(text.data(), text.size()));
  write_atomically(path, std::span(&part, 1));
}

}  // namespace oxbow
