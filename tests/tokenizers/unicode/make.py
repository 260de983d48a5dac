"""Asks `tokenizers` 0.23.3 about every code point and writes its answers, for converter/text/tokenizer/unicode_test.cc.

  python make.py      # about half a minute

A line of a .txt file is `first..last`, or `code point -> code points`, or `first..last combining class`, in hexadecimal
but for the class.
"""

import pathlib

from tokenizers import AddedToken, Regex, Tokenizer
from tokenizers.models import WordLevel
from tokenizers.normalizers import NFD, BertNormalizer, StripAccents
from tokenizers.pre_tokenizers import BertPreTokenizer, Split

HERE = pathlib.Path(__file__).parent
POINTS = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]
HANGUL = range(0xAC00, 0xD7A4)
# A character of each canonical combining class but 0, of those the library knows.
LADDER = {1: 0x334, 7: 0x93C, 8: 0x3099, 9: 0x94D, 10: 0x5B0, 11: 0x5B1, 12: 0x5B2, 13: 0x5B3, 14: 0x5B4,
          15: 0x5B5, 16: 0x5B6, 17: 0x5B7, 18: 0x5B8, 19: 0x5B9, 20: 0x5BB, 21: 0x5BC, 22: 0x5BD, 23: 0x5BF, 24: 0x5C1,
          25: 0x5C2, 26: 0xFB1E, 27: 0x64B, 28: 0x64C, 29: 0x64D, 30: 0x64E, 31: 0x64F, 32: 0x650, 33: 0x651,
          34: 0x652, 35: 0x670, 36: 0x711, 84: 0xC55, 91: 0xC56, 103: 0xE38, 107: 0xE48, 118: 0xEB8, 122: 0xEC8,
          129: 0xF71, 130: 0xF72, 132: 0xF74, 202: 0x321, 214: 0x1DCE, 216: 0x31B, 218: 0x302A, 220: 0x316, 222: 0x59A,
          224: 0x302E, 226: 0x1D16D, 228: 0x5AE, 230: 0x300, 232: 0x315, 233: 0x35C, 234: 0x35D, 240: 0x345}


def ranges(points):
    found = []
    for point in points:
        if found and found[-1][1] == point - 1:
            found[-1][1] = point
        else:
            found.append([point, point])
    return found


def write(name, lines):
    (HERE / f"{name}.txt").write_text("".join(f"{line}\n" for line in lines), encoding="ascii")


def write_ranges(name, holds):
    write(name, (f"{a:04X}..{b:04X}" for a, b in ranges(c for c in POINTS if holds(c))))


def mappings(normalize, points):
    for point in points:
        text = normalize(chr(point))
        if text != chr(point):
            yield f"{point:04X} -> " + " ".join(f"{ord(c):04X}" for c in text)


def matched(pattern):
    """A predicate: what a regular expression matches, as a single character."""
    split = Split(Regex(pattern), "isolated")
    text = "".join(map(chr, POINTS))
    inside = set()
    # Around each character stands one that is matched by none of the patterns.
    pieces = split.pre_tokenize_str("".join(c + "\u2603" for c in text))
    for piece, _ in pieces:
        if "\u2603" not in piece:
            inside.add(ord(piece))
    return inside.__contains__


def word_characters():
    tokenizer = Tokenizer(WordLevel({"[UNK]": 0}, unk_token="[UNK]"))
    tokenizer.add_tokens([AddedToken("\u2603", single_word=True, normalized=False)])
    return lambda c: 1 not in tokenizer.encode(chr(c) + "\u2603").ids


def write_combining_classes(name):
    """Which classes are below a character's is seen from the marks that go before it although they follow it."""
    nfd = NFD().normalize_str
    lines = []
    for first, last in ranges(c for c in POINTS if nfd("a\u0345" + chr(c)) == "a" + chr(c) + "\u0345" or c == 0x345):
        for point in range(first, last + 1):
            below = [n for n, mark in LADDER.items()
                     if mark != point and nfd("a" + chr(point) + chr(mark)) == "a" + chr(mark) + chr(point)]
            number = next(n for n in LADDER if n > max(below, default=0))
            if lines and lines[-1][1:] == [point - 1, number]:
                lines[-1][1] = point
            else:
                lines.append([point, point, number])
    write(name, (f"{a:04X}..{b:04X} {n}" for a, b, n in lines))


def main():
    write_ranges("letters", matched(r"\p{L}"))
    write_ranges("numbers", matched(r"\p{N}"))
    write_ranges("white_space", matched(r"\s"))
    write_ranges("word_characters", word_characters())
    punctuation = BertPreTokenizer()
    write_ranges("bert_punctuation", lambda c: len(punctuation.pre_tokenize_str(f"a{chr(c)}a")) == 3)
    write_ranges("bert_white_space", lambda c: len(punctuation.pre_tokenize_str(f"a{chr(c)}a")) == 2)
    off = dict(clean_text=False, handle_chinese_chars=False, strip_accents=False, lowercase=False)
    clean = BertNormalizer(**{**off, "clean_text": True})
    write_ranges("bert_controls", lambda c: clean.normalize_str(chr(c)) == "")
    write_ranges("bert_spaces", lambda c: clean.normalize_str(chr(c)) == " ")
    chinese = BertNormalizer(**{**off, "handle_chinese_chars": True})
    write_ranges("bert_chinese", lambda c: chinese.normalize_str(chr(c)) == f" {chr(c)} ")
    strip = BertNormalizer(**{**off, "strip_accents": True})
    write_ranges("bert_marks", lambda c: strip.normalize_str(chr(c)) == "")
    write_ranges("marks", lambda c: StripAccents().normalize_str(chr(c)) == "")
    for point in HANGUL:
        lead, vowel, tail = (point - 0xAC00) // 588, (point - 0xAC00) % 588 // 28, (point - 0xAC00) % 28
        jamo = chr(0x1100 + lead) + chr(0x1161 + vowel) + (chr(0x11A7 + tail) if tail else "")
        assert strip.normalize_str(chr(point)) == NFD().normalize_str(chr(point)) == jamo
    others = [c for c in POINTS if c not in HANGUL]
    write("bert_stripped", (line for line in mappings(strip.normalize_str, others) if line[-1] != " "))
    write("decompositions", mappings(NFD().normalize_str, others))
    write_combining_classes("combining_classes")
    lower = BertNormalizer(**{**off, "lowercase": True})
    write("lower_case", mappings(lower.normalize_str, POINTS))


if __name__ == "__main__":
    main()
