// oxbow inspect: what is in a file, and what it will need.

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "host/describe.h"
#include "host/io_file.h"
#include "host/page.h"
#include "host/summary.h"
#include "tools/commands.h"
#include "tools/common.h"
#include "tools/inspect/npu.h"
#include "tools/inspect/table.h"

namespace oxbow::tools {
namespace {

using KeyValues = std::vector<std::unique_ptr<schema::KeyValueT>>;

std::string key_values(const char* title, const KeyValues& list) {
  std::vector<std::vector<std::string>> rows;
  for (const auto& pair : list) {
    rows.push_back({pair->key, pair->value});
  }
  return rows.empty() ? "" : std::string("\n") + title + "\n" + table(rows);
}

/// "ring mem of 8, 2 pinned, shared"
std::string ring_text(const schema::RingT& ring) {
  std::string text = "ring " + ring.name + " of " + std::to_string(ring.capacity);
  if (ring.pinned != 0) text += ", " + std::to_string(ring.pinned) + " pinned";
  if (ring.initial_rows != 0) text += ", starts with " + std::to_string(ring.initial_rows);
  if (ring.shared) text += ", shared by borrowers";
  return text;
}

std::string labels(const schema::MetadataT& metadata) {
  std::string out;
  for (size_t i = 0; i < metadata.labels.size(); ++i) {
    out += format("  %zu  %s\n", i, metadata.labels[i].c_str());
  }
  return out.empty() ? "" : "\nclasses\n" + out;
}

std::string states(const Description& description) {
  std::vector<std::vector<std::string>> rows;
  for (const auto& tensor : description.model.tensors) {
    if (tensor->kind != schema::TensorKind::State) continue;
    rows.push_back({tensor->name, shape_text(description.model, *tensor), type_text(*tensor),
                    bytes_text(tensor->bytes),
                    tensor->ring < 0
                        ? ""
                        : ring_text(*description.model.rings[static_cast<size_t>(tensor->ring)])});
  }
  return "\nstates\n" + (rows.empty() ? "  none\n" : table(rows));
}

/// The names under which they are read.
std::string kept_names(const schema::ModelT& model, const schema::EntryPointT& entry) {
  std::string text;
  for (size_t i = 0; i < entry.kept.size(); ++i) {
    text +=
        (i == 0 ? "" : ", ") +
        (i < entry.kept_names.size() ? entry.kept_names[i] : model.tensors[entry.kept[i]]->name);
  }
  return text;
}

/// `providers` of all steps, when the backend is another library; otherwise empty.
std::string steps(const Description& description, const std::vector<std::string>& providers) {
  const schema::ModelT& model = description.model;
  // Weights would double the width of the table; they are in the JSON and on the page.
  const auto names = [&](const std::vector<uint32_t>& list) {
    std::string text;
    for (const uint32_t index : list) {
      if (model.tensors[index]->kind == schema::TensorKind::Weight) continue;
      text += (text.empty() ? "" : ", ") + model.tensors[index]->name;
    }
    return text;
  };
  std::string out;
  size_t step_index = 0;
  for (const auto& entry : model.entry_points) {
    out += "\nentry point " + entry_text(model, *entry) + "; " +
           count_text(entry->steps.size(), "step") + "\n";
    std::vector<std::vector<std::string>> rows;
    for (size_t i = 0; i < entry->steps.size(); ++i) {
      const schema::StepT& step = *entry->steps[i];
      rows.push_back({std::to_string(i), schema::EnumNameOpCode(step.op), names(step.outputs),
                      options_text(step), "from " + names(step.inputs)});
      if (!providers.empty()) {
        rows.back().insert(rows.back().begin() + 2, providers[step_index++]);
      }
    }
    out += table(rows);
    if (!entry->outputs.empty()) {
      out += "  further outputs: " + names(entry->outputs) + "\n";
    }
    if (!entry->kept.empty()) out += "  kept to be read: " + kept_names(model, *entry) + "\n";
  }
  return out;
}

std::string text(const Description& description, const std::vector<std::string>& providers,
                 size_t backend_bytes) {
  const schema::MetadataT& metadata = *description.model.metadata;
  std::string out = summary_table(description);
  const auto add = [&](const std::string& name, const std::string& value) {
    out += format("%-22s%s\n", name.c_str(), value.c_str());
  };
  add("vocabulary", grouped_text(description.vocabulary));
  if (backend_bytes != 0) {
    add("backend memory", size_text(backend_bytes) + " beside the arena");
  }
  add("max segment", grouped_text(description.max_segment));
  add("tokenizer", description.model.tokenizer
                       ? schema::EnumNameTokenizerKind(description.model.tokenizer->kind)
                       : "None");
  add("hash", hash_text(description.hash));
  add("made by", metadata.converter);
  add("from", metadata.source_hash);
  add("licence", metadata.licence.empty() ? "not stated" : metadata.licence);
  out += key_values("settings", metadata.settings);
  out += key_values("sizes", metadata.sizes);
  return out + labels(metadata) + states(description) + steps(description, providers);
}

}  // namespace

void declare_inspect(Args& args) {
  args.positional("model.oxb", "the model file");
  args.flag("json", "print JSON");
  args.option("html", "FILE", "write a page with the sizes, the memory plan and the graph");
  args.flag("npu", "show what the file holds for NPUs, and what stays on the CPU");
  args.flag("check", "also read all weights and compare them with the checksum");
  add_common_options(args);
}

int inspect_command(const Args& args) {
  const CommonOptions common = read_common_options(args);
  const std::string path = *args.text("model.oxb");
  const oxb::Model model = open_model(path, &common);
  if (args.has("html")) refuse_overwriting(*args.text("html"), {path});
  if (args.has("check")) {
    const oxb::Status status = model.check_weights();
    if (!status.ok()) throw CheckFailed(path + ": " + status.text());
  }
  Description description = describe_file(path);
  // The arena of the session that was asked about, threads and backend included.
  description.memory = session_memory(model, path, common);
  // What a library or a device takes and serves is known only when it has been asked.
  std::vector<std::string> providers;
  size_t backend_bytes = 0;
  const oxb_backend backend = common.session.backend;
  const bool ours =
      backend == OXB_BACKEND_AUTO || backend == OXB_BACKEND_REFERENCE || backend == OXB_BACKEND_CPU;
  if (!ours) {
    const oxb::Session session = open_session(model, path, common);
    backend_bytes = session.backend_bytes();
    for (const char* name; (name = session.step_provider(providers.size())) != nullptr;) {
      providers.emplace_back(name);
    }
  }

  nlohmann::json out = to_json(description);
  out["path"] = path;
  if (!providers.empty()) {
    out["backend_bytes"] = backend_bytes;
    out["step_providers"] = providers;
  }
  if (args.has("check")) out["weights_checked"] = true;
  if (args.has("npu")) out["npu"] = npu_json(description.model);
  if (args.has("html")) {
    write_atomically(*args.text("html"),
                     to_html(page_data(made_by(args.program(), args.words()), {out}, {}), path));
  }
  if (args.has("json")) {
    std::fputs(json_text(out).c_str(), stdout);
  } else {
    std::fputs(args.has("npu") ? npu_text(description.model).c_str()
                               : text(description, providers, backend_bytes).c_str(),
               stdout);
    if (args.has("check")) std::puts("\nthe weights match their checksum");
  }
  return kExitGood;
}

}  // namespace oxbow::tools
