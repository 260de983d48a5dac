#include "converter/formats/zip.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "host/errors.h"
#include "runtime/base/checked.h"

namespace oxbow::convert {
namespace {

using Bytes = std::span<const std::byte>;

constexpr uint32_t kLocalSignature = 0x04034b50;
constexpr uint32_t kCentralSignature = 0x02014b50;
constexpr uint32_t kEndSignature = 0x06054b50;
constexpr uint32_t kEnd64Signature = 0x06064b50;
constexpr uint32_t kLocator64Signature = 0x07064b50;
constexpr size_t kLocalBytes = 30;
constexpr size_t kCentralBytes = 46;
constexpr size_t kEndBytes = 22;
constexpr size_t kEnd64Bytes = 56;
constexpr size_t kLocator64Bytes = 20;
constexpr size_t kMaxComment = 0xffff;
// A checkpoint has one for each tensor.
constexpr uint64_t kMaxMembers = uint64_t{1} << 20;
constexpr uint16_t kEncrypted = 1;
constexpr uint16_t kExtra64 = 1;
// A size or place that stands in the zip64 field instead.
constexpr uint32_t kElsewhere = 0xffffffff;

template <typename T>
T load(Bytes bytes, size_t place) {
  T value;
  std::memcpy(&value, bytes.data() + place, sizeof(T));
  return value;
}

struct Directory {
  uint64_t begin = 0, bytes = 0, members = 0;
};

Directory find_directory(const std::string& path, Bytes file) {
  const std::string cut = path + ": no directory at the end of this zip file; is it cut off?";
  if (file.size() < kEndBytes) throw InputError(cut);
  size_t end = file.size() - kEndBytes;
  const size_t lowest = end - std::min(end, kMaxComment);
  // The comment that follows must reach the end of the file exactly.
  while (load<uint32_t>(file, end) != kEndSignature ||
         load<uint16_t>(file, end + 20) != file.size() - end - kEndBytes) {
    if (end == lowest) throw InputError(cut);
    --end;
  }
  Directory out = {load<uint32_t>(file, end + 16), load<uint32_t>(file, end + 12),
                   load<uint16_t>(file, end + 10)};
  size_t limit = end;
  if (end >= kLocator64Bytes &&
      load<uint32_t>(file, end - kLocator64Bytes) == kLocator64Signature) {
    const uint64_t place = load<uint64_t>(file, end - kLocator64Bytes + 8);
    limit = end - kLocator64Bytes;
    if (limit < kEnd64Bytes || place > limit - kEnd64Bytes ||
        load<uint32_t>(file, place) != kEnd64Signature) {
      throw InputError(path + ": the zip64 end is said to be at byte " + std::to_string(place) +
                       ", where it is not");
    }
    limit = place;
    out = {load<uint64_t>(file, place + 48), load<uint64_t>(file, place + 40),
           load<uint64_t>(file, place + 32)};
  }
  if (out.begin > limit || out.bytes > limit - out.begin) {
    throw InputError(path + ": the zip directory claims " + std::to_string(out.bytes) +
                     " bytes from byte " + std::to_string(out.begin) + " of " +
                     std::to_string(file.size()));
  }
  // Each member takes at least this much of the directory.
  if (out.members > std::min(kMaxMembers, out.bytes / kCentralBytes)) {
    throw InputError(path + ": the zip directory claims " + std::to_string(out.members) +
                     " members in " + std::to_string(out.bytes) + " bytes");
  }
  return out;
}

/// Takes sizes and place from the zip64 field, as far as they are left to it.
void read_extra(const std::string& where, Bytes extra, uint64_t* size, uint64_t* packed,
                uint64_t* place) {
  while (extra.size() >= 4) {
    const uint16_t id = load<uint16_t>(extra, 0), bytes = load<uint16_t>(extra, 2);
    if (bytes > extra.size() - 4) break;
    if (id == kExtra64) {
      Bytes field = extra.subspan(4, bytes);
      for (uint64_t* value : {size, packed, place}) {
        if (*value != kElsewhere) continue;
        if (field.size() < 8) throw InputError(where + " has a zip64 field that is too short");
        *value = load<uint64_t>(field, 0);
        field = field.subspan(8);
      }
      return;
    }
    extra = extra.subspan(size_t{4} + bytes);
  }
}

struct Member {
  std::string name;
  /// From its header to its end.
  uint64_t begin = 0, end = 0;
};

}  // namespace

bool looks_like_zip(Bytes file) {
  return file.size() >= 4 && load<uint32_t>(file, 0) == kLocalSignature;
}

ZipMembers read_zip(const std::string& path, Bytes file) {
  const Directory directory = find_directory(path, file);
  ZipMembers members;
  std::vector<Member> order;
  Bytes rest = file.subspan(directory.begin, directory.bytes);
  for (uint64_t i = 0; i < directory.members; ++i) {
    if (rest.size() < kCentralBytes || load<uint32_t>(rest, 0) != kCentralSignature) {
      throw InputError(path + ": member " + std::to_string(i) + " of the zip directory is broken");
    }
    const uint16_t flags = load<uint16_t>(rest, 8), method = load<uint16_t>(rest, 10);
    uint64_t packed = load<uint32_t>(rest, 20), size = load<uint32_t>(rest, 24);
    uint64_t begin = load<uint32_t>(rest, 42);
    const size_t name_bytes = load<uint16_t>(rest, 28), extra_bytes = load<uint16_t>(rest, 30);
    const size_t comment_bytes = load<uint16_t>(rest, 32);
    if (name_bytes + extra_bytes + comment_bytes > rest.size() - kCentralBytes) {
      throw InputError(path + ": member " + std::to_string(i) + " of the zip directory is cut off");
    }
    const std::string name(reinterpret_cast<const char*>(rest.data()) + kCentralBytes, name_bytes);
    const std::string where = path + ": member " + printable(name);
    read_extra(where, rest.subspan(kCentralBytes + name_bytes, extra_bytes), &size, &packed,
               &begin);
    rest = rest.subspan(kCentralBytes + name_bytes + extra_bytes + comment_bytes);

    if ((flags & kEncrypted) != 0) throw InputError(where + " is encrypted, expected plain data");
    if (method != 0 || packed != size) {
      throw InputError(where + " is compressed, expected it stored as torch.save does");
    }
    // The header before the data has a name and extra field of its own.
    if (begin > directory.begin || directory.begin - begin < kLocalBytes ||
        load<uint32_t>(file, begin) != kLocalSignature) {
      throw InputError(where + " is said to be at byte " + std::to_string(begin) +
                       ", where no member is");
    }
    const uint64_t data =
        begin + kLocalBytes + load<uint16_t>(file, begin + 26) + load<uint16_t>(file, begin + 28);
    uint64_t end = 0;
    if (!checked_add(data, size, &end) || end > directory.begin) {
      throw InputError(where + " claims " + std::to_string(size) + " bytes from byte " +
                       std::to_string(data) + ", expected an end before the directory at byte " +
                       std::to_string(directory.begin));
    }
    if (load<uint16_t>(file, begin + 26) != name_bytes ||
        std::memcmp(file.data() + begin + kLocalBytes, name.data(), name_bytes) != 0) {
      throw InputError(where + " has another name where its data is");
    }
    if (!members.emplace(name, file.subspan(data, size)).second) {
      throw InputError(where + " is in the file twice");
    }
    order.push_back({name, begin, end});
  }

  std::sort(order.begin(), order.end(),
            [](const Member& a, const Member& b) { return a.begin < b.begin; });
  for (size_t i = 1; i < order.size(); ++i) {
    if (order[i - 1].end > order[i].begin) {
      throw InputError(path + ": members " + printable(order[i - 1].name) + " and " +
                       printable(order[i].name) + " overlap");
    }
  }
  std::erase_if(members, [](const auto& member) { return member.first.ends_with('/'); });
  return members;
}

}  // namespace oxbow::convert
