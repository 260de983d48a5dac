#!/usr/bin/env python3
"""Write train.txt and heldout.txt from the King James Bible of Debian's bible-kjv.

Needs the Debian packages bible-kjv and bible-kjv-text (program `bible`). The text of
1611 is in the public domain.

Layout: the name of the book on a line of its own, then one verse per line with chapter
and verse number, and an empty line after each chapter:

    Ruth

    1:1 Now it came to pass in the days when the judges ruled, ...
    1:2 And the name of the man was Elimelech, ...

Ten whole books are held out (about 4 % of the text): stories, wisdom, prophets and
letters that no other book tells again, unlike the gospels, Kings and
Chronicles, Ephesians and Colossians, or Jude and 2 Peter.
"""

import argparse
import os
import re
import subprocess

# The abbreviations that `bible -f` prints, in order, and the names to write.
BOOKS = {
    "Ge": "Genesis", "Exo": "Exodus", "Lev": "Leviticus", "Num": "Numbers",
    "Deu": "Deuteronomy", "Josh": "Joshua", "Jdgs": "Judges", "Ruth": "Ruth",
    "1Sm": "1 Samuel", "2Sm": "2 Samuel", "1Ki": "1 Kings", "2Ki": "2 Kings",
    "1Chr": "1 Chronicles", "2Chr": "2 Chronicles", "Ezra": "Ezra", "Neh": "Nehemiah",
    "Est": "Esther", "Job": "Job", "Psa": "Psalms", "Prv": "Proverbs",
    "Eccl": "Ecclesiastes", "SSol": "Song of Solomon", "Isa": "Isaiah", "Jer": "Jeremiah",
    "Lam": "Lamentations", "Eze": "Ezekiel", "Dan": "Daniel", "Hos": "Hosea",
    "Joel": "Joel", "Amos": "Amos", "Obad": "Obadiah", "Jonah": "Jonah", "Mic": "Micah",
    "Nahum": "Nahum", "Hab": "Habakkuk", "Zep": "Zephaniah", "Hag": "Haggai",
    "Zec": "Zechariah", "Mal": "Malachi", "Mat": "Matthew", "Mark": "Mark",
    "Luke": "Luke", "John": "John", "Acts": "Acts", "Rom": "Romans",
    "1Cor": "1 Corinthians", "2Cor": "2 Corinthians", "Gal": "Galatians",
    "Eph": "Ephesians", "Phi": "Philippians", "Col": "Colossians",
    "1Th": "1 Thessalonians", "2Th": "2 Thessalonians", "1Tim": "1 Timothy",
    "2Tim": "2 Timothy", "Titus": "Titus", "Phmn": "Philemon", "Heb": "Hebrews",
    "Jas": "James", "1Pet": "1 Peter", "2Pet": "2 Peter", "1Jn": "1 John",
    "2Jn": "2 John", "3Jn": "3 John", "Jude": "Jude", "Rev": "Revelation",
}  # fmt: skip

HELD_OUT = [
    "Ruth", "Esther", "Ecclesiastes", "Hosea", "Joel",
    "Jonah", "Galatians", "Philippians", "James", "1 Peter",
]  # fmt: skip


def read_books():
    """Return {book name: text} in the order of the Bible."""
    command = ["bible", "-f", "-l100000", "Genesis 1:1-Revelation 22:21"]
    output = subprocess.run(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=True
    ).stdout.decode("ascii")
    books = {}
    chapter = None
    for line in output.splitlines():
        match = re.fullmatch(r"([1-3]?[A-Za-z]+)(\d+):(\d+) +(\S.*)", line)
        if not match:
            raise SystemExit(f"cannot read this line of bible's output: {line!r}")
        short, chapter_number, verse, text = match.groups()
        lines = books.setdefault(BOOKS[short], [])
        if (short, chapter_number) != chapter:
            lines.append("")
            chapter = (short, chapter_number)
        lines.append(f"{chapter_number}:{verse} {' '.join(text.split())}")
    if list(books) != list(BOOKS.values()):
        raise SystemExit("the books in bible's output are not the ones expected")
    return {name: "\n".join([name] + lines) + "\n\n" for name, lines in books.items()}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", nargs="?", default=".", help="where to write (default: .)")
    args = parser.parse_args()
    books = read_books()
    os.makedirs(args.folder, exist_ok=True)
    for name, held_out in (("train.txt", False), ("heldout.txt", True)):
        text = "".join(t for book, t in books.items() if (book in HELD_OUT) == held_out)
        with open(os.path.join(args.folder, name), "w", newline="\n") as f:
            f.write(text)
        print(f"{name}: {len(text)} characters, {len(set(text))} different")


if __name__ == "__main__":
    main()
