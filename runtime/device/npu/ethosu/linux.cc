// The calls of Linux behind the plug-in for Ethos-U.

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

#include "runtime/device/npu/ethosu/plugin.h"

namespace oxbow {
namespace {

int open_file(void*, const char* path) { return ::open(path, O_RDWR | O_CLOEXEC); }
int close_file(void*, int file) { return ::close(file); }

int call(void*, int file, unsigned long request, void* argument) {
  int result = 0;
  do {
    result = ::ioctl(file, request, argument);
  } while (result == -1 && (errno == EINTR || errno == EAGAIN));
  return result;
}

void* map(void*, int file, uint64_t offset, size_t bytes) {
  void* address =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, static_cast<off_t>(offset));
  return address == MAP_FAILED ? nullptr : address;
}
void unmap(void*, void* address, size_t bytes) { (void)::munmap(address, bytes); }

}  // namespace

constinit const EthosuSystem kLinuxEthosuSystem = {nullptr, open_file, close_file,
                                                   call,    map,       unmap};

}  // namespace oxbow
