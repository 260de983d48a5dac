#include "converter/formats/torch_file.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "converter/formats/pickle.h"
#include "converter/formats/torch_tensors.h"
#include "converter/formats/zip.h"
#include "host/errors.h"
#include "runtime/base/checked.h"

namespace oxbow::convert {
namespace {

using Bytes = std::span<const std::byte>;

// The pickle of the number 0x1950a86a20f9469cfc6c, with which the older layout starts.
constexpr std::string_view kOldMagic = "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.";
constexpr size_t kTarMagicPlace = 257;
constexpr std::string_view kTarMagic = "ustar";
constexpr int64_t kOldProtocol = 1001;

bool has_text(Bytes file, size_t place, std::string_view text) {
  return file.size() >= place + text.size() &&
         std::memcmp(file.data() + place, text.data(), text.size()) == 0;
}

std::string_view as_text(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// The part of `storage` that is wanted, all of which is there.
Bytes storage_part(const std::string& where, const TorchStorage& wanted, Bytes storage) {
  const uint64_t width = wanted.element_bytes();
  uint64_t bytes = 0;
  if (!checked_mul(wanted.elements, width, &bytes) || bytes > storage.size()) {
    throw InputError(where + " needs a storage of " + std::to_string(wanted.elements) +
                     " elements, there are only " + std::to_string(storage.size()) + " bytes");
  }
  if (!wanted.is_view) return storage.subspan(0, bytes);
  uint64_t end = 0;
  if (!checked_add(wanted.view_offset, wanted.view_elements, &end) || end > wanted.elements) {
    throw InputError(where + " is a part of a storage that leaves its " +
                     std::to_string(wanted.elements) + " elements");
  }
  return storage.subspan(wanted.view_offset * width, wanted.view_elements * width);
}

TorchContents read_archive(const std::string& path, Bytes file, const std::string& key) {
  const ZipMembers members = read_zip(path, file);
  constexpr std::string_view kPickle = "data.pkl";
  const std::string* name = nullptr;
  for (const auto& [member, bytes] : members) {
    const std::string_view text = member;
    if (!text.ends_with(kPickle) ||
        (text.size() > kPickle.size() && text[text.size() - kPickle.size() - 1] != '/')) {
      continue;
    }
    if (name != nullptr) throw InputError(path + " has two members called data.pkl");
    name = &member;
  }
  if (name == nullptr) {
    throw InputError(path + " is a zip file without data.pkl, expected one made by torch.save");
  }
  const std::string folder = name->substr(0, name->size() - kPickle.size());
  if (const auto order = members.find(folder + "byteorder");
      order != members.end() && as_text(order->second) != "little") {
    throw InputError(path + " has the byte order " +
                     printable(std::string(as_text(order->second).substr(0, 80))) +
                     ", expected little; save it on a machine of that order");
  }
  const Pickle pickle = read_pickle(path + ": data.pkl", members.at(*name));
  return collect_tensors(path, pickle, key, [&](const std::string& where, const TorchStorage& s) {
    const auto found = members.find(folder + "data/" + std::string(s.key));
    if (found == members.end()) {
      throw InputError(where + " is in data/" + printable(std::string(s.key)) +
                       ", which is not in the file");
    }
    return storage_part(where, s, found->second);
  });
}

/// Storages by key as the older layout has them: a number of elements, then the elements.
class OldStorages {
 public:
  OldStorages(const std::string& path, const Pickle& pickle) : path_(path) {
    for (const PickleNode& node : pickle.nodes) {
      if (node.kind != PickleKind::kPersistent) continue;
      const TorchStorage storage = read_storage(path + ": a tensor", pickle, node);
      const auto [place, is_new] = expected_.emplace(storage.key, storage);
      if (!is_new && (place->second.element_bytes() != storage.element_bytes() ||
                      place->second.elements != storage.elements)) {
        throw InputError(name(storage.key) + " has two types or sizes");
      }
    }
  }

  /// `keys` says which storages `rest` holds, one after another.
  void read(const Pickle& keys, Bytes rest) {
    const PickleNode& list = keys[keys.root];
    if (list.kind != PickleKind::kList) throw InputError(path_ + ": no list of storages");
    for (const PickleRef ref : list.items) {
      const auto expected = expected_.find(keys[ref].text);
      if (keys[ref].kind != PickleKind::kText || expected == expected_.end()) {
        throw InputError(path_ + ": the list of storages has one that no tensor uses");
      }
      const std::string where = name(expected->first);
      uint64_t elements = 0, bytes = 0;
      if (rest.size() < sizeof(elements)) throw InputError(where + " is cut off");
      std::memcpy(&elements, rest.data(), sizeof(elements));
      rest = rest.subspan(sizeof(elements));
      if (elements != expected->second.elements) {
        throw InputError(where + " has " + std::to_string(elements) + " elements, expected " +
                         std::to_string(expected->second.elements));
      }
      if (!checked_mul(elements, expected->second.element_bytes(), &bytes) || bytes > rest.size()) {
        throw InputError(where + " has " + std::to_string(elements) + " elements, there are only " +
                         std::to_string(rest.size()) + " bytes left; is the file cut off?");
      }
      if (!storages_.emplace(expected->first, rest.subspan(0, bytes)).second) {
        throw InputError(where + " is in the file twice");
      }
      rest = rest.subspan(bytes);
    }
  }

  Bytes find(const std::string& where, const TorchStorage& wanted) const {
    const auto found = storages_.find(wanted.key);
    if (found == storages_.end()) {
      throw InputError(where + " is in storage " + printable(std::string(wanted.key)) +
                       ", which is not in the file");
    }
    return storage_part(where, wanted, found->second);
  }

 private:
  std::string name(std::string_view key) const {
    return path_ + ": storage " + printable(std::string(key));
  }

  const std::string& path_;
  std::map<std::string_view, TorchStorage> expected_;
  std::map<std::string_view, Bytes> storages_;
};

TorchContents read_old(const std::string& path, Bytes file, const std::string& key) {
  Bytes rest = file.subspan(kOldMagic.size());
  const auto next = [&](const char* what) {
    Pickle pickle = read_pickle(path + ": " + what, rest);
    rest = rest.subspan(pickle.size);
    return pickle;
  };
  const Pickle protocol = next("protocol");
  if (protocol[protocol.root].kind != PickleKind::kInteger ||
      protocol[protocol.root].integer != kOldProtocol) {
    throw InputError(path + " has an unknown protocol, expected 1001");
  }
  const Pickle system = next("system");
  const PickleNode* little = system.find(system[system.root], "little_endian");
  if (little == nullptr || little->kind != PickleKind::kBool || little->integer != 1) {
    throw InputError(path + " was not written on a little-endian machine; save it on one");
  }
  const Pickle pickle = next("pickle");
  const Pickle keys = next("storage keys");
  OldStorages storages(path, pickle);
  storages.read(keys, rest);
  return collect_tensors(path, pickle, key, [&](const std::string& where, const TorchStorage& s) {
    return storages.find(where, s);
  });
}

}  // namespace

bool looks_like_torch(Bytes file) {
  return looks_like_zip(file) || has_text(file, 0, kOldMagic) ||
         has_text(file, kTarMagicPlace, kTarMagic);
}

TorchContents read_torch(const std::string& path, Bytes file, const std::string& key) {
  if (has_text(file, 0, kOldMagic)) return read_old(path, file, key);
  if (!looks_like_zip(file)) {
    throw InputError(
        path +
        " is a tar file as torch before 0.1.10 wrote; load it with torch.load of torch "
        "1.x and save it again with torch.save");
  }
  return read_archive(path, file, key);
}

TorchFile::TorchFile(const std::string& path, const std::string& key) : TensorFile(path) {
  TorchContents contents = read_torch(path, file_bytes(), key);
  tensors_ = std::move(contents.tensors);
  notes_ = std::move(contents.notes);
}

}  // namespace oxbow::convert
