"""Models, sessions and texts over the C interface. Memory is asked for, given and kept, as in C."""

import ctypes
import json
import os
import subprocess
import weakref
from ctypes import byref, c_char_p, c_size_t, c_uint64, c_void_p
from typing import Any, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Union

import numpy

from . import _library
from ._library import call, library

Tokens = Union[Sequence[int], numpy.ndarray]
_TASKS = ("generate", "translate", "classify", "fill_mask", "encode")
_POOLINGS = {"mean": 0, "first": 1, "last": 2, "max": 3}
_ROLES = {"system": 0, "user": 1, "assistant": 2}
_ENDS = {1: "end_of_text", 2: "max_tokens", 3: "stop", 4: "cancelled", 5: "stream_full", 6: "constraint"}


def _tokens(tokens: Tokens) -> numpy.ndarray:
    array = numpy.asarray(tokens)
    if array.ndim != 1 or array.size == 0 or array.dtype.kind not in "iu":
        raise ValueError("tokens are a row of integers that is not empty")
    # A number that does not fit would become another token.
    if array.min() < -2**31 or array.max() >= 2**31:
        raise ValueError(f"tokens are from {array.min()} to {array.max()}, expected integers of 32 bits")
    return numpy.ascontiguousarray(array, dtype=numpy.int32)


def _pointer(array: numpy.ndarray) -> c_void_p:
    return c_void_p(array.ctypes.data)


def _session_options(threads: int, backend: str, cpu_mask: int) -> _library.SessionOptions:
    names: List[str] = []
    while (name := library.oxb_backend_name(len(names))) is not None:
        names.append(name.decode())
    if backend not in names:
        raise ValueError(f"backend is {backend!r}, expected one of {', '.join(names)}")
    return _library.SessionOptions(threads=threads, backend=names.index(backend), cpu_mask=cpu_mask)


class Model:
    """A model file, mapped and verified. Any number of sessions may use it.

    Opening plans a session with so many threads on this backend, which need not be planned again when it is made.
    """

    def __init__(self, path: Union[str, "os.PathLike[str]"], *, threads: int = 1, backend: str = "auto") -> None:
        self.path = os.fspath(path)
        self._handle = c_void_p()
        self._threads = threads
        self._backend = backend
        self._sessions: "weakref.WeakSet[Session]" = weakref.WeakSet()
        planned = _session_options(threads, backend, 0)
        options = _library.OpenOptions(session=ctypes.pointer(planned))
        call("oxb_model_open_file", os.fsencode(self.path), byref(options), byref(self._handle))
        self._info = _library.ModelInfo()
        call("oxb_model_get_info", self._handle, byref(self._info))

    def close(self) -> None:
        """Its sessions are closed, too: each call of one is refused then."""
        for session in list(getattr(self, "_sessions", ())):
            session.close()
        if self._handle:
            library.oxb_model_close(self._handle)
            self._handle = c_void_p()

    def __del__(self) -> None:
        if getattr(self, "_handle", None):
            self.close()

    def __enter__(self) -> "Model":
        return self

    def __exit__(self, *unused: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<oxbow.Model {self.path!r}: {self.architecture}, {self.parameters:,} parameters>"

    @property
    def architecture(self) -> str:
        return self._info.architecture.decode()

    @property
    def task(self) -> str:
        return _TASKS[self._info.task] if self._info.task < len(_TASKS) else "unknown"

    @property
    def vocabulary(self) -> int:
        return self._info.vocabulary

    @property
    def output_width(self) -> int:
        return self._info.output_width

    @property
    def max_segment(self) -> int:
        """Tokens that one run takes at most."""
        return self._info.max_segment

    @property
    def capacity(self) -> Optional[int]:
        """Tokens that a stream may have; None: it is endless."""
        return self._info.capacity or None

    @property
    def parameters(self) -> int:
        return self._info.parameters

    @property
    def hash(self) -> int:
        return self._info.hash

    @property
    def metadata(self) -> Dict[str, str]:
        out = {}
        for index in range(self._info.metadata_count):
            key, value = c_char_p(), c_char_p()
            call("oxb_model_metadata", self._handle, index, byref(key), byref(value))
            out[(key.value or b"").decode("utf-8", "replace")] = (value.value or b"").decode("utf-8", "replace")
        return out

    def session(self, *, threads: Optional[int] = None, backend: Optional[str] = None, cpu_mask: int = 0) -> "Session":
        """As the model was opened for, unless told otherwise."""
        return Session(self, threads=threads, backend=backend, cpu_mask=cpu_mask)

    def encode(self, text: str, *, template: bool = True, special: bool = True) -> numpy.ndarray:
        """The tokens of a text."""
        options = _library.EncoderOptions(add_template=template, parse_special=special, max_word_bytes=4096)
        size = c_size_t()
        call("oxb_encoder_bytes", self._handle, byref(options), byref(size))
        memory, encoder = ctypes.create_string_buffer(size.value), c_void_p()
        call("oxb_encoder_create", self._handle, byref(options), memory, size, byref(encoder))
        try:
            data, done, parts = text.encode(), 0, []
            # In place: a copy of what is left for each part would take the square of the text's length.
            begin = ctypes.cast(c_char_p(data), c_void_p).value
            ids, count, consumed = numpy.empty(4096, numpy.int32), c_size_t(), c_size_t()
            while True:
                call("oxb_encoder_run", encoder, begin + done, len(data) - done, 1, _pointer(ids), ids.size, byref(count),
                     byref(consumed))
                parts.append(ids[:count.value].copy())
                done += consumed.value
                if done == len(data) and count.value < ids.size:
                    return numpy.concatenate(parts)
        finally:
            library.oxb_encoder_destroy(encoder)

    def decode(self, tokens: Tokens, *, skip_special: bool = True) -> str:
        """The text of tokens."""
        options, size = _library.DecoderOptions(skip_special=skip_special), c_size_t()
        call("oxb_decoder_bytes", self._handle, byref(options), byref(size))
        memory, decoder = ctypes.create_string_buffer(size.value), c_void_p()
        call("oxb_decoder_create", self._handle, byref(options), memory, size, byref(decoder))
        try:
            room, count = ctypes.create_string_buffer(max(library.oxb_decoder_most_text(decoder), 1)), c_size_t()
            out = []
            for token in _tokens(tokens):
                call("oxb_decoder_run", decoder, int(token), room, len(room), byref(count))
                out.append(ctypes.string_at(room, count.value))
            call("oxb_decoder_finish", decoder, room, len(room), byref(count))
            out.append(ctypes.string_at(room, count.value))
            return b"".join(out).decode("utf-8", "replace")
        finally:
            library.oxb_decoder_destroy(decoder)

    def bench(self, *options: str) -> Dict[str, Any]:
        """What `oxbow bench` measures with these options, such as "--stream", "100000"."""
        words = [_library.program("oxbow"), "bench", self.path, "--json", *options]
        result = subprocess.run(words, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        if result.returncode != 0:
            raise RuntimeError(result.stderr.strip())
        return json.loads(result.stdout)


class Session:
    """One stream. All its memory is taken here; runs take none."""

    def __init__(self, model: Model, *, threads: Optional[int] = None, backend: Optional[str] = None,
                 cpu_mask: int = 0) -> None:
        self.model = model
        self._options = _session_options(model._threads if threads is None else threads,
                                         model._backend if backend is None else backend, cpu_mask)
        self.plan = _library.Plan()
        call("oxb_session_plan", model._handle, byref(self._options), byref(self.plan))
        self._arena = ctypes.create_string_buffer(self.plan.arena_bytes)
        self._handle = c_void_p()
        self._generators: "weakref.WeakSet[Generator]" = weakref.WeakSet()
        call("oxb_session_create", model._handle, byref(self.plan), self._arena, self.plan.arena_bytes, byref(self._handle))
        model._sessions.add(self)

    def close(self) -> None:
        """Its generators are closed, too."""
        for generator in list(getattr(self, "_generators", ())):
            generator.close()
        if self._handle:
            library.oxb_session_destroy(self._handle)
            self._handle = c_void_p()

    def __del__(self) -> None:
        if getattr(self, "_handle", None):
            self.close()

    def __enter__(self) -> "Session":
        return self

    def __exit__(self, *unused: object) -> None:
        self.close()

    @property
    def arena_bytes(self) -> int:
        return self.plan.arena_bytes

    @property
    def position(self) -> int:
        out = c_uint64()
        call("oxb_session_position", self._handle, byref(out))
        return out.value

    def run(self, tokens: Tokens, *, rows: Optional[int] = None) -> numpy.ndarray:
        """Feeds tokens, cut into runs where they are more than one takes, and gives the last `rows` rows (all by default)."""
        ids = _tokens(tokens)
        width, segment = self.model.output_width, self.model.max_segment
        wanted = ids.size if rows is None else rows
        if not 0 <= wanted <= ids.size:
            raise ValueError(f"rows is {wanted}, expected 0 to {ids.size}")
        out = numpy.empty((wanted, width), numpy.float32)
        for begin in range(0, ids.size, segment):
            part = ids[begin:begin + segment]
            first = max(begin, ids.size - wanted)
            count = max(begin + part.size - first, 0)
            room = out[first - (ids.size - wanted):][:count]
            call("oxb_session_run", self._handle, _pointer(part), part.size, count, _pointer(room) if count else None,
                 room.size)
        return out

    def embed(self, tokens: Tokens, *, pooling: str = "mean", normalise: bool = False) -> numpy.ndarray:
        """One row of numbers for a text."""
        ids = _tokens(tokens)
        options = _library.EmbedOptions(pooling=_POOLINGS[pooling], normalise=normalise)
        # The rows of the tokens are computed there too.
        out = numpy.empty((ids.size, self.model.output_width), numpy.float32)
        call("oxb_session_embed", self._handle, _pointer(ids), ids.size, byref(options), _pointer(out), out.size)
        return out[0].copy()

    def reset(self) -> None:
        call("oxb_session_reset", self._handle)

    def _copy_out(self, function: str) -> bytes:
        size = c_size_t()
        call("oxb_session_state_bytes", self._handle, byref(size))
        room = ctypes.create_string_buffer(size.value)
        call(function, self._handle, room, size)
        return room.raw

    def save(self) -> bytes:
        """The state of the stream, for this model in this process or in another."""
        return self._copy_out("oxb_session_save")

    def load(self, state: bytes) -> None:
        call("oxb_session_load", self._handle, state, len(state))

    def checkpoint(self) -> bytes:
        """The same for this session alone, without a checksum: quicker."""
        return self._copy_out("oxb_session_checkpoint")

    def rewind(self, state: bytes) -> None:
        call("oxb_session_rewind", self._handle, state, len(state))

    def generator(self, *, temperature: Optional[float] = None, top_k: Optional[int] = None, top_p: Optional[float] = None,
                  repetition_penalty: Optional[float] = None, seed: int = 0, stop: Iterable[str] = (), max_tokens: int = 0,
                  undo_turns: int = 0) -> "Generator":
        """Writes text on this stream. What is not given is what the model's makers advise."""
        return Generator(self, {"temperature": temperature, "top_k": top_k, "top_p": top_p,
                                "repetition_penalty": repetition_penalty, "seed": seed}, stop, max_tokens, undo_turns)

    def generate(self, prompt: Union[str, Tokens], **options: Any) -> Iterator[str]:
        """Pieces of the text that follows a prompt, as they come. Options are those of generator()."""
        generator = self.generator(**options)
        generator.add(prompt)
        return iter(generator)


class Generator:
    """A text on a session's stream: prompts or messages go in, pieces of text come out."""

    def __init__(self, session: Session, sampling: Mapping[str, Any], stop: Iterable[str], max_tokens: int,
                 undo_turns: int) -> None:
        self.session = session
        self.end: Optional[str] = None
        self.tokens: List[int] = []
        picks = _library.SamplerOptions(temperature=0.8, top_p=1, repetition_penalty=1, repetition_window=64)
        call("oxb_sampler_options_advised", session.model._handle, byref(picks))
        for name, value in sampling.items():
            if value is not None:
                setattr(picks, name, value)
        words = [word.encode() for word in stop]
        stops = (c_char_p * max(len(words), 1))(*words)
        options = _library.GeneratorOptions(sampling=ctypes.pointer(picks), stop_texts=stops, stop_text_count=len(words),
                                            max_tokens=max_tokens, undo_turns=undo_turns)
        size = c_size_t()
        call("oxb_generator_bytes", session._handle, byref(options), byref(size))
        self._memory = ctypes.create_string_buffer(size.value)
        self._handle = c_void_p()
        call("oxb_generator_create", session._handle, byref(options), self._memory, size, byref(self._handle))
        session._generators.add(self)

    def close(self) -> None:
        if self._handle:
            library.oxb_generator_destroy(self._handle)
            self._handle = c_void_p()

    def __del__(self) -> None:
        if getattr(self, "_handle", None):
            self.close()

    def add(self, prompt: Union[str, Tokens]) -> None:
        """Adds to the prompt."""
        if isinstance(prompt, str):
            data = prompt.encode()
            call("oxb_generator_add_text", self._handle, data, len(data))
        else:
            ids = _tokens(prompt)
            call("oxb_generator_add_tokens", self._handle, _pointer(ids), ids.size)

    def message(self, role: str, text: str) -> None:
        """Adds a message of a chat: role is system, user or assistant."""
        data = text.encode()
        call("oxb_generator_add_message", self._handle, _ROLES[role], data, len(data))

    def chat(self, question: str) -> Iterator[str]:
        """Asks, and gives the pieces of the answer."""
        self.message("user", question)
        return iter(self)

    def __iter__(self) -> Iterator[str]:
        """Pieces until the text ends; `end` then says why, and `tokens` has what was picked."""
        self.end, self.tokens = None, []
        while self.end is None:
            piece = _library.Piece(token=-1)
            call("oxb_generator_next", self._handle, byref(piece))
            if piece.token >= 0:
                self.tokens.append(piece.token)
            text = ctypes.string_at(piece.text, piece.text_bytes).decode("utf-8", "replace") if piece.text_bytes else ""
            self.end = _ENDS.get(piece.end)
            if text:
                yield text

    def undo(self) -> None:
        call("oxb_generator_undo", self._handle)

    def reset(self) -> None:
        call("oxb_generator_reset", self._handle)

    def save(self) -> bytes:
        room = ctypes.create_string_buffer(library.oxb_generator_state_bytes(self._handle))
        call("oxb_generator_save", self._handle, room, len(room))
        return room.raw

    def load(self, state: bytes) -> None:
        call("oxb_generator_load", self._handle, state, len(state))
