#include "converter/text/generation.h"

#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>

#include "host/errors.h"
#include "host/json_file.h"

namespace oxbow::convert {
namespace {

using nlohmann::json;

// Keys that say nothing about which tokens are picked, or that only repeat a default.
constexpr const char* kWithoutEffect[] = {"_from_model_config",
                                          "transformers_version",
                                          "max_length",
                                          "max_new_tokens",
                                          "use_cache",
                                          "pad_token_id",
                                          "bos_token_id",
                                          "do_sample",
                                          "cache_implementation",
                                          "trust_remote_code"};

class Reader {
 public:
  Reader(const std::string& path, uint32_t vocabulary, schema::GenerationT& generation)
      : path_(path), vocabulary_(vocabulary), generation_(generation) {}

  std::vector<std::string> read() {
    config_ = read_json(path_);
    if (!config_.is_object()) throw InputError(path_ + " is not a JSON object");
    used_.insert(std::begin(kWithoutEffect), std::end(kWithoutEffect));
    read_tokens();
    read_sampling();
    read_beams();
    std::string ignored;
    for (const auto& [key, value] : config_.items()) {
      const bool idle = value.is_null() || value == false || value == 0 || value == 0.0 ||
                        (!value.is_primitive() && value.empty());
      if (used_.contains(key) || idle) continue;
      ignored += (ignored.empty() ? "" : ", ") + printable(key, 40);
    }
    if (!ignored.empty()) notes_.push_back("generation_config.json: ignored " + ignored);
    return notes_;
  }

 private:
  const json* find(const std::string& key) {
    used_.insert(key);
    const auto place = config_.find(key);
    return place == config_.end() || place->is_null() ? nullptr : &*place;
  }

  [[noreturn]] void fail(const std::string& key, const std::string& expected) const {
    throw InputError(path_ + ": " + key + " is " +
                     printable(config_.at(key).dump(-1, ' ', true), 80) + ", expected " + expected);
  }

  /// One id or a list of them. Those the model does not have are never met.
  std::vector<int32_t> tokens(const std::string& key) {
    const json* value = find(key);
    if (value == nullptr) return {};
    std::vector<int32_t> out;
    for (const json& id : value->is_array() ? *value : json::array({*value})) {
      if (!id.is_number_integer()) fail(key, "a token id or a list of them");
      if (id.is_number_unsigned() && id.get<uint64_t>() < vocabulary_) {
        out.push_back(id.get<int32_t>());
      } else {
        notes_.push_back("generation_config.json: " + key + " names " + id.dump() +
                         ", which the model does not have");
      }
    }
    return out;
  }

  void read_tokens() {
    const auto first = [&](const std::string& key, int32_t& token) {
      if (const std::vector<int32_t> ids = tokens(key); !ids.empty()) token = ids[0];
    };
    if (find("decoder_start_token_id") == nullptr) first("bos_token_id", generation_.start_token);
    first("decoder_start_token_id", generation_.start_token);
    first("pad_token_id", generation_.pad_token);
    first("forced_eos_token_id", generation_.forced_last_token);
    if (const std::vector<int32_t> ends = tokens("eos_token_id"); !ends.empty()) {
      generation_.end_token = ends[0];
      generation_.more_end_tokens.assign(ends.begin() + 1, ends.end());
    }
    if (const std::vector<int32_t> never = tokens("suppress_tokens"); !never.empty()) {
      generation_.forbidden_tokens.insert(generation_.forbidden_tokens.end(), never.begin(),
                                          never.end());
    }
    if (const std::vector<int32_t> never = tokens("begin_suppress_tokens"); !never.empty()) {
      generation_.first_forbidden_tokens = never;
    }
    read_timestamps();
  }

  /// Whisper's: times are the tokens behind the one that says that there are none.
  void read_timestamps() {
    const std::vector<int32_t> none = tokens("no_timestamps_token_id");
    if (none.empty() || static_cast<uint32_t>(none[0]) + 1 >= vocabulary_) return;
    generation_.no_timestamps_token = none[0];
    generation_.first_timestamp = none[0] + 1;
    number("max_initial_timestamp_index", 0.0, 1e6, generation_.last_initial_timestamp);
  }

  template <typename T>
  void number(const std::string& key, double min, double max, flatbuffers::Optional<T>& out) {
    const json* value = find(key);
    if (value == nullptr) return;
    if (!value->is_number() || !(value->get<double>() >= min && value->get<double>() <= max)) {
      fail(key, "a number from " + std::to_string(min) + " to " + std::to_string(max));
    }
    out = static_cast<T>(value->get<double>());
  }

  void read_sampling() {
    const json* sample = find("do_sample");
    if (sample != nullptr && !sample->is_boolean()) fail("do_sample", "true or false");
    schema::GenerationT read;
    number("temperature", 0.0, 1e6, read.temperature);
    number("top_k", 0.0, 1e9, read.top_k);
    number("top_p", 1e-6, 1.0, read.top_p);
    number("repetition_penalty", 1e-3, 1e3, read.repetition_penalty);
    generation_.repetition_penalty = read.repetition_penalty;
    if (sample == nullptr) {
      // They are for sampling, which nobody asked for.
      for (const char* key : {"temperature", "top_k", "top_p"}) used_.erase(key);
      return;
    }
    // The most likely token each time, whatever the rest says.
    if (!sample->get<bool>()) read.temperature = 0.0f;
    generation_.temperature = read.temperature;
    generation_.top_k = read.top_k;
    generation_.top_p = read.top_p;
    notes_.push_back(std::string("generation_config.json: ") +
                     (sample->get<bool>() ? "tokens are sampled as it says"
                                          : "the most likely token is taken each time"));
  }

  void read_beams() {
    number("num_beams", 1.0, 64.0, generation_.beams);
    number("length_penalty", -10.0, 10.0, generation_.length_penalty);
  }

  std::string path_;
  uint32_t vocabulary_;
  schema::GenerationT& generation_;
  json config_;
  std::set<std::string> used_;
  std::vector<std::string> notes_;
};

}  // namespace

std::vector<std::string> read_generation_config(const std::string& path, uint32_t vocabulary,
                                                schema::GenerationT& generation) {
  return Reader(path, vocabulary, generation).read();
}

}  // namespace oxbow::convert
