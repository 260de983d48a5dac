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
    check(oxb_model_open_file(path.c_str(), nullptr, &model_, &error_));
    oxb_plan plan = OXB_PLAN_INIT;
    check(oxb_session_plan(model_, nullptr, &plan, &error_));
    arena_.resize(plan.arena_bytes);
    check(oxb_session_create(model_, &plan, arena_.data(), arena_.size(), &session_, &error_));
    check(oxb_model_get_info(model_, &info_, &error_));
  }
  ~Stream() {
    oxb_session_destroy(session_);
    oxb_model_close(model_);
  }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  const oxb_model_info& info() const { return info_; }

  std::vector<float> run(std::span<const int32_t> tokens) {
    std::vector<float> logits(tokens.size() * info_.output_width);
    check(oxb_session_run(session_, tokens.data(), tokens.size(), tokens.size(), logits.data(),
                          logits.size(), &error_));
    return logits;
  }

  /// A memory or kept activation by name; nothing when the model has none of it.
  std::optional<std::vector<float>> read(const std::string& name) {
    size_t index = 0;
    if (oxb_session_find_tensor(session_, name.c_str(), &index, nullptr) != OXB_OK) {
      return std::nullopt;
    }
    oxb_tensor_info info = OXB_TENSOR_INFO_INIT;
    check(oxb_session_tensor_info(session_, index, &info, &error_));
    std::vector<float> values(size_t{info.rows} * info.width);
    check(oxb_session_tensor_read(session_, index, values.data(), values.size(), &error_));
    return values;
  }

 private:
  void check(oxb_status status) const {
    if (status != OXB_OK) throw std::runtime_error(error_.text);
  }

  oxb_model* model_ = nullptr;
  oxb_session* session_ = nullptr;
  oxb_model_info info_ = OXB_MODEL_INFO_INIT;
  oxb_error error_ = OXB_ERROR_INIT;
  std::vector<std::byte> arena_;
};

}  // namespace oxbow::testing
