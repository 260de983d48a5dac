#include "converter/text/tokenizer/double_array.h"

#include <algorithm>

#include "host/errors.h"

namespace oxbow::convert {
namespace {

constexpr size_t kBlock = 256;
// A block in which so many nodes found no room is given up: what holes it has are few, and looking for
// them again and again takes longest.
constexpr uint8_t kPatience = 24;
constexpr uint32_t kEndsHere = 1u << 8;
constexpr uint32_t kTimes256 = 1u << 9;
constexpr uint32_t kIsValue = 1u << 31;

/// The node at place p has its children at base ^ label, where base = p ^ offset. A child knows its
/// label but not its parent, so no two nodes share a base.
class Builder {
 public:
  explicit Builder(const std::map<std::string, uint32_t>& numbers) {
    for (const auto& [text, number] : numbers) {
      if (!text.empty() && text.find('\0') == std::string::npos) entries_.push_back({text, number});
    }
  }

  std::vector<uint32_t> build() {
    if (entries_.empty()) return {};
    add_block();
    taken_[0] = true;
    units_[0] = 0;
    nodes_.push_back({0, entries_.size(), 0, 0});
    while (!nodes_.empty()) {
      const Node node = nodes_.back();
      nodes_.pop_back();
      place_children(node);
    }
    return std::move(units_);
  }

 private:
  struct Entry {
    std::string text;
    uint32_t number;
  };
  struct OpenBlock {
    size_t begin;
    uint8_t failures;
  };
  static constexpr size_t kNone = SIZE_MAX;
  /// The entries that share their first `depth` bytes.
  struct Node {
    size_t begin, end, depth, place;
  };

  void add_block() {
    // What no string leads to has no label, or a zero byte of the text would lead there.
    open_.push_back({units_.size(), 0});
    units_.resize(units_.size() + kBlock, kIsValue);
    taken_.resize(units_.size());
    base_used_.resize(units_.size());
  }

  uint8_t label(size_t entry, size_t depth) const {
    const std::string& text = entries_[entry].text;
    return depth < text.size() ? static_cast<uint8_t>(text[depth]) : 0;
  }

  static bool has_offset(size_t offset) {
    return offset < (1u << 21) || (offset % kBlock == 0 && offset < (1u << 29));
  }

  bool fits(size_t place, size_t base, const std::vector<uint8_t>& labels) const {
    return !base_used_[base] && has_offset(place ^ base) &&
           std::none_of(labels.begin(), labels.end(),
                        [&](uint8_t label) { return taken_[base ^ label]; });
  }

  /// The first base in a block that has room; kNone when there is none.
  size_t find_in_block(size_t begin, size_t place, const std::vector<uint8_t>& labels) const {
    for (size_t unit = begin; unit < begin + kBlock; ++unit) {
      if (taken_[unit]) continue;
      if (const size_t base = unit ^ labels[0]; fits(place, base, labels)) return base;
    }
    return kNone;
  }

  size_t find_base(size_t place, const std::vector<uint8_t>& labels) {
    size_t base = kNone;
    for (OpenBlock& block : open_) {
      base = find_in_block(block.begin, place, labels);
      if (base != kNone) break;
      ++block.failures;
    }
    std::erase_if(open_, [](const OpenBlock& block) { return block.failures >= kPatience; });
    if (base != kNone) return base;
    const size_t begin = units_.size();
    add_block();
    base = find_in_block(begin, place, labels);
    if (base == kNone) throw InputError("the vocabulary is too large for its index");
    return base;
  }

  void place_children(const Node& node) {
    // Entries are sorted, so children are runs of equal labels; the entry that ends here is first.
    std::vector<uint8_t> labels;
    std::vector<size_t> begins;
    for (size_t entry = node.begin; entry < node.end; ++entry) {
      if (labels.empty() || label(entry, node.depth) != labels.back()) {
        labels.push_back(label(entry, node.depth));
        begins.push_back(entry);
      }
    }
    begins.push_back(node.end);
    const size_t base = find_base(node.place, labels);
    base_used_[base] = true;
    const size_t offset = node.place ^ base;
    units_[node.place] |=
        static_cast<uint32_t>(offset < (1u << 21) ? offset << 10 : offset << 2 | kTimes256);
    for (size_t i = 0; i < labels.size(); ++i) {
      const size_t place = base ^ labels[i];
      taken_[place] = true;
      if (labels[i] == 0) {
        units_[place] = entries_[begins[i]].number | kIsValue;
        units_[node.place] |= kEndsHere;
      } else {
        units_[place] = labels[i];
        nodes_.push_back({begins[i], begins[i + 1], node.depth + 1, place});
      }
    }
  }

  std::vector<Entry> entries_;
  std::vector<uint32_t> units_;
  std::vector<bool> taken_;
  std::vector<bool> base_used_;
  std::vector<Node> nodes_;
  std::vector<OpenBlock> open_;
};

}  // namespace

std::vector<uint32_t> build_double_array(const std::map<std::string, uint32_t>& numbers) {
  return Builder(numbers).build();
}

}  // namespace oxbow::convert
