"""Trains a vocabulary of any size for the script `tokenizers`, and writes text of its script group.

    make_vocabulary.py train KIND GROUP SIZE FOLDER    the files of a tokenizer, as tests/tokenizers has them
    make_vocabulary.py text GROUP BYTES LINES WHOLE    text it was not trained on: in lines, and as one text

Needs what tests/tokenizers/make.py needs, whose trainers these are. The format of texts is in tokenizer_server.cc.
"""

import pathlib
import random
import struct
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tokenizers"))

import corpus
import make

TRAINING_BYTES = 8_000_000


def train(kind, group, size, folder):
    make.TRAINING_BYTES = TRAINING_BYTES
    make.VOCABULARY[group] = int(size)
    for options in (make.UNIGRAM[group], make.SPBPE[group]):
        # A script may not have as many pieces.
        options["hard_vocab_limit"] = False
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    make.KINDS[kind][0](folder, group)


def write_texts(path, texts):
    with open(path, "wb") as file:
        file.write(struct.pack("<I", len(texts)))
        for text in texts:
            file.write(struct.pack("<I", len(text)) + text)


def text(group, size, lines_path, whole_path):
    lines = [line.encode() for line in corpus.lines(random.Random("bench " + group), group, int(size))]
    write_texts(lines_path, lines)
    write_texts(whole_path, [b"\n".join(lines)])


if __name__ == "__main__":
    {"train": train, "text": text}[sys.argv[1]](*sys.argv[2:])
