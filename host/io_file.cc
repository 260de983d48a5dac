#include "host/io_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "host/errors.h"
#include "runtime/base/hash.h"

namespace oxbow {
namespace {

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() { close(); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }
  void reset(int fd) {
    close();
    fd_ = fd;
  }
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

std::string directory_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, std::max<size_t>(slash, 1));
}

/// Names of temporary files for one target: short whatever the target's name is, and with the number of
/// the process that made them.
class TemporaryNames {
 public:
  explicit TemporaryNames(const std::string& target) : directory_(directory_of(target)) {
    const std::string name = target.substr(target.rfind('/') + 1);
    char text[40];
    std::snprintf(text, sizeof(text), ".oxbow-%016llx-",
                  static_cast<unsigned long long>(hash_bytes(name.data(), name.size())));
    prefix_ = text;
  }

  std::string own() const { return directory_ + "/" + prefix_ + std::to_string(::getpid()); }

  /// What processes left that were killed before they could rename it.
  void remove_orphans() const {
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator(directory_, ignored)) {
      const std::string name = entry.path().filename().string();
      if (!name.starts_with(prefix_)) continue;
      const long process = std::strtol(name.c_str() + prefix_.size(), nullptr, 10);
      const bool gone =
          process > 0 && ::kill(static_cast<pid_t>(process), 0) != 0 && errno == ESRCH;
      if (gone || process == ::getpid()) ::unlink(entry.path().c_str());
    }
  }

 private:
  std::string directory_;
  std::string prefix_;
};

/// A new file in the directory of `target`, gone at the end unless it became `target`.
class Temporary {
 public:
  explicit Temporary(const std::string& target)
      : target_(target),
        names_(target),
        fd_(::open(directory_of(target).c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0666)) {
    names_.remove_orphans();
    nameless_ = "/proc/self/fd/" + std::to_string(fd_.get());
    if (fd_.get() >= 0 && file_exists(nameless_)) return;
    // A file system or system without nameless files: a name from the start.
    nameless_.clear();
    name_ = names_.own();
    fd_.reset(::open(name_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
    if (fd_.get() < 0) {
      name_.clear();
      fail_write(target, errno);
    }
  }
  ~Temporary() {
    if (!name_.empty()) ::unlink(name_.c_str());
  }
  Temporary(const Temporary&) = delete;
  Temporary& operator=(const Temporary&) = delete;

  int fd() const { return fd_.get(); }
  /// To open it for reading.
  const std::string& path() const { return nameless_.empty() ? name_ : nameless_; }

  /// Takes the target's place.
  void keep() {
    if (!nameless_.empty()) {
      // Only rename replaces a file, and only a name can be renamed.
      const std::string name = names_.own();
      if (::linkat(AT_FDCWD, nameless_.c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW) != 0) {
        fail_write(target_, errno);
      }
      name_ = name;
    }
    if (::rename(name_.c_str(), target_.c_str()) != 0) fail_write(target_, errno);
    name_.clear();
  }

 private:
  std::string target_;
  TemporaryNames names_;
  Descriptor fd_;
  std::string nameless_;
  std::string name_;
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
}

void write_atomically(const std::string& path, std::span<const std::span<const std::byte>> parts,
                      const std::function<void(const std::string&)>& check) {
  if (path.empty()) throw InputError("cannot write to an empty file name");
  struct stat status = {};
  if (::stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode)) {
    throw InputError("cannot write " + path + ": it is not a regular file; name a new file");
  }
  const IgnoreFileSizeSignal no_signal;

  Temporary temporary(path);
  for (const std::span<const std::byte> part : parts) write_all(temporary.fd(), part, path);
  if (::fsync(temporary.fd()) != 0) fail_write(path, errno);
  if (check) check(temporary.path());
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

}  // namespace oxbow
