#include "runtime/generate/prompt_text.h"

#include <algorithm>
#include <cstring>

namespace oxbow {

size_t PromptText::buffer_bytes(const Tokenizer& tokenizer, size_t max_word_bytes) {
  // More than the encoder ever looks ahead, and room for new text behind that.
  return 4 * max_word_bytes + 2 * tokenizer.longest_text;
}

void PromptText::begin(oxb_encoder::Beginning beginning, bool parse_special) {
  encoder_->begin(beginning, parse_special);
  filled_ = 0;
  open_ = true;
}

void PromptText::drop() {
  if (encoder_ != nullptr) encoder_->reset();
  filled_ = 0;
  open_ = false;
}

Status PromptText::encode(bool last, Sink sink, void* context, Error* error) {
  size_t done = 0;
  for (bool over = false; !over;) {
    int32_t ids[64];
    Encoded encoded;
    Status status =
        encoder_->run({buffer_.data() + done, filled_ - done}, last, ids, &encoded, error);
    done += encoded.consumed;
    for (size_t i = 0; i < encoded.count && status == Status::kOk; ++i) {
      if (sink(context, ids[i], &status, error)) continue;
      drop();
      return status;
    }
    if (status != Status::kOk) {
      drop();
      return status;
    }
    const bool idle = encoded.count == 0 && encoded.consumed == 0;
    over = idle || (last && done == filled_ && encoded.count < std::size(ids));
  }
  std::memmove(buffer_.data(), buffer_.data() + done, filled_ - done);
  filled_ -= done;
  return Status::kOk;
}

Status PromptText::add(std::span<const char> text, Sink sink, void* context, Error* error) {
  while (!text.empty() && open_) {
    const size_t count = std::min(text.size(), buffer_.size() - filled_);
    if (count == 0) {
      drop();
      return fail(error, Status::kTextStopped,
                  "prompt: a word of more than %zu bytes; give the generator a larger "
                  "max_word_bytes",
                  buffer_.size());
    }
    std::memcpy(buffer_.data() + filled_, text.data(), count);
    filled_ += count;
    text = text.subspan(count);
    OXB_TRY(encode(false, sink, context, error));
  }
  return Status::kOk;
}

Status PromptText::finish(Sink sink, void* context, Error* error) {
  if (!open_) return Status::kOk;
  OXB_TRY(encode(true, sink, context, error));
  filled_ = 0;
  open_ = false;
  return Status::kOk;
}

}  // namespace oxbow
