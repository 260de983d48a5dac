"""Cycles of the loops that a kernel spends its instructions in, by llvm-mca's model of a core.

Which loops these are is not guessed from the code: the blocks that the plugin counted tell. From a block one goes on to that
of its successors which ran more often, until one comes round.
"""

import re
import subprocess
import tempfile
from dataclasses import dataclass

LLVM = "-19"
ITERATIONS = 1000
FEATURES = "+dotprod,+i8mm"

# Instructions that multiply and add, and how many products each has. A float product is rounded before it is added, so
# fmul tells the number and fadd is its other half.
MULTIPLIES = [
    (r"smmla\s+v\d+\.4s", 32),
    (r"sdot\s+v\d+\.4s", 16),
    (r"sml[as]l2?\s+v\d+\.8h|smull2?\s+v\d+\.8h", 8),
    (r"sml[as]l2?\s+v\d+\.4s|smull2?\s+v\d+\.4s", 4),
    (r"ml[as]\s+v\d+\.4s|mul\s+v\d+\.4s", 4),
    (r"fml[as]\s+v\d+\.4s|fmul\s+v\d+\.4s", 4),
]

# The most a core can do with an instruction: as many as the model lets through when nothing else is to be done and none
# waits for another. MACs of one round of the instructions; {d}: 16 different registers in turn.
PEAKS = {
    32: (32, ["smmla v{d}.4s, v16.16b, v17.16b"]),
    16: (16, ["sdot v{d}.4s, v16.16b, v17.16b"]),
    8: (8, ["smull v{d}.8h, v16.8b, v17.8b"]),
    4: (4, ["smlal v{d}.4s, v16.4h, v17.4h"]),
    "float": (4, ["fmul v{d}.4s, v16.4s, v17.4s", "fadd v{d}.4s, v16.4s, v17.4s"]),
}


def multiplies(instruction):
    """(products, kind of peak) of one instruction, or None."""
    for pattern, products in MULTIPLIES:
        if re.match(pattern, instruction):
            return products, "float" if instruction.startswith("f") else products
    return None


@dataclass
class Loop:
    instructions: list
    # Rounds that the call made.
    rounds: int

    def __post_init__(self):
        """Of several kinds of multiplications that with the most products counts: others scale what it computed."""
        sums = {}
        for found in filter(None, map(multiplies, self.instructions)):
            sums[found[1]] = sums.get(found[1], 0) + found[0]
        self.peak = max(sums, key=sums.get, default=None)
        self.products = sums.get(self.peak, 0)


class Program:
    """The disassembled text of a program."""

    def __init__(self, path):
        command = [f"llvm-objdump{LLVM}", "-d", "--no-show-raw-insn", f"--mattr={FEATURES}", path]
        text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        lines = re.findall(r"^\s*([0-9a-f]+):\s+(\S.*)$", text, re.M)
        self.instructions = {int(address, 16): re.sub(r"\s+", " ", text) for address, text in lines}

    def text(self, addresses):
        """Their instructions, also those that were written as numbers, which a disassembler takes for data."""
        found = [self.instructions[address] for address in addresses]
        words = [re.match(r"(\w\w \w\w \w\w \w\w) \.word", instruction) for instruction in found]
        if any(words):
            bytes_of_words = "\n".join(" ".join("0x" + byte for byte in word[1].split()) for word in words if word)
            command = [f"llvm-mc{LLVM}", "--disassemble", "--triple=aarch64", f"--mattr={FEATURES}"]
            decoded = subprocess.run(command, input=bytes_of_words, check=True, capture_output=True, text=True).stdout
            lines = iter(line.strip() for line in decoded.splitlines() if not line.strip().startswith("."))
            found = [re.sub(r"\s+", " ", next(lines)) if word else text for word, text in zip(words, found)]
        return found

    def successors(self, block):
        last = block.address + 4 * (block.length - 1)
        instruction = self.instructions.get(last, "ret")
        branch = re.match(r"(b|b\.\w+|cbn?z \w+,|tbn?z \w+, #\w+,) 0x([0-9a-f]+)", instruction)
        if branch:
            return [int(branch[2], 16)] + ([] if branch[1] == "b" else [last + 4])
        return [] if re.match(r"bl|br|ret", instruction) else [last + 4]

    def cycle(self, block, by_address):
        """The blocks one comes round in, from the lowest address on; none where one does not."""
        path = []
        while block not in path:
            path.append(block)
            following = [by_address[address] for address in self.successors(block) if address in by_address]
            if not following:
                return ()
            block = max(following, key=lambda following: following.executions)
        path = path[path.index(block):]
        first = path.index(min(path, key=lambda block: block.address))
        return tuple(path[first:] + path[:first])

    def loops(self, count, least_share):
        """Loops that do at least such a share of a marked call's multiply-adds, the most first. That leaves out loops
        that scale, or are exponentials. Those that take the same path in less than seven of ten rounds are left out
        too, since their cycles cannot be told: a loop of three rounds, or one with branches that change."""
        executions = {}
        for block in count.blocks:
            for address in range(block.address, block.address + 4 * block.length, 4):
                executions[address] = executions.get(address, 0) + block.executions
        by_address = {block.address: block for block in sorted(count.blocks, key=lambda block: block.executions)}
        found = []
        cycles = {self.cycle(block, by_address) for block in count.blocks} - {()}
        for blocks in sorted(cycles, key=lambda blocks: blocks[0].address):
            addresses = [address for block in blocks
                         for address in range(block.address, block.address + 4 * block.length, 4)]
            rounds = [executions[address] for address in addresses]
            if min(rounds) >= 0.7 * max(rounds):
                found.append(Loop(self.text(addresses), min(rounds)))
        found = [loop for loop in found if loop.products * loop.rounds >= least_share * count.items]
        return sorted(found, key=lambda loop: -loop.products * loop.rounds)


class Core:
    """llvm-mca's model of a core."""

    def __init__(self, name):
        self.name = name
        self._peaks = {}

    def cycles(self, instructions):
        """For one round of the instructions, in the long run, with all data in the first cache."""
        with tempfile.NamedTemporaryFile("w", suffix=".s") as source:
            source.write(".Loop:\n")
            for instruction in instructions:
                source.write(re.sub(r"0x[0-9a-f]+ <.*>$", ".Loop", instruction) + "\n")
            source.flush()
            command = [f"llvm-mca{LLVM}", "-mtriple=aarch64", f"-mcpu={self.name}", f"-mattr={FEATURES}",
                       f"-iterations={ITERATIONS}", source.name]
            text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        return int(re.search(r"^Total Cycles:\s+(\d+)", text, re.M)[1]) / ITERATIONS

    def peak(self, kind):
        """Products in a cycle."""
        if kind not in self._peaks:
            products, instructions = PEAKS[kind]
            rounds = [text.format(d=d) for text in instructions for d in range(16)]
            self._peaks[kind] = round(16 * products / self.cycles(rounds), 1)
        return self._peaks[kind]
