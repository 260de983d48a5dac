#include "tests/support/edit_model.h"

#include <cstring>
#include <span>

#include "converter/describe.h"
#include "converter/writer.h"
#include "runtime/file_prefix.h"
#include "tests/support/files.h"

namespace oxbow::testing {

void edit_model(const std::string& from, const std::string& to,
                const std::function<void(schema::ModelT&)>& edit) {
  schema::ModelT model = std::move(convert::describe_file(from).model);
  edit(model);
  const std::vector<std::byte> file = read_bytes(from);
  FilePrefix prefix;
  std::memcpy(&prefix, file.data(), sizeof(prefix));
  convert::write_model(to,
                       convert::assemble_file(model, std::span(file).subspan(prefix.data_offset)));
}

}  // namespace oxbow::testing
