#include "converter/importers.h"

#include <map>

#include "converter/errors.h"

namespace oxbow::convert {

#define OXB_IMPORTER(name) void import_##name(const Checkpoint&, const ImportOptions&, Graph&);
#include "importers.inc"
#undef OXB_IMPORTER

namespace {

using Importer = void (*)(const Checkpoint&, const ImportOptions&, Graph&);

const std::map<std::string, Importer>& importers() {
  static const std::map<std::string, Importer> table = {
#define OXB_IMPORTER(name) {#name, import_##name},
#include "importers.inc"
#undef OXB_IMPORTER
  };
  return table;
}

}  // namespace

std::vector<std::string> supported_model_types() {
  std::vector<std::string> names;
  for (const auto& [name, unused] : importers()) names.push_back(name);
  return names;
}

Graph import_checkpoint(const Checkpoint& checkpoint, const ImportOptions& options) {
  const auto importer = importers().find(checkpoint.model_type());
  if (importer == importers().end()) {
    std::string list;
    for (const std::string& name : supported_model_types()) {
      list += (list.empty() ? "" : ", ") + name;
    }
    throw InputError(checkpoint.directory() + "/config.json: model_type " +
                     printable(checkpoint.model_type()) + " is not supported, supported: " + list);
  }
  Graph graph;
  importer->second(checkpoint, options, graph);
  for (const std::string& name : checkpoint.finish()) {
    graph.warnings.push_back("tensor " + printable(name) + " is not used");
  }
  return graph;
}

}  // namespace oxbow::convert
