"""The installed package with the demo model: converts, runs, writes, and gives the C interface's logits to the bit.

    python -m unittest discover -s python/tests     with the package on the path
"""

import inspect
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import tempfile
import typing
import unittest

import numpy

import oxbow
from oxbow import _library

ROOT = pathlib.Path(os.environ.get("OXBOW_SOURCE") or pathlib.Path(__file__).resolve().parents[2])
DEMO = ROOT / "examples/demo"
# A cross compiler, and what runs its programs, where this Python is emulated.
COMPILER = shlex.split(os.environ.get("OXBOW_CC") or "cc")


class TestOxbow(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.directory.name)
        cls.path = cls.folder / "demo.oxb"
        cls.summary = oxbow.convert(DEMO, cls.path, quality=False)
        cls.model = oxbow.Model(cls.path)

    @classmethod
    def tearDownClass(cls):
        cls.model.close()
        cls.directory.cleanup()

    def compiled(self, name, source):
        """The words that run a C program over the package's library."""
        library = os.environ.get("OXBOW_LIBRARY") or str(_library.NATIVE / "liboxbow.so.0.1")
        subprocess.run([*COMPILER, "-std=c99", f"-I{ROOT / 'runtime/api'}", str(source), library,
                        f"-Wl,-rpath,{os.path.dirname(library)}", "-o", str(self.folder / name)], check=True)
        return [*shlex.split(os.environ.get("OXBOW_EMULATOR", "")), str(self.folder / name)]

    def test_structs_lie_as_the_header_has_them(self):
        lines, expected = [], []
        for name, struct in vars(_library).items():
            if not (isinstance(struct, type) and issubclass(struct, _library._Sized)) or struct is _library._Sized:
                continue
            c_name = "oxb" + re.sub("([A-Z])", lambda letter: "_" + letter[1].lower(), name)
            for field, *_ in struct._fields_:
                member = getattr(struct, field)
                lines.append(f'printf("%zu %zu\\n", offsetof({c_name}, {field}), sizeof((({c_name}*)0)->{field}));')
                expected.append(f"{member.offset} {member.size}")
        source = self.folder / "structs.c"
        source.write_text("#include <oxbow.h>\n#include <stddef.h>\n#include <stdio.h>\nint main(void) {\n" + "\n".join(lines) + "\n}\n")
        told = subprocess.run(self.compiled("structs", source), check=True, capture_output=True, text=True).stdout.splitlines()
        self.assertEqual(told, expected)
        self.assertGreater(len(expected), 60)

    def test_convert_tells_what_it_made(self):
        self.assertEqual(self.model.parameters, 1922377)
        self.assertEqual(self.model.task, "generate")
        self.assertIsNone(self.model.capacity)
        self.assertIsInstance(self.summary, dict)
        self.assertTrue(self.model.metadata)

    def test_tokens_that_do_not_fit_are_refused_and_not_others(self):
        with self.model.session() as session:
            for wrong in ([2**32 + 5], [-2**31 - 1], numpy.array([2**63], numpy.uint64)):
                with self.assertRaises(ValueError):
                    session.run(wrong)
            with self.assertRaises(oxbow.OxbowError):
                session.run([-1])

    def test_what_was_closed_is_refused_and_not_used(self):
        model = oxbow.Model(self.path)
        session = model.session()
        generator = session.generator(max_tokens=2)
        session.close()
        for use in (lambda: generator.add("x"), lambda: list(generator), generator.save, lambda: session.run([1])):
            with self.assertRaises(oxbow.OxbowError):
                use()
        session = model.session()
        generator = session.generator(max_tokens=2)
        model.close()
        for use in (lambda: generator.add("x"), generator.undo, session.save, session.reset, lambda: model.encode("x")):
            with self.assertRaises(oxbow.OxbowError):
                use()

    def test_a_long_text_takes_no_square_of_its_length(self):
        import time
        text = "The river. " * 200000
        begin = time.process_time()
        tokens = self.model.encode(text)
        self.assertEqual(self.model.decode(tokens), text)
        self.assertLess(time.process_time() - begin, 60)

    def test_tensors_are_written_whole_or_not_at_all(self):
        import resource
        path = self.folder / "whole.safetensors"
        oxbow.write_safetensors(path, {"a": numpy.zeros(3, numpy.float32)})
        before = path.read_bytes()
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
        try:
            with self.assertRaises(OSError):
                oxbow.write_safetensors(path, {"a": numpy.zeros(100000, numpy.float32)})
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        self.assertEqual(path.read_bytes(), before)
        self.assertEqual([p.name for p in self.folder.glob("whole*")], ["whole.safetensors"])

    def test_convert_refuses_in_the_converters_words(self):
        with self.assertRaises(oxbow.ConvertError) as caught:
            oxbow.convert(self.folder / "nothing", self.folder / "x.oxb")
        self.assertEqual(caught.exception.exit_code, 3)
        self.assertIn("nothing", str(caught.exception))
        with self.assertRaises(TypeError):
            oxbow.convert({}, self.folder / "x.oxb")

    def test_a_state_dict_gives_the_file_of_its_checkpoint(self):
        import struct

        data = (DEMO / "model.safetensors").read_bytes()
        size = struct.unpack("<Q", data[:8])[0]
        header = json.loads(data[8:8 + size])
        header.pop("__metadata__", None)
        types = {"F16": numpy.float16, "F32": numpy.float32}
        state = {name: numpy.frombuffer(data, types[entry["dtype"]], offset=8 + size + entry["data_offsets"][0],
                                        count=int(numpy.prod(entry["shape"]))).reshape(entry["shape"])
                 for name, entry in header.items()}
        config = json.loads((DEMO / "config.json").read_text())
        other = self.folder / "state.oxb"
        oxbow.convert(state, other, config=config, tokenizer=DEMO / "char_vocab.json", quality=False)
        tokens = self.model.encode("In the beginning")
        numpy.testing.assert_array_equal(oxbow.Model(other).session().run(tokens), self.model.session().run(tokens))

    def test_text_and_tokens_are_the_same_thing(self):
        text = "And it came to pass"
        tokens = self.model.encode(text)
        self.assertEqual(tokens.dtype, numpy.int32)
        self.assertEqual(self.model.decode(tokens), text)

    def test_logits_are_those_of_the_c_interface_to_the_bit(self):
        tokens = self.model.encode("And it came to pass, when the river was full, that the people went up. " * 3)
        self.assertGreater(tokens.size, self.model.max_segment)
        program = self.compiled("logits", pathlib.Path(__file__).with_name("logits.c"))
        raw = subprocess.run([*program, str(self.path), *map(str, tokens)], check=True, capture_output=True).stdout
        expected = numpy.frombuffer(raw, numpy.float32).reshape(tokens.size, self.model.output_width)
        logits = self.model.session().run(tokens)
        self.assertEqual(logits.tobytes(), expected.tobytes())
        for threads in (1, 2):
            session = self.model.session(threads=threads)
            numpy.testing.assert_array_equal(session.run(tokens, rows=70), expected[-70:])

    def test_a_stream_is_saved_loaded_and_rewound(self):
        tokens = self.model.encode("In the beginning God created the heaven and the earth.")
        session = self.model.session()
        session.run(tokens[:20], rows=0)
        self.assertEqual(session.position, 20)
        state, mark = session.save(), session.checkpoint()
        expected = session.run(tokens[20:30])
        session.rewind(mark)
        numpy.testing.assert_array_equal(session.run(tokens[20:30]), expected)
        other = self.model.session()
        other.load(state)
        numpy.testing.assert_array_equal(other.run(tokens[20:30]), expected)
        with self.assertRaises(oxbow.OxbowError) as caught:
            other.load(b"x" * len(state))
        self.assertTrue(caught.exception.name)
        session.reset()
        self.assertEqual(session.position, 0)

    def test_text_is_what_the_command_line_writes(self):
        pieces = list(self.model.session().generate("And it came to pass", max_tokens=60, seed=7, temperature=0.8))
        words = [_library.program("oxbow"), "run", str(self.path), "--prompt", "And it came to pass", "--tokens", "60", "--seed",
                 "7", "--temperature", "0.8"]
        expected = subprocess.run(words, capture_output=True, check=True, stdin=subprocess.DEVNULL).stdout.decode()
        self.assertEqual("".join(pieces), expected)
        self.assertGreater(len(pieces), 10)

    def test_a_generator_goes_on_where_it_was_saved(self):
        whole = self.model.session().generator(seed=3, max_tokens=0)
        whole.add("And")
        taken = []
        for piece in whole:
            taken.append(piece)
            if len(taken) == 20:
                state = whole.save()
            if len(taken) == 40:
                break
        again = self.model.session().generator(seed=3, max_tokens=0)
        again.load(state)
        rest = []
        for piece in again:
            rest.append(piece)
            if len(rest) == 20:
                break
        self.assertEqual(rest, taken[20:])

    def test_a_chat_goes_on_and_a_turn_is_taken_back(self):
        folder = self.folder / "chat"
        shutil.copytree(DEMO, folder)
        (folder / "tokenizer_config.json").write_text(json.dumps({"chat_template":
            "{% for m in messages %}{{ m['role'] }}: {{ m['content'] }}\n{% endfor %}{% if add_generation_prompt %}assistant: {% endif %}"}))
        oxbow.convert(folder, self.folder / "chat.oxb", quality=False)
        model = oxbow.Model(self.folder / "chat.oxb")
        talk = model.session().generator(max_tokens=30, seed=2, undo_turns=2)
        talk.message("system", "Answer as a prophet.")
        first = "".join(talk.chat("Who art thou?"))
        self.assertEqual(talk.end, "max_tokens")
        self.assertEqual(len(talk.tokens), 30)
        second = "".join(talk.chat("And then?"))
        talk.undo()
        self.assertEqual("".join(talk.chat("And then?")), second)
        # By hand, what the template makes of it.
        plain = model.session().generator(max_tokens=30, seed=2)
        plain.add("system: Answer as a prophet.\nuser: Who art thou?\nassistant: ")
        self.assertEqual("".join(plain), first)
        with self.assertRaises(oxbow.OxbowError):
            self.model.session().generator().message("user", "no template")

    def test_embeddings_are_the_pooled_rows(self):
        pack = ROOT / "tests/golden/roformer/ro1"
        oxbow.convert(pack, self.folder / "roformer.oxb", quality=False, weights="f32")
        model = oxbow.Model(self.folder / "roformer.oxb")
        tokens = [2, 5, 7, 3]
        rows = model.session().run(tokens)
        for pooling, expected in (("mean", rows.mean(0)), ("first", rows[0]), ("last", rows[-1]), ("max", rows.max(0))):
            vector = model.session().embed(tokens, pooling=pooling)
            numpy.testing.assert_allclose(vector, expected, rtol=1e-5, atol=1e-6)
            unit = model.session().embed(tokens, pooling=pooling, normalise=True)
            numpy.testing.assert_allclose(unit, expected / numpy.linalg.norm(expected), rtol=1e-5, atol=1e-6)

    def test_mistakes_are_said(self):
        with self.assertRaises(oxbow.OxbowError):
            oxbow.Model(self.folder / "none.oxb")
        with self.assertRaises(ValueError):
            self.model.session(backend="abacus")
        with self.assertRaises(oxbow.OxbowError):
            oxbow.Model(self.path, threads=100000)
        self.assertEqual(oxbow.Model(self.path, threads=2).session()._options.threads, 2)
        session = self.model.session()
        for tokens in ([], [0.5], [[1, 2]]):
            with self.assertRaises(ValueError):
                session.run(tokens)
        with self.assertRaises(oxbow.OxbowError):
            session.run([self.model.vocabulary])

    def test_everything_public_has_types(self):
        self.assertTrue(pathlib.Path(oxbow.__file__).with_name("py.typed").is_file())
        functions = {}
        for name in oxbow.__all__:
            item = getattr(oxbow, name)
            for member, value in vars(item).items() if inspect.isclass(item) else [("", item)]:
                value = value.fget if isinstance(value, property) else value
                if inspect.isfunction(value) and (not member.startswith("_") or member == "__init__"):
                    functions[f"{name}.{member}"] = value
        self.assertGreater(len(functions), 30)
        for name, function in functions.items():
            hints = typing.get_type_hints(function)
            wanted = {"return", *inspect.signature(function).parameters} - {"self"}
            self.assertEqual(wanted - set(hints), set(), name)

    def test_bench_measures(self):
        report = self.model.bench("--decode", "5")
        self.assertEqual(report["decode"]["tokens"], 5)


if __name__ == "__main__":
    unittest.main()
