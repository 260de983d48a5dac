#pragma once

// Reads the archives torch.save writes: zip files, zip64 where needed, whose members are stored as
// they are. Nothing is unpacked: a member is a part of the file. Checksums are not looked at, since
// torch may leave them out; a member must lie within the file and share no byte with another.

#include <cstddef>
#include <map>
#include <span>
#include <string>

namespace oxbow::convert {

using ZipMembers = std::map<std::string, std::span<const std::byte>>;

/// A zip file that starts with a member, as all do that are not empty.
bool looks_like_zip(std::span<const std::byte> file);

/// The members of `file` by name, without folders; `path` is for messages. Throws InputError.
ZipMembers read_zip(const std::string& path, std::span<const std::byte> file);

}  // namespace oxbow::convert
