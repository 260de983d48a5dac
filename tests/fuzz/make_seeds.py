#!/usr/bin/env python3
"""Writes the seeds of the tokenizers' fuzz targets: small files of every format, and text.

Usage: tests/fuzz/make_seeds.py
"""
import json
import pathlib
import random
import struct

SEEDS = pathlib.Path(__file__).resolve().parent / "seeds"
WORDS = "the river ends here and there is an old lake where the water was".split()
TEXTS = [
    "Where does the Old River end? It's 12,345 km; don't we'll I'M <s></s>[MASK] [CLS]x<|endoftext|>  <mask> \n\n\t y ",
    "\u0421\u0442\u0430\u0440\u0430\u044f \u0440\u0435\u043a\u0430 \u0394\u03ad\u03bb\u03c4\u03b1 e\u0301\u0327 \u212b \ufb01 \u1e69 \u00bd \uff21",
    "\u4e2d\u6587\u5b57\u7b26 \u3053\u3093\u306b\u3061\u306f\u3002 \ud55c\uad6d\uc5b4 \u0928\u092e\u0938\u094d\u0924\u0947 \u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35 \u05e9\u05dc\u05d5\u05dd \u0645\u0631\u062d\u0628\u0627 \U0001f600\U0001f468\u200d\U0001f469",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" + " " * 70 + "\u2581\u2581 x",
]


def write(target, name, data):
    folder = SEEDS / target
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(data)


def files(**named):
    """What tests/fuzz/tokenizer_folder.h reads; an underscore stands for the dot of a name's ending."""
    out = b""
    for name, content in named.items():
        stem, _, ending = name.rpartition("_")
        data = content if isinstance(content, bytes) else (
            content if isinstance(content, str) else json.dumps(content)).encode()
        out += f"--- {stem}.{ending}\n".encode() + data + b"\n"
    return out


def printable():
    out, extra = {}, 0
    for byte in range(256):
        itself = 0x20 < byte < 0x7f or (byte > 0xa0 and byte != 0xad)
        out[byte] = chr(byte if itself else 0x100 + extra)
        extra += not itself
    return out


def bpe(all_bytes):
    letters = [printable()[b] for b in range(256)] if all_bytes else list("\u0120aehilnorstvw")
    vocab, merges = list(letters), []
    for left, right in (("h", "e"), ("t", "he"), ("\u0120", "the"), ("r", "i"), ("v", "e"), ("ve", "r"), ("ri", "ver")):
        merges.append((left, right))
        vocab.append(left + right)
    return {text: i for i, text in enumerate(vocab)}, merges


def added(vocab, *texts):
    return [{"id": vocab.setdefault(text, len(vocab)), "content": text, "single_word": i == 1, "lstrip": i == 1,
             "rstrip": i == 2, "normalized": i == 2, "special": i != 2} for i, text in enumerate(texts)]


CONFIG = {
    "bos_token": "<s>", "eos_token": {"content": "</s>", "lstrip": False, "special": True}, "mask_token": "<mask>",
    "additional_special_tokens": ["<s>"], "model_max_length": 512,
    "chat_template": "{{ bos_token }}{% for m in messages %}[{{ m['role'] }}]{{ m['content'] }}{% endfor %}",
}


def tokenizer_json():
    vocab, merges = bpe(False)
    tokens = added(vocab, "<s>", "<mask>", "<x>", "</s>")
    gpt2 = {
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": tokens, "normalizer": None,
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True},
        "post_processor": {"type": "TemplateProcessing",
                           "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
                           "pair": [], "special_tokens": {"<s>": {"id": "<s>", "ids": [vocab["<s>"]], "tokens": ["<s>"]}}},
        "decoder": {"type": "ByteLevel"},
        "model": {"type": "BPE", "dropout": None, "unk_token": None, "fuse_unk": False, "byte_fallback": False,
                  "ignore_merges": False, "vocab": vocab, "merges": [" ".join(m) for m in merges]},
    }
    write("tokenizer_json", "gpt2", files(tokenizer_json=gpt2, tokenizer_config_json=CONFIG))
    vocab, merges = bpe(True)
    pattern = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
               r"|\s*[\r\n]+|\s+(?!\S)|\s+")
    llama3 = dict(gpt2, added_tokens=added(vocab, "<s>"), post_processor={"type": "Sequence", "processors": [
        {"type": "ByteLevel"}, {"type": "RobertaProcessing", "cls": ["<s>", vocab["<s>"]], "sep": ["<s>", vocab["<s>"]]}]})
    llama3["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": [
        {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False},
        {"type": "ByteLevel", "add_prefix_space": False, "use_regex": False}]}
    llama3["model"] = {"type": "BPE", "ignore_merges": True, "vocab": vocab, "merges": [list(m) for m in merges]}
    write("tokenizer_json", "llama3", files(tokenizer_json=llama3))
    pieces = {text: i for i, text in enumerate(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "the", "##s", "river", "end", "."])}
    wordpiece = {
        "version": "1.0", "added_tokens": [{"id": i, "content": text, "single_word": False, "lstrip": False,
                                            "rstrip": False, "normalized": False, "special": True}
                                           for text, i in list(pieces.items())[:4]],
        "normalizer": {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True,
                       "strip_accents": None, "lowercase": True},
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {"type": "BertProcessing", "sep": ["[SEP]", 3], "cls": ["[CLS]", 2]},
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
        "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
                  "max_input_chars_per_word": 100, "vocab": pieces},
    }
    write("tokenizer_json", "bert", files(tokenizer_json=wordpiece))
    unigram = {"model": {"type": "Unigram", "unk_id": 0, "vocab": [["<unk>", 0], ["\u2581the", -1.5]]}}
    write("tokenizer_json", "beside_pieces", files(tokenizer_json=unigram, tokenizer_model=pieces_model(1)))
    write("tokenizer_json", "characters", files(char_vocab_json=list("abc \n")))


def byte_bpe_files():
    vocab, merges = bpe(False)
    for text in ("<s>", "</s>", "<unk>", "<mask>", "<|endoftext|>"):
        vocab[text] = len(vocab)
    lines = "#version: 0.2\n" + "".join(f"{a} {b}\n" for a, b in merges)
    write("byte_bpe_files", "roberta", files(
        vocab_json=vocab, merges_txt=lines, tokenizer_config_json=dict(CONFIG, tokenizer_class="RobertaTokenizer"),
        special_tokens_map_json={"unk_token": "<unk>"}, added_tokens_json={"<new>": len(vocab)}))
    vocab, merges = bpe(True)
    vocab["<|endoftext|>"] = len(vocab)
    write("byte_bpe_files", "gpt2", files(vocab_json=vocab, merges_txt="".join(f"{a} {b}\n" for a, b in merges)))


def wordpiece_files():
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"] + sorted(set(WORDS)) + ["##s", "##e", "e", "\u00e9", "\u4e2d", "."]
    vocab = "\n".join(tokens) + "\n"
    write("wordpiece_files", "plain", files(vocab_txt=vocab))
    write("wordpiece_files", "settings", files(
        vocab_txt=vocab, tokenizer_config_json={
            "tokenizer_class": "BertTokenizer", "do_lower_case": True, "strip_accents": None, "never_split": None,
            "tokenize_chinese_chars": True, "unk_token": "[UNK]", "added_tokens_decoder": {
                "4": {"content": "[MASK]", "special": True, "normalized": False, "single_word": True}}},
        special_tokens_map_json={"mask_token": "[MASK]", "cls_token": "[CLS]"}))


def varint(value):
    out = b""
    while value >= 0x80:
        out += bytes([value & 0x7f | 0x80])
        value >>= 7
    return out + bytes([value])


def field(number, value):
    if isinstance(value, float):
        return varint(number << 3 | 5) + struct.pack("<f", value)
    if isinstance(value, bool) or isinstance(value, int):
        return varint(number << 3) + varint(int(value))
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def char_map():
    """Two sequences that are replaced, as SentencePiece stores them: a double array, then the strings."""
    rows = {b"\xef\xac\x81": b"fi", b"\t": b" "}
    strings, values = b"", {}
    for key, text in rows.items():
        values[key] = len(strings)
        strings += text + b"\0"
    units, taken = [0] * 2048, {0}
    blocks = iter(range(256, 2048, 256))

    def place(at, prefix):
        base = next(blocks)
        units[at] |= (at ^ base) << 10
        for label in sorted({key[len(prefix)] for key in rows if key.startswith(prefix) and len(key) > len(prefix)}):
            child = base ^ label
            assert child not in taken
            taken.add(child)
            units[child] = label
            place(child, prefix + bytes([label]))
        if prefix in rows:
            units[at] |= 1 << 8
            units[base] = values[prefix] | 1 << 31

    place(0, b"")
    raw = struct.pack(f"<{len(units)}I", *units)
    return struct.pack("<I", len(raw)) + raw + strings


def pieces_model(algorithm, with_bytes=False, with_map=False):
    pieces = [("<unk>", 0.0, 2), ("<s>", 0.0, 3), ("</s>", 0.0, 3)]
    if with_bytes:
        pieces += [(f"<0x{byte:02X}>", 0.0, 6) for byte in range(256)]
    pieces += [("<user>", 0.0, 4)]
    text = ["\u2581", "\u2581the", "\u2581t", "he", "\u2581river", "ri", "ver", "v", "er"] + list("aehilnorstvw.")
    pieces += [(piece, -float(i), 1) for i, piece in enumerate(text)]
    out = b"".join(field(1, field(1, t) + field(2, s) + field(3, k)) for t, s, k in pieces)
    out += field(2, field(3, algorithm) + field(35, with_bytes) + field(44, " \u2047 "))
    out += field(3, (field(2, char_map()) if with_map else b"") + field(3, True) + field(4, True) + field(5, True))
    return out


def sentencepiece():
    write("sentencepiece", "unigram", files(spiece_model=pieces_model(1, with_map=True)))
    write("sentencepiece", "bpe_bytes", files(tokenizer_model=pieces_model(2, with_bytes=True)))
    write("sentencepiece", "settings", files(
        tokenizer_model=pieces_model(2), tokenizer_config_json={
            "add_bos_token": True, "add_eos_token": True, "bos_token": "<s>", "eos_token": "</s>",
            "added_tokens_decoder": {"30": {"content": "<new>", "lstrip": True, "rstrip": True, "special": True}}}))
    names = ["<unk>", "</s>", "<pad>", ">>de<<", "\u2581the", "\u2581river", "v", "er", "\u2581andere"]
    write("marian_files", "small", files(source_spm=pieces_model(1), target_spm=pieces_model(1, with_map=True),
                                         vocab_json={text: i for i, text in enumerate(names)}))


def settings():
    generation = {"bos_token_id": 1, "eos_token_id": [2, 3], "pad_token_id": 0, "do_sample": True, "temperature": 0.6,
                  "top_k": 50, "top_p": 0.9, "repetition_penalty": 1.1, "num_beams": 4, "length_penalty": 0.6,
                  "suppress_tokens": [7], "decoder_start_token_id": 5, "forced_eos_token_id": 2,
                  "transformers_version": "4.40.0", "unknown": {"a": []}}
    write("settings", "all", files(
        tokenizer_config_json=dict(CONFIG, added_tokens_decoder={"5": {"content": "<x>", "special": False}}),
        special_tokens_map_json={"pad_token": "</s>", "unk_token": {"content": "<unk>", "lstrip": True}},
        added_tokens_json={"<y>": 6, "<z>": 7}, generation_config_json=generation))
    write("settings", "templates", files(
        tokenizer_config_json={"chat_template": [{"name": "default", "template": "{{ messages[0].content }}"}]},
        chat_template_jinja="x{{ messages[0]['content'] }}y", generation_config_json={"do_sample": False}))


def text_and_tables():
    generator = random.Random(3)
    for kind in range(14):
        text = TEXTS[kind % len(TEXTS)].encode() + b"\xff\xe2\x82" + TEXTS[(kind + 1) % len(TEXTS)].encode()
        if kind == 1:
            text = "where does the old river end \u20ac\u00e9\u4e2d\U0001f600\n".encode()
        write("tokenizer_text", f"{kind:02}", bytes([kind, 3 + 4 * (kind % 2), kind]) + text)
    for kind in range(8):
        changes = b""
        for width in range(4):
            changes += bytes([kind | width << 5 | generator.choice((0, 0x80))]) + generator.randbytes(7)
        write("tokenizer_table", f"{kind:02}", changes)


tokenizer_json()
byte_bpe_files()
wordpiece_files()
sentencepiece()
settings()
text_and_tables()
