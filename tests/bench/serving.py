"""The loop of the servers in Python: reads the commands that peers.py tells of, times them, answers."""

import json
import sys
import time


def status_bytes(name):
    with open("/proc/self/status", encoding="utf-8") as file:
        for line in file:
            if line.startswith(name):
                return int(line.split()[1]) * 1024
    return 0


def answer(**values):
    print(json.dumps(values), flush=True)


class Clock:
    """Seconds and processor seconds since it was made."""

    def __init__(self):
        self._processor, self._start = time.process_time(), time.perf_counter()

    def seconds(self):
        return time.perf_counter() - self._start

    def processor(self):
        return time.process_time() - self._processor


def serve(name, version, load):
    """`load` returns the model: reset(), feed(tokens), keep(length), logits() as float32 bytes."""
    before = status_bytes("VmRSS:")
    clock = Clock()
    model = load()
    answer(name=name, version=version, load_seconds=clock.seconds(), before=before)
    for line in sys.stdin:
        command, *words = line.split()
        if command == "quit":
            break
        if command in ("prompt", "feed", "encode"):
            tokens = [int(word) for word in words]
            if command == "prompt":
                model.reset()
            clock = Clock()
            model.feed(tokens)
            answer(seconds=clock.seconds(), processor=clock.processor())
        elif command == "decode":
            tokens = [int(word) for word in words]
            seconds = []
            whole = Clock()
            for token in tokens:
                clock = Clock()
                model.feed([token])
                seconds.append(clock.seconds())
            answer(seconds=seconds, processor=whole.processor())
        elif command == "keep":
            model.keep(int(words[0]))
            answer()
        elif command == "logits":
            with open(words[0], "wb") as file:
                file.write(model.logits())
            answer()
        elif command == "memory":
            answer(peak=status_bytes("VmHWM:"), resident=status_bytes("VmRSS:"), anonymous=status_bytes("RssAnon:"))
        else:
            sys.exit(f"unknown command {command!r}")
