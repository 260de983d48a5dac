#include "host/temporary_file.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include "host/errors.h"
#include "host/folder.h"
#include "host/io_file.h"
#include "runtime/base/hash.h"

namespace oxbow {
namespace {

constexpr size_t kMostAtOnce = size_t{1} << 30;

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

/// While it lives, this thread gets an error for a file that is too large, not a signal that ends the program.
class BlockFileSizeSignal {
 public:
  BlockFileSizeSignal() {
    sigemptyset(&signal_);
    sigaddset(&signal_, SIGXFSZ);
    pthread_sigmask(SIG_BLOCK, &signal_, &before_);
  }
  ~BlockFileSizeSignal() {
    const timespec now = {};
    while (sigtimedwait(&signal_, nullptr, &now) < 0 && errno == EINTR) continue;
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }

 private:
  sigset_t signal_, before_;
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

  /// One that is free; a program may make several files for one target.
  std::string next() const {
    const std::string own = directory_ + "/" + prefix_ + std::to_string(::getpid());
    std::string name = own;
    for (int i = 1; file_exists(name); ++i) name = own + "-" + std::to_string(i);
    return name;
  }

  /// What processes left that were killed before they could rename it.
  void remove_orphans() const {
    for (const std::string& name : names_in(directory_)) {
      if (!name.starts_with(prefix_)) continue;
      const long process = std::strtol(name.c_str() + prefix_.size(), nullptr, 10);
      const bool gone =
          process > 0 && ::kill(static_cast<pid_t>(process), 0) != 0 && errno == ESRCH;
      if (gone) ::unlink((directory_ + "/" + name).c_str());
    }
  }

 private:
  std::string directory_;
  std::string prefix_;
};

}  // namespace

void Descriptor::close() {
  if (fd_ >= 0) ::close(fd_);
}

TemporaryFile::TemporaryFile(const std::string& target) : target_(target) {
  if (target.empty()) throw InputError("cannot write to an empty file name");
  struct stat status = {};
  if (::stat(target.c_str(), &status) == 0 && !S_ISREG(status.st_mode)) {
    throw InputError("cannot write " + target + ": it is not a regular file; name a new file");
  }
  const TemporaryNames names(target);
  names.remove_orphans();
  fd_.reset(::open(directory_of(target).c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0666));
  nameless_ = "/proc/self/fd/" + std::to_string(fd_.get());
  if (fd_.get() >= 0 && file_exists(nameless_)) return;
  // A file system or system without nameless files: a name from the start.
  nameless_.clear();
  name_ = names.next();
  fd_.reset(::open(name_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (fd_.get() < 0) {
    name_.clear();
    fail_write(target, errno);
  }
}

TemporaryFile::~TemporaryFile() {
  if (!name_.empty()) ::unlink(name_.c_str());
}

void TemporaryFile::write_at(uint64_t offset, std::span<const std::byte> bytes) {
  const BlockFileSizeSignal no_signal;
  while (!bytes.empty()) {
    const ssize_t done = ::pwrite(fd_.get(), bytes.data(), std::min(bytes.size(), kMostAtOnce),
                                  static_cast<off_t>(offset));
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) fail_write(target_, errno);
    if (done == 0) fail_write(target_, ENOSPC);
    bytes = bytes.subspan(static_cast<size_t>(done));
    offset += static_cast<uint64_t>(done);
  }
}

void TemporaryFile::read_at(uint64_t offset, std::span<std::byte> bytes) const {
  while (!bytes.empty()) {
    const ssize_t done = ::pread(fd_.get(), bytes.data(), std::min(bytes.size(), kMostAtOnce),
                                 static_cast<off_t>(offset));
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) {
      throw InputError("cannot read back what was written for " + target_ + ": " +
                       (done < 0 ? std::strerror(errno) : "it is cut short"));
    }
    bytes = bytes.subspan(static_cast<size_t>(done));
    offset += static_cast<uint64_t>(done);
  }
}

void TemporaryFile::grow_to(uint64_t bytes) {
  const BlockFileSizeSignal no_signal;
  struct stat status = {};
  if (::fstat(fd_.get(), &status) != 0) fail_write(target_, errno);
  if (static_cast<uint64_t>(status.st_size) < bytes &&
      ::ftruncate(fd_.get(), static_cast<off_t>(bytes)) != 0) {
    fail_write(target_, errno);
  }
}

void TemporaryFile::sync() {
  if (::fsync(fd_.get()) != 0) fail_write(target_, errno);
}

void TemporaryFile::keep() {
  if (!nameless_.empty()) {
    // Only rename replaces a file, and only a name can be renamed.
    // Kept before it is taken: nothing may fail between the two, or the name would stay.
    name_ = TemporaryNames(target_).next();
    if (::linkat(AT_FDCWD, nameless_.c_str(), AT_FDCWD, name_.c_str(), AT_SYMLINK_FOLLOW) != 0) {
      const int code = errno;
      name_.clear();
      fail_write(target_, code);
    }
  }
  if (::rename(name_.c_str(), target_.c_str()) != 0) fail_write(target_, errno);
  name_.clear();
  // The rename itself survives a power cut only once the directory is synced. Not every file system can.
  const Descriptor directory(
      ::open(directory_of(target_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (directory.get() >= 0) static_cast<void>(::fsync(directory.get()));
}

}  // namespace oxbow
