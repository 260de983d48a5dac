"""Runs a program under qemu with count_plugin.c and joins what the plugin counted with what the program computed."""

import subprocess
import tempfile
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Block:
    """Straight code that ran, as the plugin tells it."""

    address: int
    length: int
    executions: int
    function: str


@dataclass
class Count:
    """One marked call."""

    name: str
    items: int
    instructions: int
    blocks: list = field(default_factory=list)

    @property
    def per_item(self):
        return self.instructions / self.items


class Counter:
    """`build` is the folder of the arm64 build."""

    def __init__(self, build):
        self.plugin = f"{build}/lib/libcount_plugin.so"
        self.kernels = f"{build}/bin/oxbow_count_kernels"

    def kernel_names(self, cpu):
        """All kernels with their shapes that the core can run, in the order of the lists."""
        command = ["qemu-aarch64", "-cpu", cpu, self.kernels, "--list"]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()

    def count(self, program, arguments, cpu, environment=()):
        """What was counted for each marked call of the program but the first, which computes nothing."""
        with tempfile.NamedTemporaryFile("r") as out:
            command = ["qemu-aarch64", "-cpu", cpu, "-plugin", f"{self.plugin},out={out.name}"]
            for variable in environment:
                command += ["-E", variable]
            text = subprocess.run(command + [program, *arguments], check=True, capture_output=True, text=True).stdout
            counts = []
            for line in out:
                kind, *words = line.split()
                if kind == "count":
                    counts.append(Count("", 0, int(words[0])))
                else:
                    counts[-1].blocks.append(Block(int(words[0], 16), int(words[1]), int(words[2]), words[3]))
        lines = [line.split() for line in text.splitlines()]
        if len(lines) != len(counts):
            raise RuntimeError(f"{program}: {len(lines)} calls, {len(counts)} counted")
        for count, (name, items) in zip(counts, lines):
            count.name, count.items = name, int(items)
        nothing, *rest = counts
        for count in rest:
            count.instructions -= nothing.instructions
        return rest

    def count_kernels(self, names, cpu):
        return self.count(self.kernels, names, cpu)
