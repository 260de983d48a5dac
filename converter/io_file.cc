#include "converter/io_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include "converter/errors.h"

namespace oxbow::convert {
namespace {

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() { close(); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }
  bool close() {
    const int fd = fd_;
    fd_ = -1;
    return fd < 0 || ::close(fd) == 0;
  }

 private:
  int fd_;
};

[[noreturn]] void fail_read(const std::string& path, int code) {
  throw InputError("cannot read " + path + ": " + std::strerror(code));
}

[[noreturn]] void fail_write(const std::string& path, int code) {
  std::string advice;
  if (code == ENOSPC || code == EDQUOT) {
    advice = "; free some space there or write elsewhere";
  } else if (code == EFBIG) {
    advice = "; raise the file size limit (ulimit -f) or use a file system without this limit";
  } else if (code == ENOENT || code == ENOTDIR) {
    advice = "; create the directory first";
  } else if (code == EACCES || code == EROFS || code == EPERM) {
    advice = "; choose a directory you may write to";
  }
  throw InputError("cannot write " + path + ": " + std::strerror(code) + advice);
}

/// A size limit must end in a message, not in a signal that leaves the temporary file behind.
class IgnoreFileSizeSignal {
 public:
  IgnoreFileSizeSignal() : before_(std::signal(SIGXFSZ, SIG_IGN)) {}
  ~IgnoreFileSizeSignal() { std::signal(SIGXFSZ, before_); }

 private:
  void (*before_)(int);
};

/// Removes the file unless told to keep it.
class Temporary {
 public:
  explicit Temporary(std::string path) : path_(std::move(path)) {}
  ~Temporary() {
    if (!kept_) ::unlink(path_.c_str());
  }
  Temporary(const Temporary&) = delete;
  Temporary& operator=(const Temporary&) = delete;
  void keep() { kept_ = true; }

 private:
  std::string path_;
  bool kept_ = false;
};

void write_all(int fd, std::span<const std::byte> bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t done = ::write(fd, bytes.data(), std::min(bytes.size(), size_t{1} << 30));
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) fail_write(path, errno);
    if (done == 0) fail_write(path, ENOSPC);
    bytes = bytes.subspan(static_cast<size_t>(done));
  }
}

std::string directory_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, std::max<size_t>(slash, 1));
}

}  // namespace

MappedFile::MappedFile(const std::string& path) : path_(path) {
  Descriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
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

void write_atomically(const std::string& path, std::span<const std::span<const std::byte>> parts,
                      const std::function<void(const std::string&)>& check) {
  if (path.empty()) throw InputError("cannot write to an empty file name");
  struct stat status = {};
  if (::stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode)) {
    throw InputError("cannot write " + path + ": it is not a regular file; name a new file");
  }
  const IgnoreFileSizeSignal no_signal;

  std::string name = path + ".tmpXXXXXX";
  Descriptor fd(::mkostemp(name.data(), O_CLOEXEC));
  if (fd.get() < 0) fail_write(path, errno);
  Temporary temporary(name);
  for (const std::span<const std::byte> part : parts) write_all(fd.get(), part, path);

  // mkostemp makes the file private; give it what a plain open would have given.
  const mode_t mask = ::umask(0);
  ::umask(mask);
  if (::fchmod(fd.get(), 0666 & ~mask) != 0) fail_write(path, errno);
  if (::fsync(fd.get()) != 0) fail_write(path, errno);
  if (!fd.close()) fail_write(path, errno);
  if (check) check(name);
  if (::rename(name.c_str(), path.c_str()) != 0) fail_write(path, errno);
  temporary.keep();

  // The rename itself survives a power cut only once the directory is synced. Not every file system
  // can.
  Descriptor directory(::open(directory_of(path).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (directory.get() >= 0) static_cast<void>(::fsync(directory.get()));
}

void write_atomically(const std::string& path, const std::string& text) {
  const std::span<const std::byte> part = std::as_bytes(std::span(text.data(), text.size()));
  write_atomically(path, std::span(&part, 1));
}

}  // namespace oxbow::convert
