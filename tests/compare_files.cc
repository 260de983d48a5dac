// Tells whether two files hold the same model: the same bytes of weights, and graphs that are equal once fields are
// taken out that older converters did not write.

#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "host/errors.h"
#include "host/io_file.h"
#include "runtime/model/file_prefix.h"
#include "schema/model_generated.h"

namespace oxbow {
namespace {

struct Parts {
  schema::ModelT model;
  std::string data;
};

Parts read_parts(const std::string& path) {
  const MappedFile file(path);
  FilePrefix prefix;
  if (file.bytes().size() < sizeof(prefix)) throw InputError(path + " is no model");
  std::memcpy(&prefix, file.bytes().data(), sizeof(prefix));
  flatbuffers::Verifier verifier(reinterpret_cast<const uint8_t*>(file.bytes().data()),
                                 file.bytes().size());
  if (!schema::VerifyModelBuffer(verifier) || prefix.data_offset > file.bytes().size()) {
    throw InputError(path + " is no model");
  }
  Parts parts;
  schema::GetModel(file.bytes().data())->UnPackTo(&parts.model);
  parts.data.assign(reinterpret_cast<const char*>(file.bytes().data()) + prefix.data_offset,
                    file.bytes().size() - prefix.data_offset);
  return parts;
}

/// Fields that were appended since.
void take_out(schema::ModelT& model) {
  model.required_features.clear();
  for (auto& entry : model.entry_points) entry->outputs.clear();
}

template <typename Table>
std::string packed(const typename Table::NativeTableType& object) {
  flatbuffers::FlatBufferBuilder builder;
  builder.Finish(Table::Pack(builder, &object));
  return {reinterpret_cast<const char*>(builder.GetBufferPointer()), builder.GetSize()};
}

int differences = 0;

void differ(const std::string& what) {
  std::printf("%s differs\n", what.c_str());
  ++differences;
}

template <typename Table, typename List>
void compare_lists(const std::string& what, const List& a, const List& b) {
  if (a.size() != b.size()) {
    differ("the number of " + what + "s");
    return;
  }
  for (size_t i = 0; i < a.size(); ++i) {
    if (packed<Table>(*a[i]) != packed<Table>(*b[i])) differ(what + " " + std::to_string(i));
  }
}

int compare(int argc, char** argv) {
  if (argc != 3) throw UsageError("usage: oxbow_compare_files OLD.oxb NEW.oxb");
  Parts a = read_parts(argv[1]), b = read_parts(argv[2]);
  take_out(a.model);
  take_out(b.model);
  if (a.data != b.data) differ("the data region");
  compare_lists<schema::Symbol>("symbol", a.model.symbols, b.model.symbols);
  compare_lists<schema::Ring>("ring", a.model.rings, b.model.rings);
  compare_lists<schema::Tensor>("tensor", a.model.tensors, b.model.tensors);
  compare_lists<schema::EntryPoint>("entry point", a.model.entry_points, b.model.entry_points);
  if (differences == 0 && packed<schema::Model>(a.model) != packed<schema::Model>(b.model)) {
    differ("the plan, tokenizer, metadata, task or generation");
  }
  if (differences == 0) std::printf("the same\n");
  return differences == 0 ? kExitGood : kExitCheckFailed;
}

}  // namespace
}  // namespace oxbow

int main(int argc, char** argv) {
  return oxbow::run_program("oxbow_compare_files", oxbow::compare, argc, argv);
}
