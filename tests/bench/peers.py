"""What the comparing scripts of this folder share: servers that run a model, rounds, medians, tables.

A server is a process that waits for commands, one a line, and answers each with a line of JSON:

    prompt TOKENS   starts a new stream with them; "seconds" until the logits of the last one are there
    feed TOKENS     the same without a new beginning
    encode TOKENS   a text through an encoder; "seconds" until all its rows are there
    translate B N TOKENS
                    with B beams to N tokens; "seconds" and the best "tokens"
    decode TOKENS   one after another; "seconds" of each, with its logits
    keep N          goes back to a stream of the first N tokens, where the state is no ring
    logits FILE     writes the newest logits, float32
    memory          "peak" and "resident" bytes of the process
    quit

Times come with "processor", the processor seconds of all threads. The first line of a server tells its name, version
and the time it took to load. Servers wait while others are measured, so a round can go A, B, C, A, B, C.
"""

import array
import importlib.util
import json
import math
import os
import random
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

# Threads of the server before may wait for more work in a loop, for a while.
SETTLE_SECONDS = 0.01
# Other work, when the script began: its own does not count.
LOAD_BEFORE = os.getloadavg()[0]
BUSY = 0.5
HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))


def stop(message, code=3):
    print(f"{os.path.basename(sys.argv[0])}: {message}", file=sys.stderr)
    sys.exit(code)


def note(message, end="\n"):
    print(message, file=sys.stderr, flush=True, end=end)


class ServerError(Exception):
    pass


class Server:
    """One program with one setting. `row` is its name in the tables."""

    def __init__(self, row, command, environment=None):
        self.row = row
        self.command = command
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                         env=dict(os.environ, **(environment or {})))
        self.hello = self._answer()

    def _answer(self):
        line = self._process.stdout.readline()
        if not line:
            raise ServerError(f"{self.row} ended (code {self._process.wait()}): {shlex.join(self.command)}")
        return json.loads(line)

    def ask(self, command, numbers=()):
        if command in ("prompt", "feed", "encode", "translate", "decode"):
            time.sleep(SETTLE_SECONDS)
        self._process.stdin.write(" ".join([command, *map(str, numbers)]) + "\n")
        self._process.stdin.flush()
        return self._answer()

    def logits(self, folder):
        path = os.path.join(folder, "logits.bin")
        self.ask("logits", [path])
        values = array.array("f")
        with open(path, "rb") as file:
            values.frombytes(file.read())
        return values

    def close(self):
        if self._process.poll() is None:
            try:
                self._process.stdin.write("quit\n")
                self._process.stdin.close()
                self._process.wait(20)
            except (OSError, subprocess.TimeoutExpired):
                self._process.kill()
                self._process.wait()


def cosine(a, b):
    if len(a) != len(b):
        raise ServerError(f"{len(a)} logits against {len(b)}")
    product = sum(x * y for x, y in zip(a, b))
    return product / math.sqrt(sum(x * x for x in a) * sum(y * y for y in b) or 1)


def tokens(count, vocabulary, seed):
    return [random.Random(seed * 1000003 + i).randrange(vocabulary) for i in range(count)]


class Times:
    """Seconds of the rounds of one server and one task."""

    def __init__(self):
        self.rounds = []
        self.processor = []
        self.best = math.inf

    def add(self, seconds, processor):
        """One round: a list of times of the same work, and their processor time for each."""
        self.rounds.append(statistics.median(seconds))
        self.processor.append(processor / len(seconds))
        self.best = min(self.best, min(seconds))

    def summary(self):
        return {"median": statistics.median(self.rounds), "best": self.best,
                "processor": statistics.median(self.processor), "rounds": self.rounds}


def ratio_of_rounds(ours, theirs):
    """Median of theirs / ours over the rounds: both halves of a quotient were measured next to each other."""
    return statistics.median(t / o for o, t in zip(ours["rounds"], theirs["rounds"]))


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines)


def machine():
    """Words for the machine: its processor, its cores and how busy it is."""
    name = "unknown processor"
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            names = [line.split(":", 1)[1].strip() for line in file if line.startswith("model name")]
        name = names[0] if names else name
    except OSError:
        pass
    words = f"{name}, {os.cpu_count()} cores, load average before {LOAD_BEFORE:.1f}"
    if LOAD_BEFORE > BUSY:
        words += (": **busy**. Times of more than one thread say nothing about programs whose threads wait in a loop; judge "
                  "one thread by processor time")
    return words


def package_version(name):
    """Of a Debian package."""
    if shutil.which("dpkg-query") is None:
        return "of unknown version"
    done = subprocess.run(["dpkg-query", "-W", "-f", "${Version}", name], stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, text=True, check=False)
    return done.stdout or "of unknown version"


def warn_when_busy():
    if LOAD_BEFORE > BUSY:
        note(f"warning: other work runs on this machine (load average {LOAD_BEFORE:.1f} on {os.cpu_count()} cores); the "
             "figures will be worse than they could be, and less sure")


def megabytes(count):
    return f"{count / 1e6:.0f} MB"


# ------------------------------------------------------------------------------------------------------------------
# Options, and what they point at
# ------------------------------------------------------------------------------------------------------------------


def python_with_numpy():
    """This one, or the system's, for which scripts/setup installs NumPy."""
    if importlib.util.find_spec("numpy") is None and os.access("/usr/bin/python3", os.X_OK):
        return "/usr/bin/python3"
    return sys.executable


def add_common(parser, rounds=7):
    parser.add_argument("--oxbow", metavar="DIR", default=os.path.join(ROOT, "build", "bin"),
                        help="programs of the build to measure (default build/bin)")
    parser.add_argument("--python", metavar="PROGRAM", default=python_with_numpy(),
                        help="a Python with NumPy, to write models with (default %(default)s)")
    parser.add_argument("--work", metavar="DIR", default=os.path.join(tempfile.gettempdir(), "oxbow-bench"),
                        help="where models are kept between runs (default %(default)s)")
    parser.add_argument("--rounds", type=int, default=rounds, metavar="N", help="default %(default)s")
    parser.add_argument("--json", metavar="FILE", help="write all times there")
    parser.add_argument("--markdown", metavar="FILE", help="write the tables there too")


def add_llama(parser):
    parser.add_argument("--llama-lib", metavar="DIR", help="folder with libllama and libggml of an installed llama.cpp")
    parser.add_argument("--llama-include", metavar="DIR[:DIR]", help="folders with its llama.h and ggml.h")
    parser.add_argument("--llama-version", metavar="NAME", default="of unknown version", help="for the tables")


def add_onnx(parser):
    parser.add_argument("--onnx-python", metavar="PROGRAM", help="a Python with onnx, onnxruntime and NumPy")


def program(args, name):
    path = os.path.join(args.oxbow, name)
    if not os.access(path, os.X_OK):
        stop(f"{path} is missing: run scripts/build, or name the folder with --oxbow")
    return path


def run(command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode != 0:
        stop(f"failed: {shlex.join(command)}\n{done.stdout.strip()}")
    return done.stdout


def make(path, command, sources=()):
    """Runs the command unless its result is there and younger than what it is made from."""
    if os.path.exists(path) and all(os.path.getmtime(source) <= os.path.getmtime(path) for source in sources):
        return path
    note(f"making {path}")
    os.makedirs(os.path.dirname(path), exist_ok=True)
    run(command)
    return path


def checkpoint(args, name, options):
    """A folder of make_model."""
    folder = os.path.join(args.work, name)
    make(os.path.join(folder, "model.safetensors"),
         [args.python, os.path.join(HERE, "make_model"), options[0], folder, *options[1:]],
         [os.path.join(HERE, "make_model")])
    return folder


def oxbow_model(args, folder, name, options):
    """Converted by the build that is measured, each time: layouts may differ between builds."""
    path = os.path.join(args.work, name)
    note(f"converting {path}")
    run([program(args, "oxbow-convert"), folder, "-o", path, *options])
    return path


def oxbow_server(args, row, model, threads, *backend):
    return Server(row, [program(args, "oxbow_bench_session"), model, str(threads), *backend])


def gguf(args, folder, name):
    script = os.path.join(HERE, "make_gguf")
    return make(os.path.join(args.work, name), [args.python, script, folder, os.path.join(args.work, name)],
                [script, os.path.join(HERE, "gguf_states.py"), os.path.join(folder, "model.safetensors")])


class Llama:
    """An installed llama.cpp; llama_server.c is compiled against it."""

    def __init__(self, args):
        self._library = os.path.abspath(args.llama_lib)
        names = sorted(os.listdir(self._library)) if os.path.isdir(self._library) else []
        libraries = [os.path.join(self._library, name) for stem in ("libllama.", "libggml.", "libggml-base.")
                     for name in names if name.startswith(stem) and ".so" in name][:8]
        if not any("libllama." in library for library in libraries):
            stop(f"--llama-lib {args.llama_lib}: no libllama in this folder")
        compiler = shutil.which("cc")
        if compiler is None:
            stop("no C compiler `cc` to compile tests/bench/llama_server.c with")
        include = [flag for folder in (args.llama_include or "").split(":") if folder for flag in ("-I", folder)]
        os.makedirs(args.work, exist_ok=True)
        self._program = os.path.join(args.work, "llama_server")
        run([compiler, "-O2", *include, f'-DLLAMA_SERVER_VERSION="{args.llama_version}"',
             os.path.join(HERE, "llama_server.c"), "-o", self._program, *libraries, f"-Wl,-rpath,{self._library}"])

    def server(self, row, model, threads, context, flash, kind):
        return Server(row, [self._program, self._library, model, str(threads), str(context), str(int(flash)), kind])


def write_results(args, markdown, data):
    print(markdown)
    if args.markdown:
        with open(args.markdown, "w", encoding="utf-8") as file:
            file.write(markdown + "\n")
    if args.json:
        with open(args.json, "w", encoding="utf-8") as file:
            json.dump(data, file, indent=1)
            file.write("\n")
