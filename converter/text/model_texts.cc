#include "converter/text/model_texts.h"

#include <filesystem>

#include "converter/formats/checkpoint_files.h"
#include "converter/text/generation.h"
#include "host/errors.h"
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

bool takes_tokens(const Graph& graph) {
  return graph.tensor(graph.main_entry().tokens).type == schema::DataType::I32;
}

std::unique_ptr<schema::TokenizerT> copy(const schema::TokenizerT& tokenizer) {
  flatbuffers::FlatBufferBuilder builder;
  builder.Finish(schema::CreateTokenizer(builder, &tokenizer));
  return std::unique_ptr<schema::TokenizerT>(
      flatbuffers::GetRoot<schema::Tokenizer>(builder.GetBufferPointer())->UnPack());
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
  if (!takes_tokens(graph) || source_ == "none") return;
  FoundTokenizer found = find(graph);
  tokenizer_ = std::move(found.tokenizer);
  notes_ = std::move(found.notes);
  if (source_.empty()) files_ = {found.files.begin(), found.files.end()};
}

void ModelTexts::note_unread_files() {
  files_.merge(checkpoint_.file_names());
  std::set<std::string> unread;
  std::error_code unreadable;
  for (const auto& entry :
       std::filesystem::directory_iterator(checkpoint_.directory(), unreadable)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with('.') && !files_.contains(name)) unread.insert(name);
  }
  if (!unread.empty()) notes_.push_back("not read: " + list_names({unread.begin(), unread.end()}));
}

void ModelTexts::apply(Graph& graph) {
  const bool first = !read_;
  if (first) read(graph);
  if (tokenizer_) graph.model.tokenizer = copy(*tokenizer_);
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
