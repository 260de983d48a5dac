#pragma once

// Model files with something the converter would not write, such as a tokenizer for a test.

#include <cstddef>
#include <functional>
#include <span>
#include <string>

#include "runtime/model/file_prefix.h"
#include "schema/model_generated.h"

namespace oxbow::testing {

/// Writes the model at `from` to `to` with a changed graph, which the runtime must accept.
void edit_model(const std::string& from, const std::string& to,
                const std::function<void(schema::ModelT&)>& edit);

FilePrefix read_prefix(std::span<const std::byte> file);

/// Makes every hash of a changed graph right again, as somebody who means harm would.
void repair_hashes(std::span<std::byte> file);

}  // namespace oxbow::testing
