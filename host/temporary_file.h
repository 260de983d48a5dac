#pragma once

// A file that is being made: in the directory of the one it is to become, and gone at the end unless it did.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace oxbow {

/// Owns a file descriptor.
class Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  ~Descriptor() { close(); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }
  void reset(int fd) {
    close();
    fd_ = fd;
  }

 private:
  void close();
  int fd_;
};

/// It has no name where the system can do that, so that nothing is left behind even when the program is killed.
/// Failures are InputErrors that say what happened and what to do. Reads and writes may come from several threads.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& target);
  ~TemporaryFile();
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  /// To open it for reading.
  const std::string& path() const { return nameless_.empty() ? name_ : nameless_; }

  void write_at(uint64_t offset, std::span<const std::byte> bytes);
  void read_at(uint64_t offset, std::span<std::byte> bytes) const;
  /// With zeros; never shorter.
  void grow_to(uint64_t bytes);

  void sync();
  /// Takes the target's place, once. An older target is there until then, and stays on failure.
  void keep();

 private:
  std::string target_;
  Descriptor fd_;
  std::string nameless_;
  std::string name_;
};

}  // namespace oxbow
