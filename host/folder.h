#pragma once

// What there is in the file system. The standard library's own way to read a folder ends the program when there is no
// memory.

#include <string>
#include <vector>

namespace oxbow {

bool is_folder(const std::string& path);
bool is_file(const std::string& path);
/// Names of all that is in a folder, sorted; none when it cannot be read, and errno tells why.
std::vector<std::string> names_in(const std::string& folder);

}  // namespace oxbow
