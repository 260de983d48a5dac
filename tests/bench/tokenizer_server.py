"""Encodes and decodes texts with the original library of a tokenizer; tokenizer_server.cc tells the commands.

    tokenizer_server.py KIND FOLDER

Each library gets all texts in one call, on one thread, and makes no offsets where it can leave them out.
"""

import importlib.metadata
import pathlib
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tokenizers"))

import make  # Says that there is one thread, too.
from serving import Clock, answer


class HuggingFace:
    def __init__(self, tokenizer):
        self._tokenizer = tokenizer

    def encode(self, texts):
        return self._tokenizer.encode_batch_fast(texts, add_special_tokens=False)

    def ids(self, encoded):
        return [encoding.ids for encoding in encoded]

    def decode(self, ids):
        return self._tokenizer.decode_batch(ids, skip_special_tokens=True)


class SentencePiece:
    def __init__(self, processor):
        self._processor = processor

    def encode(self, texts):
        return self._processor.encode(texts, out_type=int, num_threads=1)

    def ids(self, encoded):
        return encoded

    def decode(self, ids):
        return self._processor.decode(ids, num_threads=1)


def read_texts(path):
    with open(path, "rb") as file:
        def number():
            return struct.unpack("<I", file.read(4))[0]
        return [file.read(number()).decode() for _ in range(number())]


def write_ids(path, ids):
    with open(path, "wb") as file:
        for line in ids:
            file.write(struct.pack(f"<I{len(line)}i", len(line), *line))


def main(kind, folder):
    tokenizer = make.KINDS[kind][1](pathlib.Path(folder))
    name = type(tokenizer).__module__.partition(".")[0]
    library = (HuggingFace if name == "tokenizers" else SentencePiece)(tokenizer)
    answer(name=name, version=importlib.metadata.version(name))
    texts, encoded = [], []
    for line in sys.stdin:
        command, _, path = line.rstrip("\n").partition(" ")
        if command == "quit":
            break
        if command == "texts":
            texts = read_texts(path)
            answer(bytes=sum(len(text.encode()) for text in texts))
        elif command == "encode":
            encoded = None  # To free it is not part of the time.
            clock = Clock()
            encoded = library.encode(texts)
            answer(seconds=clock.seconds(), processor=clock.processor(), tokens=sum(map(len, encoded)))
        elif command == "ids":
            write_ids(path, library.ids(encoded))
            answer()
        elif command == "decode":
            ids = library.ids(encoded)
            clock = Clock()
            decoded = library.decode(ids)
            answer(seconds=clock.seconds(), processor=clock.processor(), bytes=sum(len(text.encode()) for text in decoded))
        else:
            sys.exit(f"unknown command {command!r}")


if __name__ == "__main__":
    main(*sys.argv[1:])
