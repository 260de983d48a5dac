// Saved states of every architecture, changed anywhere, with right checksums: refused, or gone on with in the same way
// by every session, whatever it did before. An input is a list of choices: the model, the stream that is saved, the
// changes, and how it goes on.

#include <map>

#include "tests/fuzz/base_models.h"
#include "tests/fuzz/model_runs.h"

namespace oxbow::testing {
namespace {

/// Bytes of the header of a saved state, and where in it the checksum is.
constexpr size_t kHeader = 40, kChecksum = 32;

/// Changes some words, half of them in the positions at the beginning, then makes the checksum right.
void change_blob(std::vector<uint8_t>& blob, Choices& choices) {
  if (choices.one_in(64)) return blob.resize(choices.below(blob.size()));
  const bool head = choices.one_in(16);
  for (size_t changes = choices.below(5); changes > 0; --changes) {
    const size_t near = std::min<size_t>(blob.size() - kHeader, 64);
    size_t at = kHeader + choices.below(choices.one_in(2) ? near : blob.size() - kHeader);
    if (head) at = choices.below(kHeader);
    uint32_t value = 0;
    at = std::min(at / 4 * 4, blob.size() - sizeof(value));
    std::memcpy(&value, blob.data() + at, sizeof(value));
    constexpr std::array<uint32_t, 10> kWords = {
        0, 1, 2, 0x7f, 0x7fffffff, 0x80000000, 0xffffffff, 0x7fc00000, 0x7f800000, 0xffff};
    value = choices.one_in(3)   ? kWords[choices.below(kWords.size())]
            : choices.one_in(2) ? value + 1 - 2 * static_cast<uint32_t>(choices.below(2))
                                : static_cast<uint32_t>(choices.below(64));
    std::memcpy(blob.data() + at, &value, sizeof(value));
  }
  const uint64_t checksum = hash_bytes(blob.data() + kHeader, blob.size() - kHeader);
  std::memcpy(blob.data() + kChecksum, &checksum, sizeof(checksum));
}

/// A model that stays open, with two sessions that stay in use.
struct Opened {
  explicit Opened(BaseGraph& base) {
    const std::span<const uint8_t> file = base.frame(base.graph);
    oxb_error error = OXB_ERROR_INIT;
    if (oxb_model_open_memory(file.data(), file.size(), nullptr, &model, &error) != OXB_OK) {
      broken("a model of the tests opens:", error.text);
    }
    closed_at_end.reset(model);
    usable = one.create(model, 1, nullptr, 0xaa) && two.create(model, 1, nullptr, 0x55);
  }
  /// Closed when the sessions, which are declared behind it, are gone.
  struct Close {
    void operator()(oxb_model* model) const { oxb_model_close(model); }
  };
  oxb_model* model = nullptr;
  std::unique_ptr<oxb_model, Close> closed_at_end;
  FuzzSession one, two;
  bool usable = false;
};

}  // namespace
}  // namespace oxbow::testing

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace oxbow::testing;
  static BaseModels models;
  static std::map<size_t, std::unique_ptr<Opened>> all;
  Choices choices({data, size});
  const size_t index = choices.below(models.size());
  std::unique_ptr<Opened>& opened = all[index];
  if (opened == nullptr) opened = std::make_unique<Opened>(models.get(index));
  if (!opened->usable) return 0;
  const oxb_model* model = opened->model;
  ModelRuns runs(model, choices);
  oxb_session_reset(opened->one.get(), nullptr);
  for (size_t i = choices.below(3); i > 0; --i) {
    Segment segment;
    if (!runs.make(&segment)) return 0;
    opened->one.run(model, segment);
  }
  std::vector<uint8_t> blob = opened->one.save();
  if (blob.empty()) return 0;
  change_blob(blob, choices);
  oxb_error error = OXB_ERROR_INIT;
  const oxb_status status = oxb_session_load(opened->one.get(), blob.data(), blob.size(), &error);
  if (status != OXB_OK) {
    if (error.text[0] == '\0') broken("a refusal has words");
    if (oxb_session_load(opened->two.get(), blob.data(), blob.size(), &error) == OXB_OK) {
      broken("all sessions refuse a state");
    }
    return 0;
  }
  // `two` still holds what earlier inputs left.
  if (oxb_session_load(opened->two.get(), blob.data(), blob.size(), &error) != OXB_OK) {
    broken("all sessions take a state:", error.text);
  }
  for (int i = 0; i < 2; ++i) {
    Segment segment;
    if (!runs.make(&segment)) return 0;
    runs.same_runs(opened->one, opened->two, segment, "after a state was loaded");
  }
  runs.same_insides(opened->one, opened->two, "after a state was loaded");
  return 0;
}
