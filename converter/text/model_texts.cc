#include "converter/text/model_texts.h"

#include <algorithm>

#include "converter/formats/checkpoint_files.h"
#include "converter/text/generation.h"
#include "host/errors.h"
#include "host/folder.h"
#include "host/io_file.h"

namespace oxbow::convert {
namespace {

/// What a tokenizer must know: the tokens a model gives, or takes when it gives something else.
uint32_t vocabulary(const Graph& graph) {
  const bool gives_tokens =
      graph.model.task != schema::Task::Classify && graph.model.task != schema::Task::Encode;
  const schema::EntryPointT& entry = graph.main_entry();
  return gives_tokens ? graph.tensor(entry.logits).width : graph.tensor(entry.tokens).limit;
}

std::unique_ptr<schema::TokenizerT> copy(const schema::TokenizerT& tokenizer) {
  flatbuffers::FlatBufferBuilder builder;
  builder.Finish(schema::CreateTokenizer(builder, &tokenizer));
  return std::unique_ptr<schema::TokenizerT>(
      flatbuffers::GetRoot<schema::Tokenizer>(builder.GetBufferPointer())->UnPack());
}

/// Ids of config.json that the tokenizer takes for plain text although it has tokens of that kind: most
/// likely it belongs to another model.
std::vector<std::string> foreign_ids(const Checkpoint& checkpoint,
                                     const schema::TokenizerT& tokenizer) {
  const auto is_mark = [](schema::TokenRole role) {
    return role == schema::TokenRole::Control || role == schema::TokenRole::Special;
  };
  std::vector<std::string> foreign;
  if (std::none_of(tokenizer.roles.begin(), tokenizer.roles.end(), is_mark)) return foreign;
  for (const char* key : {"bos_token_id", "eos_token_id"}) {
    int32_t id = -1;
    try {
      id = checkpoint.token(key, -1);
    } catch (const InputError&) {
      continue;  // An importer that needs it has refused it before.
    }
    if (id < 0) continue;
    const auto place = static_cast<size_t>(id);
    const schema::TokenRole role =
        place < tokenizer.roles.size() ? tokenizer.roles[place] : schema::TokenRole::Plain;
    if (role == schema::TokenRole::Plain || role == schema::TokenRole::Byte) {
      foreign.push_back(std::string(key) + " " + std::to_string(id));
    }
  }
  return foreign;
}

bool generates(const Graph& graph) {
  return graph.model.task == schema::Task::Generate || graph.model.task == schema::Task::Translate;
}

}  // namespace

FoundTokenizer ModelTexts::find(const Graph& graph) const {
  const TokenizerModel model = {checkpoint_.model_type(), vocabulary(graph)};
  if (!source_.empty()) return read_tokenizer(source_, model);
  try {
    return checkpoint_.gguf() != nullptr ? read_gguf_tokenizer(checkpoint_.gguf()->gguf(), model)
                                         : find_tokenizer(checkpoint_.directory(), model);
  } catch (const InputError& error) {
    throw InputError(std::string(error.what()) + "; --tokenizer none converts without it");
  }
}

void ModelTexts::read(const Graph& graph) {
  read_ = true;
  if (!graph.takes_tokens() || source_ == "none") return;
  FoundTokenizer found = find(graph);
  tokenizer_ = std::move(found.tokenizer);
  notes_ = std::move(found.notes);
  warnings_ = std::move(found.warnings);
  if (source_.empty()) files_.insert(found.files.begin(), found.files.end());
}

void ModelTexts::note_unread_files() {
  files_.merge(checkpoint_.file_names());
  std::set<std::string> unread;
  for (const std::string& name : names_in(checkpoint_.directory())) {
    if (!name.starts_with('.') && !files_.contains(name)) unread.insert(name);
  }
  if (!unread.empty()) notes_.push_back("not read: " + list_names({unread.begin(), unread.end()}));
}

void ModelTexts::apply(Graph& graph) {
  const bool first = !read_;
  if (first) read(graph);
  if (tokenizer_) {
    graph.model.tokenizer = copy(*tokenizer_);
    if (const auto foreign = foreign_ids(checkpoint_, *tokenizer_); !foreign.empty()) {
      graph.warnings.push_back("the tokenizer may belong to another model: " + list_names(foreign) +
                               " of config.json is plain text to it");
    }
    graph.warnings.insert(graph.warnings.end(), warnings_.begin(), warnings_.end());
  }
  apply_generation(graph, first);
  if (first) note_unread_files();
}

void ModelTexts::apply_generation(Graph& graph, bool first) {
  const std::string path = checkpoint_.directory() + "/generation_config.json";
  if (!generates(graph) || !file_exists(path)) return;
  if (!graph.model.generation) graph.model.generation = std::make_unique<schema::GenerationT>();
  const std::vector<std::string> notes =
      read_generation_config(path, vocabulary(graph), *graph.model.generation);
  files_.insert("generation_config.json");
  if (first) notes_.insert(notes_.end(), notes.begin(), notes.end());
}

}  // namespace oxbow::convert
