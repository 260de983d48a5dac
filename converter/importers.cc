#include "converter/importers.h"

#include <map>
#include <nlohmann/json.hpp>

#include "host/errors.h"
#include "host/folder.h"
#include "host/io_file.h"
#include "host/json_file.h"

namespace oxbow::convert {

#define OXB_IMPORTER(name, model_type) \
  void import_##name(const Checkpoint&, const ImportOptions&, Graph&);
#include "importers.inc"
#undef OXB_IMPORTER

namespace {

using Importer = void (*)(const Checkpoint&, const ImportOptions&, Graph&);

const std::map<std::string, Importer>& importers() {
  static const std::map<std::string, Importer> table = {
#define OXB_IMPORTER(name, model_type) {model_type, import_##name},
#include "importers.inc"
#undef OXB_IMPORTER
  };
  return table;
}

std::map<std::string, Importer>::const_iterator find_importer(const std::string& directory,
                                                              const std::string& model_type) {
  const auto importer = importers().find(model_type);
  if (importer != importers().end()) return importer;
  std::string list;
  for (const std::string& known : supported_model_types()) {
    list += (list.empty() ? "" : ", ") + known;
  }
  throw InputError(directory + "/config.json: model_type " + printable(model_type) +
                   " is not supported, supported: " + list);
}

}  // namespace

void check_model_type(const std::string& directory) {
  const std::string path = directory + "/config.json";
  if (!is_folder(directory) || !file_exists(path)) return;
  nlohmann::json config;
  try {
    config = read_json(path);
  } catch (const InputError&) {
    return;  // What else is wrong with the file is told when it is read, and Infinity is no mistake there.
  }
  const auto type = config.find("model_type");
  if (config.is_object() && type != config.end() && type->is_string()) {
    find_importer(directory, type->get<std::string>());
  }
}

std::vector<std::string> supported_model_types() {
  std::vector<std::string> names;
  for (const auto& [name, unused] : importers()) names.push_back(name);
  return names;
}

namespace {

/// Tokens of a configuration that the model does not have.
void check_generation(Graph& graph) {
  schema::GenerationT* generation = graph.model.generation.get();
  if (generation == nullptr) return;
  const int64_t taken = graph.tensor(graph.main_entry().tokens).limit;
  // What gives classes or hidden states has tokens to take only.
  const bool gives_tokens =
      graph.model.task != schema::Task::Classify && graph.model.task != schema::Task::Encode;
  const int64_t given = gives_tokens ? graph.tensor(graph.main_entry().logits).width : taken;
  if (generation->start_token >= taken) {
    throw InputError("config.json: a text starts with token " +
                     std::to_string(generation->start_token) + ", expected one below " +
                     std::to_string(taken) + ": decoder_start_token_id or bos_token_id");
  }
  const auto drop = [&](int32_t& token, const char* what) {
    if (token < given) return;
    graph.warnings.push_back(std::string("token ") + std::to_string(token) + ", which " + what +
                             " a text, is not in the vocabulary");
    token = -1;
  };
  drop(generation->end_token, "ends");
  drop(generation->pad_token, "fills");
  drop(generation->forced_last_token, "must end");
  for (std::vector<int32_t>* list :
       {&generation->forbidden_tokens, &generation->first_forbidden_tokens}) {
    std::erase_if(*list, [&](int32_t token) { return token >= given; });
  }
}

/// Something is wrong, the exception that is handled. Goes through everything once more with what an importer could take
/// instead, to tell of all.
[[noreturn]] void tell_all_problems(const Checkpoint& checkpoint, const ImportOptions& options,
                                    Importer importer, const std::shared_ptr<FloatFile>& file) {
  checkpoint.collect_problems();
  try {
    Graph unused;
    unused.file = file;
    importer(checkpoint, options, unused);
    checkpoint.finish();
  } catch (const std::exception&) {
    // Another value may not fit to the rest of the file. What was collected until here is right.
  }
  // Alone it is told with the file it is in.
  if (checkpoint.problem_count() <= 1) throw;
  checkpoint.throw_problems();
}

}  // namespace

Graph import_checkpoint(const Checkpoint& checkpoint, const ImportOptions& options,
                        std::shared_ptr<FloatFile> file) {
  const auto importer = find_importer(checkpoint.directory(), checkpoint.model_type());
  Graph graph;
  graph.file = file;
  try {
    importer->second(checkpoint, options, graph);
  } catch (const KeyError&) {
    tell_all_problems(checkpoint, options, importer->second, file);
  } catch (const TensorError&) {
    tell_all_problems(checkpoint, options, importer->second, file);
  }
  if (!graph.keeps_context && (options.context != 0 || options.ring || options.sinks != 0)) {
    throw UsageError(
        "--context, --ring and --sinks are for decoders that keep all keys and values; " +
        printable(checkpoint.model_type()) + " is none");
  }
  check_generation(graph);
  for (const auto& [index, values] : graph.weights) {
    if (checkpoint.is_ternary(graph.tensor(index).name)) graph.ternary.insert(index);
  }
  for (const std::string& unused : checkpoint.finish()) {
    graph.warnings.push_back("tensor " + printable(unused) + " is not used");
  }
  return graph;
}

}  // namespace oxbow::convert
