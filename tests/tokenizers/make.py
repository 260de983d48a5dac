#!/usr/bin/env python3
"""Make the tokenizer test vectors: train vocabularies with the original libraries and record what they do.

Needs `tokenizers`, `sentencepiece` and `babel` from PyPI (versions: README.md) and writes next to itself. Run
again it writes the same bytes: every seed is fixed and every trainer runs on one thread.

    make.py [kind | kind/group ...]      all of them without arguments
"""

import io
import json
import os
import pathlib
import random
import struct
import sys

os.environ["RAYON_NUM_THREADS"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"

import sentencepiece
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

import corpus
import probes

HERE = pathlib.Path(__file__).resolve().parent
TRAINING_BYTES = 300_000
VOCABULARY = {"latin": 2000, "cyrillic_greek": 2000, "arabic_hebrew": 1500, "cjk": 4000, "indic_thai": 3000}
SAME = 0xFFFFFFFF

LLAMA3_PATTERN = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
                  r"|\s+(?!\S)|\s+")
QWEN2_PATTERN = LLAMA3_PATTERN.replace(r"\p{N}{1,3}", r"\p{N}")
LLAMA3_SPECIAL = ["<|begin_of_text|>", "<|end_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"]
QWEN2_SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
BERT_SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]

# Added tokens that are not special, in llama3/latin: one for each way of matching.
ADDED = [
    AddedToken("<left>", lstrip=True, normalized=False),
    AddedToken("<right>", rstrip=True, normalized=False),
    AddedToken("<both>", lstrip=True, rstrip=True, normalized=True),
    AddedToken("<word>", single_word=True, normalized=False),
    AddedToken("word", single_word=True, normalized=True),
    AddedToken("Mixed Case", normalized=True),
    AddedToken("<mix", normalized=True),
    AddedToken("<mix>ed", normalized=False),
    AddedToken("go<right", normalized=True),
    AddedToken("don't", single_word=True, lstrip=True, rstrip=True, normalized=False),
    AddedToken("größte", normalized=True),
]

# do_lower_case, strip_accents (null: as do_lower_case says), tokenize_chinese_chars. All eight that can be told apart.
WORDPIECE = {
    "latin": (True, None, True),
    "latin-accents": (True, False, True),
    "cyrillic_greek": (False, None, True),
    "cyrillic_greek-strip": (False, True, False),
    "arabic_hebrew": (True, None, False),
    "cjk": (False, True, True),
    "cjk-whole": (False, False, False),
    "indic_thai": (True, False, False),
}

SYMBOLS = dict(user_defined_symbols=["<sep>", "<user>", "<2en>", "\u2581\u2581x"], control_symbols=["<ctrl>", "<assistant>"])
UNIGRAM = {
    "latin": dict(normalization_rule_name="nmt_nfkc", character_coverage=0.9995, **SYMBOLS),
    "cyrillic_greek": dict(normalization_rule_name="nmt_nfkc_cf", byte_fallback=True, character_coverage=0.998),
    "arabic_hebrew": dict(normalization_rule_name="identity", remove_extra_whitespaces=False, add_dummy_prefix=False,
                          character_coverage=0.995, **SYMBOLS),
    "cjk": dict(normalization_rule_name="nfkc_cf", add_dummy_prefix=False, byte_fallback=True, character_coverage=0.985,
                **SYMBOLS),
    "indic_thai": dict(normalization_rule_name="nmt_nfkc", remove_extra_whitespaces=False, character_coverage=0.999),
}
LLAMA2 = dict(normalization_rule_name="identity", byte_fallback=True, remove_extra_whitespaces=False, split_digits=True,
              allow_whitespace_only_pieces=True)
SPBPE = {
    "latin": dict(character_coverage=0.9995, **LLAMA2),
    "cyrillic_greek": dict(character_coverage=0.9995, add_dummy_prefix=False, **LLAMA2, **SYMBOLS),
    "arabic_hebrew": dict(character_coverage=0.999, **LLAMA2, **SYMBOLS),
    "cjk": dict(normalization_rule_name="nmt_nfkc", character_coverage=0.985, **SYMBOLS),
    "indic_thai": dict(normalization_rule_name="nmt_nfkc", byte_fallback=True, character_coverage=0.999,
                       treat_whitespace_as_suffix=True),
}


def script_group(name):
    """Which lines go with a vocabulary: `cjk-whole` is another vocabulary for the lines of `cjk`."""
    return name.partition("-")[0]


def training_lines(name):
    group = script_group(name)
    return corpus.lines(random.Random("train " + group), group, TRAINING_BYTES)


def write_json(path, value):
    path.write_text(json.dumps(value, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def train_bpe(tokenizer, name):
    """Trains merges over the 256 bytes; the special tokens come after them, as in the files of the hubs."""
    trainer = trainers.BpeTrainer(vocab_size=VOCABULARY[name], initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
                                  show_progress=False)
    paragraphs = corpus.paragraphs(random.Random("train " + name), name, TRAINING_BYTES)
    tokenizer.train_from_iterator(paragraphs, trainer)


def train_gpt2(folder, name):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    train_bpe(tokenizer, name)
    tokenizer.model.save(str(folder))
    vocab = json.loads((folder / "vocab.json").read_text(encoding="utf-8"))
    vocab["<|endoftext|>"] = len(vocab)
    (folder / "vocab.json").write_text(json.dumps(vocab), encoding="utf-8")


def load_gpt2(folder):
    tokenizer = Tokenizer(models.BPE.from_file(str(folder / "vocab.json"), str(folder / "merges.txt")))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(["<|endoftext|>"])
    return tokenizer


def train_llama3(folder, name):
    qwen = name == "cjk"
    tokenizer = Tokenizer(models.BPE(ignore_merges=not qwen))
    pattern = Regex(QWEN2_PATTERN if qwen else LLAMA3_PATTERN)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(pattern, "isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tokenizer.decoder = decoders.ByteLevel()
    train_bpe(tokenizer, name)
    add_unmerged_words(tokenizer, name)
    tokenizer.add_special_tokens([AddedToken(text, special=True, normalized=False)
                                  for text in (QWEN2_SPECIAL if qwen else LLAMA3_SPECIAL)])
    if name == "latin":
        tokenizer.add_tokens(ADDED)
    byte_level = processors.ByteLevel(trim_offsets=False)
    if qwen:
        tokenizer.post_processor = byte_level
    else:
        bos = "<|begin_of_text|>"
        tokenizer.post_processor = processors.Sequence([byte_level, processors.TemplateProcessing(
            single=f"{bos} $A", pair=f"{bos} $A {bos}:1 $B:1", special_tokens=[(bos, tokenizer.token_to_id(bos))])])

    path = folder / "tokenizer.json"
    content = json.loads(tokenizer.to_str())
    if name == "cyrillic_greek":  # Older files have each merge as one string.
        content["model"]["merges"] = [" ".join(merge) for merge in content["model"]["merges"]]
    path.write_text(json.dumps(content, ensure_ascii=False, indent=1), encoding="utf-8")


def load_llama3(folder):
    return Tokenizer.from_file(str(folder / "tokenizer.json"))


def add_unmerged_words(tokenizer, name):
    """Adds words that no merges lead to: the ones that `ignore_merges` is about."""
    content = json.loads(tokenizer.to_str())
    vocab = content["model"]["vocab"]
    rng = random.Random("words " + name)
    wanted = len(vocab) + 40
    while len(vocab) < wanted:
        words = corpus.line(rng, name).split()
        for word, _ in tokenizer.pre_tokenizer.pre_tokenize_str(" " + rng.choice(words)):
            vocab.setdefault(word, len(vocab))
    tokenizer.model = models.BPE(vocab=vocab, merges=[tuple(merge) for merge in content["model"]["merges"]],
                                 ignore_merges=content["model"]["ignore_merges"])


def bert(model, lower, strip, split_chinese):
    tokenizer = Tokenizer(model)
    tokenizer.normalizer = normalizers.BertNormalizer(clean_text=True, handle_chinese_chars=split_chinese,
                                                      strip_accents=strip, lowercase=lower)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece(prefix="##", cleanup=True)
    return tokenizer


def train_wordpiece(folder, name):
    lower, strip, split_chinese = WORDPIECE[name]
    tokenizer = bert(models.WordPiece(unk_token="[UNK]"), lower, strip, split_chinese)
    trainer = trainers.WordPieceTrainer(vocab_size=VOCABULARY[script_group(name)], show_progress=False,
                                        special_tokens=BERT_SPECIAL + continuations(tokenizer, name))
    tokenizer.train_from_iterator(training_lines(name), trainer)
    tokenizer.model.save(str(folder))
    write_json(folder / "tokenizer_config.json", {
        "do_lower_case": lower, "strip_accents": strip, "tokenize_chinese_chars": split_chinese,
        "tokenizer_class": "BertTokenizer", "unk_token": "[UNK]", "sep_token": "[SEP]", "pad_token": "[PAD]",
        "cls_token": "[CLS]", "mask_token": "[MASK]", "model_max_length": 512})


def load_wordpiece(folder):
    config = json.loads((folder / "tokenizer_config.json").read_text(encoding="utf-8"))
    model = models.WordPiece.from_file(str(folder / "vocab.txt"), unk_token="[UNK]", max_input_chars_per_word=100)
    tokenizer = bert(model, config["do_lower_case"], config["strip_accents"], config["tokenize_chinese_chars"])
    tokenizer.add_special_tokens(BERT_SPECIAL)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[(token, tokenizer.token_to_id(token)) for token in ("[CLS]", "[SEP]")])
    return tokenizer


def continuations(tokenizer, name):
    """The characters that occur inside words. The trainer would number them by the order of a hash table."""
    found = set()
    for line in training_lines(name):
        for word, _ in tokenizer.pre_tokenizer.pre_tokenize_str(tokenizer.normalizer.normalize_str(line)):
            found.update(word[1:])
    return ["##" + character for character in sorted(found)]


def train_sentencepiece(path, name, **options):
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=training_lines(name), model_writer=model, vocab_size=VOCABULARY[name], num_threads=1,
        minloglevel=2, **options)
    path.write_bytes(model.getvalue())


def train_unigram(folder, name):
    train_sentencepiece(folder / "spiece.model", name, model_type="unigram", pad_id=3, **UNIGRAM[name])


def load_unigram(folder):
    return sentencepiece.SentencePieceProcessor(model_file=str(folder / "spiece.model"))


def train_spbpe(folder, name):
    train_sentencepiece(folder / "tokenizer.model", name, model_type="bpe", **SPBPE[name])


def load_spbpe(folder):
    return sentencepiece.SentencePieceProcessor(model_file=str(folder / "tokenizer.model"))


KINDS = {
    "gpt2": (train_gpt2, load_gpt2, list(VOCABULARY)),
    "llama3": (train_llama3, load_llama3, list(VOCABULARY)),
    "wordpiece": (train_wordpiece, load_wordpiece, list(WORDPIECE)),
    "unigram": (train_unigram, load_unigram, list(UNIGRAM)),
    "spbpe": (train_spbpe, load_spbpe, list(SPBPE)),
}


def encode_decode(tokenizer, line):
    """Returns the ids of the line and the bytes they decode to."""
    if isinstance(tokenizer, Tokenizer):
        ids = tokenizer.encode(line.decode(errors="replace"), add_special_tokens=False).ids
        return ids, tokenizer.decode(ids, skip_special_tokens=False).encode()
    ids = tokenizer.encode(line)
    return ids, tokenizer.decode(ids).encode()


def write_lines(group):
    lines = probes.lines(random.Random("lines " + group), group)
    path = HERE / "lines" / f"{group}.bin"
    path.parent.mkdir(exist_ok=True)
    with path.open("wb") as file:
        file.write(struct.pack("<I", len(lines)))
        for line in lines:
            file.write(struct.pack("<I", len(line)) + line)
    return lines


def write_expected(path, tokenizer, lines):
    with path.open("wb") as file:
        file.write(struct.pack("<I", len(lines)))
        for line in lines:
            ids, text = encode_decode(tokenizer, line)
            file.write(struct.pack(f"<I{len(ids)}H", len(ids), *ids))
            file.write(struct.pack("<I", SAME) if text == line else struct.pack("<I", len(text)) + text)


def write_template(path, tokenizer):
    """What the post-processor puts around one text and around a pair of texts."""
    single, pair = tokenizer.encode("a"), tokenizer.encode("a", "b")
    write_json(path, {"empty": tokenizer.encode("").ids, "a": single.ids, "a, b": pair.ids, "a, b types": pair.type_ids})


def write_decode(path, tokenizer, size):
    """What random ids decode to: pieces in an order no text has, control symbols, halves of characters."""
    rng = random.Random("decode")
    # The first and the last ids are special tokens; the first 300 hold the single bytes.
    parts = [(0, 8), (0, 300), (0, size), (0, size), (size - 8, size)]
    cases = []
    for _ in range(40):
        ids = [rng.randrange(*rng.choice(parts)) for _ in range(rng.randint(0, 9))]
        case = {"ids": ids}
        if isinstance(tokenizer, Tokenizer):
            case["text"] = tokenizer.decode(ids, skip_special_tokens=False)
            case["without_special"] = tokenizer.decode(ids, skip_special_tokens=True)
        else:
            case["text"] = tokenizer.decode(ids)
        cases.append(case)
    text = ",\n".join(json.dumps(case, ensure_ascii=False) for case in cases)
    path.write_text(f"[{text}]\n", encoding="utf-8")


def main(wanted):
    for kind, (train, load, names) in KINDS.items():
        for name in names:
            if wanted and kind not in wanted and f"{kind}/{name}" not in wanted:
                continue
            print(f"{kind}/{name}", flush=True)
            folder = HERE / kind / name
            folder.mkdir(parents=True, exist_ok=True)
            train(folder, name)
            tokenizer = load(folder)
            write_expected(folder / "expected.bin", tokenizer, write_lines(script_group(name)))
            if isinstance(tokenizer, Tokenizer) and tokenizer.post_processor is not None:
                write_template(folder / "template.json", tokenizer)
            size = tokenizer.get_vocab_size() if isinstance(tokenizer, Tokenizer) else tokenizer.get_piece_size()
            write_decode(folder / "decode.json", tokenizer, size)


if __name__ == "__main__":
    main(sys.argv[1:])
