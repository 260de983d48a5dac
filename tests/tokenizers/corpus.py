"""Text to train the vocabularies on: sentence-like lines of real words.

The words are the names that CLDR (through Babel) has for languages, territories, months, days, units and
currencies, in every language of a script group; a few sentences written for this purpose are mixed in. Every
line depends on nothing but the group and the seed.
"""

import datetime
import functools

from babel import Locale
from babel.dates import format_date, format_datetime
from babel.numbers import format_currency, format_decimal, format_percent

LANGUAGES = {
    "latin": "en fr de es it pt pl cs tr vi hu fi ro is az sw".split(),
    "cyrillic_greek": "ru uk bg sr be mk kk ky mn el".split(),
    "arabic_hebrew": "ar fa ur he ps ckb ug sd yi".split(),
    "cjk": "zh zh_Hant ja ko".split(),
    "indic_thai": "hi bn ta te th mr gu kn ml pa si ne lo km my or".split(),
}

SENTENCES = {
    "latin": [
        "The river bends twice before it reaches the mill, and nobody knows why.",
        "Don't wait for me; I'll be home when the bread's done, won't I?",
        "She said they'd've come earlier if we'd only asked.",
        "Read the last page first and the first page last.",
        "Le chat dort près de la fenêtre où l'été n'arrive jamais.",
        "Die größte Straße führt über den Fluss, doch sie ist gesperrt.",
        "Kedi, ışığın altında İstanbul'u düşünüyor.",
        "Żółty ptak usiadł na gałęzi i zaśpiewał głośno.",
        "Con mèo ngủ trên mái nhà, còn trời thì đang mưa.",
        "¿Quién dejó la puerta abierta? ¡Nadie lo sabe!",
        "He ſaid alſo: the ſand iſ ſalt, they ſay.",
        # Letters and digits of Unicode 15 and 16 inside words: an older table splits these words.
        "The signs xa\u1c8ab, a\U000105c0b, qu\ua7cbq, a\U0001e030c and n\U00011f04n meet a\U00010d40\U00010d41\U00011f50.",
    ],
    "cyrillic_greek": [
        "Река дважды поворачивает перед мельницей, и никто не знает почему.",
        "Ёжик ещё спит, а мы уже пьём чай.",
        "Їжак їсть яблуко під старою вербою.",
        "Старата къща има зелени прозорци.",
        "Ο ποταμός στρίβει δύο φορές πριν φτάσει στον μύλο.",
        "Η γάτα κοιμάται δίπλα στο παράθυρο, όπως πάντα.",
    ],
    "arabic_hebrew": [
        "ينام القط قرب النافذة كلّ مساء.",
        "هل رأيتَ البيتَ القديم عند النهر؟",
        "گربه کنار پنجره می‌خوابد و باران می‌بارد.",
        "بلی کھڑکی کے پاس سوتی ہے۔",
        "החתול ישן ליד החלון, והגשם יורד.",
        "שָׁלוֹם לכל מי שבא הביתה!",
    ],
    "cjk": [
        "小猫在窗边睡觉,外面正在下雨。",
        "這條河在到達磨坊之前轉了兩次彎。",
        "猫は窓のそばで眠っている。雨が降っている。",
        "コーヒーを二つください、と彼女は言った。",
        "고양이가 창가에서 자고 있고 밖에는 비가 온다.",
        "오늘은 빵이 다 떨어졌습니다!",
        # Spacing marks that canonical order exchanges, in both orders.
        "가\u302e\U0001d165 나\U0001d165\u302e 다\u302f\U0001d16d",
    ],
    "indic_thai": [
        "बिल्ली खिड़की के पास सो रही है।",
        "নদীটি দুবার বাঁক নেয়, কেউ জানে না কেন।",
        "பூனை ஜன்னல் அருகே தூங்குகிறது.",
        "పిల్లి కిటికీ దగ్గర నిద్రపోతోంది.",
        "แมวนอนอยู่ข้างหน้าต่างและฝนกำลังตก",
        "ແມວນອນຢູ່ຂ້າງປ່ອງຢ້ຽມ.",
    ],
}

ENDS = {
    "latin": [".", ".", ".", "!", "?", " …", ";", "…"],
    "cyrillic_greek": [".", ".", "!", "?", ";", "·", " — да."],
    "arabic_hebrew": [".", ".", "؟", "!", "؛", "۔"],
    "cjk": ["。", "。", "!", "?", "…", "."],
    "indic_thai": ["।", ".", "!", "?", "॥", " ฯ"],
}
COMMAS = {"arabic_hebrew": "،", "cjk": "、"}
QUOTES = [("“", "”"), ("«", "»"), ("(", ")"), ("\"", "\""), ("「", "」"), ("[", "]"), ("'", "'")]


@functools.cache
def names(language):
    """Returns the names CLDR has in this language, in a fixed order."""
    locale = Locale.parse(language)
    found = set()
    for table in (locale.languages, locale.territories, locale.currencies, locale.scripts, locale.variants):
        found.update(table.values())
    for table in (locale.months, locale.days, locale.quarters):
        found.update(table["format"]["wide"].values())
    for unit in locale.unit_display_names.values():
        found.update(text for text in unit.values() if isinstance(text, str))
    return sorted(found)


def _number(rng, language):
    kind = rng.randrange(7)
    day = datetime.datetime(1900, 1, 1) + datetime.timedelta(minutes=rng.randrange(70_000_000))
    if kind == 0:
        return str(rng.randrange(10 ** rng.randint(1, 9)))
    if kind == 1:
        return format_decimal(rng.randrange(10**7) / 100, locale=language, numbering_system="default")
    if kind == 2:
        return format_percent(rng.random(), locale=language, numbering_system="default")
    if kind == 3:
        currency = rng.choice(["EUR", "USD", "JPY", "INR", "TRY"])
        return format_currency(rng.randrange(10**6) / 100, currency, locale=language)
    if kind == 4:
        return format_datetime(day, "short", locale=language)
    return format_date(day, rng.choice(["short", "medium", "long", "full"]), locale=language)


def line(rng, group):
    """Returns a sentence-like line of the script group."""
    if rng.random() < 0.06:
        return rng.choice(SENTENCES[group])
    language = rng.choice(LANGUAGES[group])
    words = []
    for _ in range(rng.randint(1, 6)):
        if rng.random() < 0.12:
            words.append(_number(rng, language))
            continue
        name = rng.choice(names(language))
        case = rng.random()
        if case < 0.25:
            name = name.lower()
        elif case < 0.3:
            name = name.upper()
        elif case < 0.35:
            left, right = rng.choice(QUOTES)
            name = left + name + right
        words.append(name)
        if rng.random() < 0.15:
            words[-1] += COMMAS.get(group, ",")
    space = "" if language in ("zh", "zh_Hant", "ja", "th", "lo", "km", "my") and rng.random() < 0.7 else " "
    return space.join(words) + rng.choice(ENDS[group])


def paragraphs(rng, group, size):
    """Yields lines joined by newlines and indents, so that merges with these are learned, too."""
    joints = ["\n", "\n\n", "\r\n", "\n    ", "\n\t", "  ", "!\n", ")\n\n", "\u3000", " \n"]
    text = ""
    for next_line in lines(rng, group, size):
        text += next_line
        if rng.random() < 0.3:
            yield text
            text = ""
        else:
            text += rng.choice(joints)


def lines(rng, group, size):
    """Yields lines of the script group until they are `size` bytes of UTF-8 together."""
    made = 0
    while made < size:
        text = line(rng, group)
        made += len(text.encode()) + 1
        yield text
