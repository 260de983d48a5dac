#pragma once

// The architectures the converter knows: one file in converter/arch each, found by the build. The
// file's name is the checkpoint's model_type.

#include <memory>
#include <string>
#include <vector>

#include "converter/formats/checkpoint.h"
#include "converter/graph.h"

namespace oxbow::convert {

std::vector<std::string> supported_model_types();

/// Throws InputError when `directory` has a config.json with another model_type: before anybody looks for tensors.
void check_model_type(const std::string& directory);

/// Builds the float graph with the importer for the checkpoint's model_type, and makes sure that
/// nothing in the checkpoint was left over. Large weights go to `file`, unless it is null. Throws InputError.
Graph import_checkpoint(const Checkpoint& checkpoint, const ImportOptions& options,
                        std::shared_ptr<FloatFile> file = nullptr);

}  // namespace oxbow::convert
