#pragma once

// The last step: the finished graph and the packed weights become one file. runtime/model/file_prefix.h
// draws it.

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "schema/model_generated.h"

namespace oxbow::convert {

/// The bytes of the whole file: prefix, graph, padding, `data`. The graph names the features that it uses, besides
/// those it names already.
std::vector<std::byte> assemble_file(const schema::ModelT& model, std::span<const std::byte> data);

/// The same for a graph that is a finished FlatBuffer.
std::vector<std::byte> frame_graph(std::span<const std::byte> graph,
                                   std::span<const std::byte> data);

/// Writes the bytes of a file all or not at all; the runtime must accept them before they get their
/// name.
void write_model(const std::string& path, std::span<const std::byte> file);

}  // namespace oxbow::convert
