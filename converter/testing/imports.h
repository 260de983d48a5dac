#pragma once

// What tests of importers do with a golden pack: change it, import it, and see what is refused.

#include <string>

#include "converter/importers.h"
#include "host/errors.h"
#include "host/testing/files.h"
#include "host/testing/paths.h"

namespace oxbow::testing {

/// `name` is that of a folder in tests/golden.
inline EditableCheckpoint golden(const std::string& name) {
  return EditableCheckpoint::read(source_dir() + "/tests/golden/" + name);
}

/// The graph of a checkpoint that is written and read again.
inline convert::Graph imported(const EditableCheckpoint& editable,
                               const convert::ImportOptions& options = {}) {
  const TemporaryDirectory directory;
  editable.write(directory / "in");
  return convert::import_checkpoint(convert::Checkpoint(directory / "in"), options);
}

/// The words of the error.
inline std::string refusal(const EditableCheckpoint& editable,
                           const convert::ImportOptions& options = {}) {
  try {
    imported(editable, options);
  } catch (const InputError& error) {
    return error.what();
  } catch (const UsageError& error) {
    return error.what();
  }
  return "nothing was refused";
}

}  // namespace oxbow::testing
