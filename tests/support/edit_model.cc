#include "tests/support/edit_model.h"

#include <cstring>

#include "converter/writer.h"
#include "host/describe.h"
#include "runtime/base/hash.h"
#include "tests/support/files.h"

namespace oxbow::testing {

void edit_model(const std::string& from, const std::string& to,
                const std::function<void(schema::ModelT&)>& edit) {
  schema::ModelT model = std::move(describe_file(from).model);
  edit(model);
  const std::vector<std::byte> file = read_bytes(from);
  convert::write_model(
      to, convert::assemble_file(model, std::span(file).subspan(read_prefix(file).data_offset)));
}

FilePrefix read_prefix(std::span<const std::byte> file) {
  FilePrefix prefix;
  std::memcpy(&prefix, file.data(), sizeof(prefix));
  return prefix;
}

void repair_hashes(std::span<std::byte> file) {
  FilePrefix prefix = read_prefix(file);
  if (prefix.graph_bytes >= sizeof(prefix) && prefix.graph_bytes <= file.size()) {
    prefix.graph_hash =
        hash_bytes(file.data() + sizeof(prefix), prefix.graph_bytes - sizeof(prefix));
  }
  std::memcpy(file.data(), &prefix, sizeof(prefix));
  prefix.prefix_hash = hash_bytes(file.data(), offsetof(FilePrefix, prefix_hash));
  std::memcpy(file.data(), &prefix, sizeof(prefix));
}

}  // namespace oxbow::testing
