#include "converter/formats/open_tensor_file.h"

#include <span>
#include <string_view>

#include "converter/formats/torch_file.h"
#include "host/errors.h"
#include "host/safetensors.h"

namespace oxbow::convert {
namespace {

/// What is often found in the place of a tensor file, and what to do about it.
void refuse_others(const std::string& path, std::span<const std::byte> file) {
  struct Other {
    std::string_view start;
    const char* what;
  };
  constexpr Other kOthers[] = {
      {"version https://git-lfs", "is only a pointer to a file in Git LFS; run git lfs pull"},
      {"\x89HDF", "is an HDF5 file, expected safetensors or what torch.save writes"},
      {"\x93NUMPY", "is a NumPy array, expected safetensors or what torch.save writes"},
  };
  const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  for (const Other& other : kOthers) {
    if (text.starts_with(other.start)) throw InputError(path + " " + other.what);
  }
}

}  // namespace

std::unique_ptr<TensorFile> open_tensor_file(const std::string& path, const std::string& key) {
  bool is_torch = false;
  {
    const MappedFile file(path);
    refuse_others(path, file.bytes());
    is_torch = looks_like_torch(file.bytes());
    // What is called so is told what is wrong with it by its reader.
    if (!is_torch && !looks_like_safetensors(file.bytes()) && !path.ends_with(".safetensors")) {
      throw InputError(path +
                       " is neither a safetensors file nor one of torch.save; is it cut off?");
    }
  }
  if (is_torch) return std::make_unique<TorchFile>(path, key);
  if (!key.empty()) {
    throw InputError(path + " has no dictionaries, as files of torch.save have; leave out --key");
  }
  return std::make_unique<Safetensors>(path);
}

}  // namespace oxbow::convert
