"""The lines that are tokenized: ordinary text of a script group and everything that is hard about text.

Every line is bytes; most are UTF-8, about one in thirteen is not. Characters that do not show in an editor are
written as escapes.
"""

import corpus

COUNT = 2000
INVALID = 150

SPACES = [" ", "  ", "   ", "\t", "\n", "\r\n", "\r", "\v", "\f", "\x1c", "\x1f", "\x85", "\xa0", "\u1680", "\u2000",
          "\u2003", "\u2009", "\u200a", "\u200b", "\u2028", "\u2029", "\u202f", "\u205f", "\u3000", "\ufeff",
          "\u180e", "\u2060", "\n\n", " \n ", "\t\t", "\u2581", "\u2581\u2581"]
CONTROLS = ["\0", "\x01", "\x07", "\b", "\x1b", "\x7f", "\x80", "\x9f", "\xad", "\u200c", "\u200d", "\u061c", "\u200e",
            "\u200f", "\u202a", "\u202b", "\u202c", "\u202d", "\u202e", "\u2066", "\u2067", "\u2068", "\u2069", "\ufff9",
            "\U000e0001", "\U000e0041", "\u0890", "\u08e2", "\U000110cd", "\ufe0f", "\ufe00", "\U000e0100"]
ODD = ["\ue000", "\uf8ff", "\U000f0000", "\U0010fffd", "\ufdd0", "\ufffe", "\uffff", "\U0001fffe", "\U0010ffff",
       "\u0378", "\u05ff", "\u0870", "\u1aff", "\u2fe0", "\U0001aff0", "\U000323b0", "\U0003ffff", "\ufffd", "\ufffc",
       "\U0001e030", "\U00010d40", "\U000105c0", "\u1c89", "\ua7cb",
       "\u2e43", "\u1b4e", "\u166d", "\u061d", "\U000111c9", "\U0001aff5"]
EMOJI = ["😀", "👍🏽", "👩\u200d👩\u200d👧\u200d👦", "🏳\ufe0f\u200d🌈", "🇫🇷", "🇯🇵🇧🇷", "❤\ufe0f", "☀", "1\ufe0f\u20e3", "🧑🏿\u200d🚀",
         "🏴\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f", "🫠", "🪿", "\U0001fae9", "©", "™"]
MARKS = ["\u0300", "\u0301", "\u0323", "\u0327", "\u0345", "\u05b0", "\u05bc", "\u064e", "\u0651", "\u093c", "\u094d",
         "\u0bbe", "\u0e34", "\u0e48", "\u1dce", "\u20dd", "\u3099", "\u0903", "\u0489", "\U0001d165",
         "\u302e", "\u1df6", "\u1abf", "\u0d3b", "\u1734", "\U00010f46"]
CASING = ["ß", "ẞ", "İ", "ı", "I", "i\u0307", "ſ", "K", "Å", "Ω", "ﬁ", "ﬀ", "ﬃ", "ŉ", "ǰ", "ΐ", "Σ", "ς", "ΣΑΣ", "ΌΔΟΣ",
          "Ǆ", "ǅ", "ᾳ", "ᾼ", "Ԑ", "Ⅷ", "ⓐ", "𐐀", "𝐀", "Ა", "ა", "Ꭰ", "ꭰ", "Ŀ", "Ｆｕｌｌ", "ﬅ", "ŁÓDŹ", "straße", "MASSE"]
DIGITS = ["0123456789", "٠١٢٣", "۴۵۶", "०१२", "๓๔๕", "၀၁", "０１２", "一二三", "½", "²³", "Ⅻ", "①", "𝟘𝟙", "𝟚", "৪৫", "༣", "፩", "1",
          "12", "123", "1234", "12345", "3.14159", "1,000,000", "-273.15", "1e-9", "0x1F", "𒐀", "㊿", "꣐"]
SUFFIXES = ["'s", "'S", "'t", "'T", "'re", "'RE", "'ve", "'Ve", "'m", "'M", "'ll", "'LL", "'lL", "'d", "'D", "'\u017f",
            "\u2019s", "\u2019LL", "'S\u0301", "''s", "'", "'l", "'v", "'r", "'\u212a", "'st", "'d've", "'\u017fay", "'\u017faid",
            "'say", "'Then", "!\n", ".\n\n", " \n", ")\r\n"]
HANGUL = ["가", "각", "한글", "힣", "\u1100\u1161", "\u1100\u1161\u11a8", "\u1112\u1161\u11ab\u1100\u1173\u11af", "ㄱㅏ", "ㅎㅎ", "ᄀ",
          "\uac00\u11a8", "\ua960\u1161", "ﾡￂ"]
HAN = ["中", "国", "國", "豈", "更", "\uf900", "\ufa0e", "\ufa11", "\U0002f800", "\U00020000", "\U0002a6df", "\U00030000",
       "々", "〇", "⼀", "㐀", "\u9fff", "㍿", "㌔", "あ", "ア", "ｱ", "ｶﾞ", "が", "か\u3099", "ー", "ｰ", "「", "』", "。", "、", "・",
       "\U00031350", "\U0002ebf0", "a\U0002b740b",
       "a\U0002b81fb", "a\U0002b820b", "a\U0002b91fb", "a\U0002b920b", "a\U0002ceb0b", "a\ufb00b"]
TOKENS = ["<|endoftext|>", "<|begin_of_text|>", "<|end_of_text|>", "<|eot_id|>", "<|start_header_id|>",
          "<|end_header_id|>", "<|im_start|>", "<|im_end|>", "[CLS]", "[SEP]", "[UNK]", "[PAD]", "[MASK]", "<unk>", "<s>",
          "</s>", "<pad>", "<0x0A>", "<0xE4>", "<sep>", "<user>", "<assistant>", "<ctrl>", "<2en>", "<left>", "<right>",
          "<both>", "<word>", "word", "wordy", "Mixed Case", "<mix", "<mix>ed", "go<right>", "go<right", "don't",
          "größte", "\u2581\u2581x",
          "a <left> b", "a  <left><left>  b", "<right>  b", "a <both> b <both>  c", "word <word> words", "x\n<left>\n",
          "<|eot_id|> <left>", "<right> <left>", "<both>\u3000<both>", "I don't  know", "[SEP] [SEP]", "<sep><sep> <user>"]
NEAR = ["<|endoftext|", "|endoftext|>", "<|ENDOFTEXT|>", "<| endoftext |>", "<|eot_id|", "<|eot_idx|>", "<<s>>", "[cls]",
        "[ CLS ]", "[CLS", "CLS]", "[MASK]]", "[[MASK]", "< unk >", "<s", "<0x0a>", "<0xGG>", "<0x>", "<SEP>", "<sepp>",
        "<se", "<2e", "<2en", "##", "##s", "# #", "###", "\u2581", "\u2581the", "_", "Ġ", "Ġthe", "Ċ", "</w>", "\u2047", " \u2047 ",
        "<lef", "wor", "words", "sword", "word-word", "_word", "word\u0301", "<mi", "mixed case"]
CODE = ["https://example.org/a/b?c=d&e=%20f#g", "user.name+tag@example.com", "for (int i = 0; i < n; ++i) { a[i] += b[i]; }",
        "def f(x):\n    return x**2\n", "\tif (!p) goto out;\r\n", "SELECT * FROM t WHERE a='b';", "C:\\Users\\me\\file.txt",
        "{\"key\": [1, 2.5, null]}", "<a href=\"x\">y</a>", "$HOME/.config", "a->b::c", "x != y && z || !w", "git commit -m 'x'",
        "camelCaseWord snake_case_word kebab-case", "/* \u2026 */ // --", "0b1010_1010", "#include <cstdint>", "\\n\\t\\0",
        "...", "....!!!???", "--- *** ===", "(c) [d] {e}", "f(x)\n\ng(y)!\nz", "a;\r\n\tb;\r\n", "x\n\n\n\ny", "a   b    c", "\n    d",
        "xa\u1c8ab a\U000105c0b", "n\U00011f04n\U00010d40\U00010d41\U00011f50", "qu\ua7cbq", "a.b.c.", "e.g. i.e.", "don't won't can't I'm they've we're he'd",
        " n't do not", "~`@#$%^&*", "¡¿§¶†‡•", "→←↔⇒", "∑∫√∞≠", "€£¥₹₿", "「」『』", "，。！？", "؟،؛", "।॥"]
ORDERS = ["a\u0323\u0307", "a\u0307\u0323", "ạ\u0307", "ȧ\u0323", "\u1ea5", "a\u0302\u0301", "a\u0301\u0302", "q\u0307\u0323",
          "q\u0323\u0307", "ש\u05bc\u05c1", "ש\u05c1\u05bc", "\ufb2c", "ل\u0651\u064e", "ل\u064e\u0651", "\u0958", "क\u093c",
          "\u09cb", "\u09c7\u09be", "\u0dde", "\u0e4d\u0e32", "\u0e33", "\u0f73", "\u0f71\u0f72", "e\u20dd\u0301", "e\u0301\u20dd",
          "\u0344", "\u1f82", "\u03b1\u0345\u0300", "\u03b1\u0300\u0345", "\u212b", "\u2126", "\u0340", "\u1e9b\u0323", "\ufb01",
          "\u00e9", "e\u0301", "\u0439", "\u0438\u0306", "\u0451", "\u0435\u0308", "\u1026", "\u1025\u102e", "\ufefb", "\ufdfa",
          "\u3392", "\u2474", "\u0132", "\u01c6", "\ua64c", "\U0001d15e", "\U000110ab", "\u0c4a\u0c56",
          "가\u302e\U0001d165", "가\U0001d165\u302e", "나\u302e\u0301\U0001d165", "다\U0001d16d\u302f"]
INVALID_PIECES = [b"\x80", b"\xbf", b"\xc0\x80", b"\xc1\xbf", b"\xc3", b"\xe4", b"\xe4\xb8", b"\xf0", b"\xf0\x9f", b"\xf0\x9f\x98",
                  b"\xe0\x80\x80", b"\xe0\x9f\xbf", b"\xf0\x80\x80\x80", b"\xf0\x8f\xbf\xbf", b"\xed\xa0\x80", b"\xed\xbf\xbf",
                  b"\xed\xa0\xbd\xed\xb8\x80", b"\xf4\x90\x80\x80", b"\xf5\x80\x80\x80", b"\xf8\x88\x80\x80\x80",
                  b"\xfc\x84\x80\x80\x80\x80", b"\xfe", b"\xff", b"\xfe\xff", b"\xff\xff", b"\xc3(", b"\xe4\xb8(", b"\xf0\x9f\x98(",
                  b"\xe4\xc3\xa9", b"\xc3\xe4\xb8\xad"]
FIXED = (["", " ", "a", "A", "  a  ", "a b", " a", "a ", "\n", "\r\n", "\0", "a\0b", "hello world", "Hello, World!"] +
         SPACES + CONTROLS + ODD + EMOJI + MARKS + CASING + DIGITS + HANGUL + HAN + TOKENS + NEAR + CODE + ORDERS)


def _joined(*lists):
    """A generator of lines that string together pieces of these lists, and often words of the group."""
    def make(rng, group):
        pieces = rng.choice(lists)
        parts = []
        for _ in range(rng.randint(1, 5)):
            parts.append(_word(rng, group) if rng.random() < 0.4 else rng.choice(pieces))
        return rng.choice(["", "", " "]).join(parts)
    return make


def _word(rng, group):
    return rng.choice(rng.choice(corpus.names(rng.choice(corpus.LANGUAGES[group]))).split() or [""])


def _ordinary(rng, group):
    while True:
        text = corpus.line(rng, group)
        if len(text.encode()) < 105:
            return text


def _other_scripts(rng, _):
    return _ordinary(rng, rng.choice(list(corpus.LANGUAGES)))


def _contractions(rng, group):
    return " ".join(_word(rng, rng.choice(["latin", group])) + rng.choice(SUFFIXES) for _ in range(rng.randint(1, 3)))


def _whitespace(rng, group):
    text = "".join(rng.choice(SPACES) for _ in range(rng.randint(0, 3)))
    for _ in range(rng.randint(1, 3)):
        text += _word(rng, group) + "".join(rng.choice(SPACES) for _ in range(rng.randint(0, 4)))
    return text


def _stacked(rng, group):
    text = ""
    for letter in _word(rng, group)[:6] + rng.choice("aeoqשלक"):
        text += letter + "".join(rng.choice(MARKS) for _ in range(rng.randrange(4)))
    return text


def _random_characters(rng, _):
    """Code points of anywhere: each plane and block gets its share because the width is drawn first."""
    points = (rng.randrange(1 << rng.randint(7, 17)) for _ in range(rng.randint(1, 10)))
    return "".join(chr(point) for point in points if not 0xD800 <= point < 0xE000)


def _mixed_case(rng, group):
    text = _word(rng, rng.choice(["latin", "cyrillic_greek", group])) + rng.choice(CASING) + _word(rng, group)
    return "".join(rng.choice([letter.upper(), letter.lower(), letter]) for letter in text)


def _bidi(rng, group):
    words = [_word(rng, rng.choice(["arabic_hebrew", group])) for _ in range(3)]
    return rng.choice("\u202a\u202b\u202e\u2067\u200f") + " ".join(words) + rng.choice("\u202c\u2069\u200e")


def _digits(rng, group):
    return rng.choice(["", " ", _word(rng, group)]).join(rng.choice(DIGITS) for _ in range(rng.randint(1, 3)))


def _long(rng, group):
    """A long word, around the 100 characters after which WordPiece gives up, or much longer."""
    size = rng.choice([99, 100, 101, 200, 600, 1000, 3000])
    text = ""
    while len(text) < size:
        text += rng.choice([_word(rng, group), "a", "ab", "é"])
    return text[:size].encode()[:3000].decode(errors="ignore")


def _invalid(rng, group):
    parts = []
    for _ in range(rng.randint(1, 4)):
        kind = rng.random()
        if kind < 0.5:
            parts.append(rng.choice(INVALID_PIECES))
        elif kind < 0.8:
            word = _word(rng, group).encode()
            parts.append(word[:rng.randint(0, len(word))])
        else:
            parts.append(bytes(rng.randrange(256) for _ in range(rng.randint(1, 6))))
    return rng.choice([b"", b" "]).join(parts)


# How many lines of each kind; ordinary lines fill up what is left.
RANDOM = [(_other_scripts, 150), (_joined(EMOJI), 50), (_stacked, 60), (_bidi, 40), (_whitespace, 120),
          (_joined(CONTROLS, ODD), 60), (_random_characters, 80), (_digits, 60), (_mixed_case, 60), (_contractions, 60),
          (_joined(HANGUL, HAN), 50), (_joined(TOKENS), 80), (_joined(NEAR, TOKENS), 60), (_joined(CODE), 40), (_long, 16),
          (_joined(ORDERS), 40)]


def _is_valid(line):
    try:
        line.decode()
        return True
    except UnicodeDecodeError:
        return False


def lines(rng, group):
    """Returns the COUNT lines of the script group, shuffled."""
    made = [text.encode() for text in FIXED]
    for make, count in RANDOM:
        made += [make(rng, group).encode() for _ in range(count)]
    while len(made) < COUNT - INVALID:
        made.append(_ordinary(rng, group).encode())
    while len(made) < COUNT:
        line = _invalid(rng, group)
        if not _is_valid(line):
            made.append(line)
    rng.shuffle(made)
    return made
