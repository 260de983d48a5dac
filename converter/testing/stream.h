#pragma once

// A model file being run, for tests that look at what comes out.

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "runtime/api/oxbow.h"

namespace oxbow::testing {

class Stream {
 public:
  explicit Stream(const std::string& path) {
    check(oxb_model_open_file(path.c_str(), &model_, &error_));
    size_t bytes = 0;
    check(oxb_session_arena_bytes(model_, nullptr, &bytes, &error_));
    arena_.resize(bytes);
    check(oxb_session_create(model_, nullptr, arena_.data(), bytes, &session_, &error_));
    oxb_model_get_info(model_, &info_);
  }
  ~Stream() {
    oxb_session_destroy(session_);
    oxb_model_close(model_);
  }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  const oxb_model_info& info() const { return info_; }

  std::vector<float> run(std::span<const int32_t> tokens) {
    std::vector<float> logits(tokens.size() * info_.vocabulary);
    check(oxb_session_run(session_, tokens.data(), tokens.size(), logits.data(), tokens.size(),
                          &error_));
    return logits;
  }

  /// A memory or kept activation by name; nothing when the model has none of it.
  std::optional<std::vector<float>> read(const std::string& name) {
    for (size_t i = 0; i < oxb_session_tensor_count(session_); ++i) {
      oxb_tensor_info info = {};
      check(oxb_session_tensor_info(session_, i, &info, &error_));
      if (name != info.name) continue;
      std::vector<float> values(size_t{info.rows} * info.width);
      check(oxb_session_tensor_read(session_, i, values.data(), values.size(), &error_));
      return values;
    }
    return std::nullopt;
  }

 private:
  void check(oxb_status status) const {
    if (status != OXB_OK) throw std::runtime_error(error_.text);
  }

  oxb_model* model_ = nullptr;
  oxb_session* session_ = nullptr;
  oxb_model_info info_ = {};
  oxb_error error_ = {};
  std::vector<std::byte> arena_;
};

}  // namespace oxbow::testing
