#include "runtime/generate/json_grammar.h"

#include <string_view>

namespace oxbow {
namespace {

constexpr std::string_view kLiterals[] = {"true", "false", "null"};

bool is_digit(char byte) { return byte >= '0' && byte <= '9'; }
bool is_hex(char byte) {
  return is_digit(byte) || (byte >= 'a' && byte <= 'f') || (byte >= 'A' && byte <= 'F');
}
bool is_space(char byte) { return byte == ' ' || byte == '\n' || byte == '\r' || byte == '\t'; }

}  // namespace

void JsonGrammar::start(bool object_only) {
  *this = {};
  mode_ = object_only ? Mode::kObject : Mode::kValue;
}

bool JsonGrammar::open(bool object) {
  if (depth_ == kMaxDepth) return false;
  const uint64_t bit = uint64_t{1} << depth_++;
  objects_ = object ? objects_ | bit : objects_ & ~bit;
  mode_ = object ? Mode::kFirstKey : Mode::kFirstItem;
  return true;
}

bool JsonGrammar::close(bool object) {
  if (depth_ == 0 || in_object() != object) return false;
  --depth_;
  end_value();
  return true;
}

bool JsonGrammar::begin_value(char byte) {
  switch (byte) {
    case '{':
      return open(true);
    case '[':
      return open(false);
    case '"':
      mode_ = Mode::kString;
      key_ = 0;
      return true;
    case '-':
      mode_ = Mode::kMinus;
      return true;
    case '0':
      mode_ = Mode::kZero;
      return true;
    default:
      break;
  }
  if (is_digit(byte)) {
    mode_ = Mode::kInteger;
    return true;
  }
  for (uint8_t i = 0; i < 3; ++i) {
    if (kLiterals[i][0] != byte) continue;
    mode_ = Mode::kLiteral;
    literal_ = i;
    count_ = 1;
    return true;
  }
  return false;
}

bool JsonGrammar::number_can_end() const {
  return mode_ == Mode::kZero || mode_ == Mode::kInteger || mode_ == Mode::kFraction ||
         mode_ == Mode::kExponentDigits;
}

bool JsonGrammar::step_number(char byte) {
  const bool digit = is_digit(byte);
  const bool exponent = byte == 'e' || byte == 'E';
  switch (mode_) {
    case Mode::kMinus:
      mode_ = byte == '0' ? Mode::kZero : Mode::kInteger;
      return digit;
    case Mode::kPoint:
      mode_ = Mode::kFraction;
      return digit;
    case Mode::kExponent:
      if (byte == '+' || byte == '-') {
        mode_ = Mode::kExponentSign;
        return true;
      }
      [[fallthrough]];
    case Mode::kExponentSign:
      mode_ = Mode::kExponentDigits;
      return digit;
    case Mode::kInteger:
    case Mode::kFraction:
    case Mode::kExponentDigits:
      if (digit) return true;
      break;
    default:
      break;
  }
  if (byte == '.' && (mode_ == Mode::kZero || mode_ == Mode::kInteger)) {
    mode_ = Mode::kPoint;
    return true;
  }
  if (exponent && mode_ != Mode::kExponentDigits) {
    mode_ = Mode::kExponent;
    return true;
  }
  // Only what follows a number tells that it is over.
  end_value();
  return step(byte);
}

bool JsonGrammar::step(char byte) {
  if (mode_ >= Mode::kMinus && mode_ <= Mode::kExponentDigits) return step_number(byte);
  if (mode_ < Mode::kString && is_space(byte)) return ++spaces_ <= kMaxSpaces;
  spaces_ = 0;
  switch (mode_) {
    case Mode::kObject:
      return byte == '{' && open(true);
    case Mode::kFirstItem:
      return byte == ']' ? close(false) : begin_value(byte);
    case Mode::kValue:
      return begin_value(byte);
    case Mode::kFirstKey:
      if (byte == '}') return close(true);
      [[fallthrough]];
    case Mode::kKey:
      mode_ = Mode::kString;
      key_ = 1;
      return byte == '"';
    case Mode::kColon:
      mode_ = Mode::kValue;
      return byte == ':';
    case Mode::kAfterValue:
      if (byte != ',') return (byte == '}' || byte == ']') && close(byte == '}');
      mode_ = in_object() ? Mode::kKey : Mode::kValue;
      return true;
    case Mode::kString:
      if (byte == '\\') {
        mode_ = Mode::kEscape;
      } else if (byte == '"') {
        if (key_ != 0) {
          mode_ = Mode::kColon;
        } else {
          end_value();
        }
      }
      return static_cast<unsigned char>(byte) >= 0x20;
    case Mode::kEscape:
      count_ = 0;
      mode_ = byte == 'u' ? Mode::kHex : Mode::kString;
      return std::string_view("\"\\/bfnrtu").find(byte) != std::string_view::npos;
    case Mode::kHex:
      if (++count_ == 4) mode_ = Mode::kString;
      return is_hex(byte);
    case Mode::kLiteral: {
      const std::string_view word = kLiterals[literal_];
      if (byte != word[count_]) return false;
      if (++count_ == word.size()) end_value();
      return true;
    }
    default:
      return false;
  }
}

bool JsonGrammar::sound() const {
  if (mode_ > Mode::kDone || depth_ > kMaxDepth || spaces_ > kMaxSpaces || key_ > 1) return false;
  const bool needs_depth = mode_ == Mode::kFirstItem || mode_ == Mode::kFirstKey ||
                           mode_ == Mode::kKey || mode_ == Mode::kColon ||
                           mode_ == Mode::kAfterValue;
  if (needs_depth && depth_ == 0) return false;
  if (mode_ == Mode::kHex) return count_ < 4;
  return mode_ != Mode::kLiteral || (literal_ < 3 && count_ < kLiterals[literal_].size());
}

}  // namespace oxbow
