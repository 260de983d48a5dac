#include "runtime/text/tokenizer.h"

#include <algorithm>

#include "runtime/text/open_tables.h"

namespace oxbow {

// One line for each kinds/<name>.cc, made by the build.
#define OXB_TOKENIZER(name) extern const TokenizerDef name##_tokenizer;
#include "tokenizer_kinds.inc"
#undef OXB_TOKENIZER

namespace {

#define OXB_TOKENIZER(name) &name##_tokenizer,
constexpr const TokenizerDef* kKinds[] = {
#include "tokenizer_kinds.inc"
};
#undef OXB_TOKENIZER

template <typename T>
std::span<const T> view(const flatbuffers::Vector<T>* vector) {
  return vector == nullptr ? std::span<const T>() : std::span(vector->data(), vector->size());
}

Status corrupt(Error* error, const char* what) {
  return fail(error, Status::kFileCorrupt, "tokenizer: %s", what);
}

bool below(std::span<const uint32_t> numbers, uint64_t limit) {
  return std::all_of(numbers.begin(), numbers.end(), [&](uint32_t n) { return n < limit; });
}

Status check_length(size_t bytes, size_t most, Error* error) {
  if (bytes <= most) return Status::kOk;
  return fail(error, Status::kFileCorrupt, "tokenizer: a text of %zu bytes; expected %zu at most",
              bytes, most);
}

/// Where each piece's text lies, what it is, and which token it stands for.
Status open_pieces(const schema::Tokenizer& table, Tokenizer* tokenizer, Error* error) {
  tokenizer->texts = view(table.texts());
  tokenizer->text_ends = view(table.text_ends());
  const size_t aliases = view(table.aliases()).size();
  if (tokenizer->text_ends.size() < aliases || tokenizer->text_ends.size() > INT32_MAX) {
    return corrupt(error, "more aliases than pieces");
  }
  tokenizer->pieces = static_cast<uint32_t>(tokenizer->text_ends.size());
  tokenizer->tokens = static_cast<uint32_t>(tokenizer->pieces - aliases);
  uint32_t begin = 0;
  for (const uint32_t end : tokenizer->text_ends) {
    if (end < begin || end > tokenizer->texts.size()) {
      return corrupt(error, "a text lies outside of the texts");
    }
    tokenizer->longest_text = std::max<size_t>(tokenizer->longest_text, end - begin);
    begin = end;
  }
  if (const auto* roles = table.roles(); roles != nullptr) {
    tokenizer->roles = {roles->Data(), roles->size()};
  }
  const auto last_role = static_cast<uint8_t>(schema::TokenRole::MAX);
  if (tokenizer->roles.size() != tokenizer->pieces ||
      std::any_of(tokenizer->roles.begin(), tokenizer->roles.end(),
                  [&](uint8_t role) { return role > last_role; })) {
    return corrupt(error, "pieces and their roles differ");
  }
  for (uint32_t piece = 0; piece < tokenizer->pieces; ++piece) {
    const bool special = tokenizer->role(piece) == schema::TokenRole::Special;
    OXB_TRY(check_length(tokenizer->text(piece).size(), special ? kLongestSpecial : kLongestText,
                         error));
  }
  if (!below(view(table.aliases()), tokenizer->tokens)) {
    return corrupt(error, "an alias stands for no token");
  }
  return Status::kOk;
}

/// What makes the search for added tokens quick.
Status open_added(const schema::Tokenizer& table, Tokenizer* tokenizer, Error* error) {
  tokenizer->added_trie = Trie(view(table.added_trie()));
  if (const auto* added = table.added(); added != nullptr) {
    tokenizer->added = {reinterpret_cast<const schema::AddedToken*>(added->Data()), added->size()};
  }
  bool first = true;
  uint32_t previous = 0;
  for (const schema::AddedToken& added : tokenizer->added) {
    if (added.token() >= tokenizer->tokens || (!first && added.token() <= previous)) {
      return corrupt(error, "added tokens are not in the vocabulary or not in its order");
    }
    first = false;
    previous = added.token();
    tokenizer->added_strip_left |= added.strip_left();
  }
  for (size_t byte = 0; byte < 256; ++byte) {
    Trie::Walk walk = tokenizer->added_trie.walk();
    tokenizer->added_begins[0][byte] = walk.step(static_cast<char>(byte));
    tokenizer->added_begins[1][byte] =
        tokenizer->added_begins[0][byte] &&
        std::any_of(tokenizer->added.begin(), tokenizer->added.end(),
                    [](const schema::AddedToken& added) { return added.second(); });
  }
  return Status::kOk;
}

Status open_patterns(const schema::Tokenizer& table, Tokenizer* tokenizer, Error* error) {
  CharClasses classes;
  if (table.pattern_classes() != nullptr) {
    OXB_TRY(open_classes(*table.pattern_classes(), &classes, error));
  }
  OXB_TRY(tokenizer->patterns.set_classes(classes, table.pattern_class_count(), error));
  for (const schema::WordPattern* pattern : *table.patterns()) {
    OXB_TRY(tokenizer->patterns.add(*pattern, error));
  }
  return tokenizer->patterns.count > 0 ? Status::kOk : corrupt(error, "no patterns");
}

Status open_steps(const schema::Tokenizer& table, Tokenizer* tokenizer, Error* error) {
  const size_t more = table.steps() == nullptr ? 0 : table.steps()->size();
  if (more >= kMaxNormalSteps) return corrupt(error, "too many steps of normalization");
  if (table.normalization() != nullptr) {
    OXB_TRY(open_form(*table.normalization(), tokenizer->classes,
                      &tokenizer->steps[tokenizer->step_count++], error));
  }
  for (size_t i = 0; i < more; ++i) {
    const auto* step = table.steps()->Get(static_cast<flatbuffers::uoffset_t>(i));
    OXB_TRY(open_step(*step, &tokenizer->steps[tokenizer->step_count++], error));
  }
  return Status::kOk;
}

Status open_tables(const schema::Tokenizer& table, Tokenizer* tokenizer, Error* error) {
  tokenizer->trie = Trie(view(table.trie()));
  for (const auto* text : {table.inner_prefix(), table.word_suffix(), table.unknown_text()}) {
    if (text != nullptr) OXB_TRY(check_length(text->size(), kLongestText, error));
  }
  if (const auto* merges = table.merges(); merges != nullptr) {
    // The structs lie one after the other, as the array they are.
    const auto* places = reinterpret_cast<const schema::Merge*>(merges->Data());
    tokenizer->merges = MergeTable({places, merges->size()});
    size_t run = 0;  // of full places; one that goes on at the table's begin is found as two
    for (const schema::Merge& merge : std::span(places, merges->size())) {
      run = merge.left() == kNoPiece ? 0 : run + 1;
      if (run > kMaxMergeProbes / 2) return corrupt(error, "the table of merges is too full");
      if (run > 0 && merge.result() >= tokenizer->pieces) {
        return corrupt(error, "a merge gives no piece");
      }
    }
  }
  OXB_TRY(open_char_map(table.char_map(), &tokenizer->char_map, error));
  if (!strings_fit(table.char_map(), kMaxContent)) {
    return corrupt(error, "a replacement is too long");
  }
  if (table.classes() != nullptr) {
    OXB_TRY(open_classes(*table.classes(), &tokenizer->classes, error));
  }
  if (table.patterns() != nullptr) OXB_TRY(open_patterns(table, tokenizer, error));
  OXB_TRY(open_steps(table, tokenizer, error));
  if (!below(view(table.before()), tokenizer->vocabulary) ||
      !below(view(table.after()), tokenizer->vocabulary) ||
      !below(view(table.pair_between()), tokenizer->vocabulary) ||
      !below(view(table.pair_after()), tokenizer->vocabulary)) {
    return corrupt(error, "a text is put between tokens the model lacks");
  }
  if (table.decoding() > schema::TokenDecoding::MAX || table.word_mark() > schema::WordMark::MAX) {
    return fail(error, Status::kFileUnsupported,
                "tokenizer: words or texts are made in a way this library does not know: use a "
                "newer one");
  }
  for (const int32_t token : {table.unknown_token(), table.mask_token()}) {
    if (token < -1 || (token >= 0 && static_cast<uint32_t>(token) >= tokenizer->vocabulary)) {
      return corrupt(error, "the token for unknown text or for a mask is none of the model's");
    }
  }
  OXB_TRY(open_added(table, tokenizer, error));
  return Status::kOk;
}

Status open_any(const schema::Tokenizer& table, uint32_t vocabulary, Tokenizer* tokenizer,
                Error* error) {
  tokenizer->def = find_tokenizer_def(table.kind());
  if (tokenizer->def == nullptr) {
    return fail(error, Status::kFileUnsupported,
                "tokenizer of kind %u, which this library does not know: use a newer one",
                static_cast<unsigned>(table.kind()));
  }
  tokenizer->table = &table;
  tokenizer->vocabulary = vocabulary;
  if (tokenizer->def->open != nullptr) {
    OXB_TRY(tokenizer->def->open(*tokenizer, error));
    // There are no texts that the other ways could take.
    if (table.decoding() != schema::TokenDecoding::Kind) {
      return corrupt(error, "bytes and characters have one way to be decoded");
    }
  } else {
    OXB_TRY(open_pieces(table, tokenizer, error));
  }
  if (tokenizer->tokens > vocabulary) {
    return fail(error, Status::kFileCorrupt, "tokenizer: %u tokens for a model of %u",
                static_cast<unsigned>(tokenizer->tokens), static_cast<unsigned>(vocabulary));
  }
  OXB_TRY(open_tables(table, tokenizer, error));
  return tokenizer->def->check(*tokenizer, error);
}

}  // namespace

const TokenizerDef* find_tokenizer_def(schema::TokenizerKind kind) {
  for (const TokenizerDef* def : kKinds) {
    if (def->kind == kind) return def;
  }
  return nullptr;
}

Status open_tokenizer(const schema::Tokenizer* table, uint32_t vocabulary, Tokenizer* tokenizer,
                      Error* error) {
  *tokenizer = {};
  if (table == nullptr || table->kind() == schema::TokenizerKind::None) return Status::kOk;
  const Status status = open_any(*table, vocabulary, tokenizer, error);
  if (status != Status::kOk) close_tokenizer(tokenizer);
  return status;
}

void close_tokenizer(Tokenizer* tokenizer) {
  delete[] tokenizer->numbers.data();
  *tokenizer = {};
}

}  // namespace oxbow
