"""The C interface, as far as the package uses it: structs and functions of oxbow.h."""

import ctypes
import os
import pathlib
from ctypes import POINTER, Structure, byref, c_char, c_char_p, c_float, c_int32, c_size_t, c_uint32, c_uint64, c_void_p

NATIVE = pathlib.Path(__file__).resolve().parent / "native"


class OxbowError(RuntimeError):
    """What the library refused, with its status, such as "STREAM_FULL"."""

    def __init__(self, text: str, code: int, name: str) -> None:
        super().__init__(text)
        self.code = code
        self.name = name


class _Sized(Structure):
    """Begins with its size, as every struct of the interface does."""

    def __init__(self, **fields: object) -> None:
        super().__init__(**fields)
        self.size = ctypes.sizeof(self)


class Error(_Sized):
    _fields_ = [("size", c_size_t), ("code", c_int32), ("step", c_int32), ("op", c_char_p), ("text", c_char * 256)]


class ModelInfo(_Sized):
    _fields_ = [("size", c_size_t), ("architecture", c_char_p), ("vocabulary", c_uint32), ("max_segment", c_uint32),
                ("file_bytes", c_uint64), ("weight_bytes", c_uint64), ("parameters", c_uint64), ("macs_per_token", c_uint64),
                ("hash", c_uint64), ("tokenizer", c_int32), ("task", c_int32), ("output_width", c_uint32),
                ("start_token", c_int32), ("end_token", c_int32), ("pad_token", c_int32), ("mask_token", c_int32),
                ("capacity", c_uint64), ("entry_count", c_size_t), ("label_count", c_size_t), ("metadata_count", c_size_t)]


class SessionOptions(_Sized):
    _fields_ = [("size", c_size_t), ("threads", c_uint32), ("backend", c_int32), ("lender", c_void_p), ("cpu_mask", c_uint64),
                ("pipeline_cache", c_void_p), ("pipeline_cache_bytes", c_size_t)]


class OpenOptions(_Sized):
    _fields_ = [("size", c_size_t), ("access", c_int32), ("prefetch", c_int32), ("check_weights", c_int32),
                ("memory", c_void_p), ("memory_bytes", c_size_t), ("log", c_void_p), ("log_context", c_void_p),
                ("session", POINTER(SessionOptions))]


class Plan(_Sized):
    _fields_ = [("size", c_size_t), ("options", POINTER(SessionOptions))] + [
        (name, c_size_t) for name in ("arena_bytes", "session_bytes", "state_bytes", "activation_bytes", "scratch_bytes",
                                      "device_bytes", "library_bytes", "checkpoint_bytes", "beam_bytes")]


class EmbedOptions(_Sized):
    _fields_ = [("size", c_size_t), ("pooling", c_int32), ("normalise", c_int32)]


class EncoderOptions(_Sized):
    _fields_ = [("size", c_size_t), ("add_template", c_int32), ("parse_special", c_int32), ("max_word_bytes", c_uint32)]


class DecoderOptions(_Sized):
    _fields_ = [("size", c_size_t), ("skip_special", c_int32)]


class SamplerOptions(_Sized):
    _fields_ = [("size", c_size_t), ("temperature", c_float), ("top_k", c_uint32), ("top_p", c_float),
                ("repetition_penalty", c_float), ("repetition_window", c_uint32), ("seed", c_uint64)]


class GeneratorOptions(_Sized):
    _fields_ = [("size", c_size_t), ("sampling", POINTER(SamplerOptions)), ("stop_texts", POINTER(c_char_p)),
                ("stop_text_count", c_size_t), ("max_tokens", c_uint64), ("max_word_bytes", c_uint32), ("no_template", c_int32),
                ("literal_text", c_int32), ("undo_turns", c_uint32)]


class Piece(_Sized):
    _fields_ = [("size", c_size_t), ("text", c_void_p), ("text_bytes", c_size_t), ("token", c_int32), ("end", c_int32)]


_HANDLE = c_void_p
_ERROR = POINTER(Error)
_SIZE = POINTER(c_size_t)
# Name: what it returns (None: a status that is checked), and its arguments without the error.
_FUNCTIONS = {
    "oxb_model_open_file": [c_char_p, c_void_p, POINTER(_HANDLE)],
    "oxb_model_get_info": [_HANDLE, POINTER(ModelInfo)],
    "oxb_model_metadata": [_HANDLE, c_size_t, POINTER(c_char_p), POINTER(c_char_p)],
    "oxb_session_plan": [_HANDLE, POINTER(SessionOptions), POINTER(Plan)],
    "oxb_session_create": [_HANDLE, POINTER(Plan), c_void_p, c_size_t, POINTER(_HANDLE)],
    "oxb_session_run": [_HANDLE, c_void_p, c_size_t, c_size_t, c_void_p, c_size_t],
    "oxb_session_embed": [_HANDLE, c_void_p, c_size_t, POINTER(EmbedOptions), c_void_p, c_size_t],
    "oxb_session_reset": [_HANDLE],
    "oxb_session_position": [_HANDLE, POINTER(c_uint64)],
    "oxb_session_state_bytes": [_HANDLE, _SIZE],
    "oxb_session_save": [_HANDLE, c_void_p, c_size_t],
    "oxb_session_load": [_HANDLE, c_void_p, c_size_t],
    "oxb_session_checkpoint": [_HANDLE, c_void_p, c_size_t],
    "oxb_session_rewind": [_HANDLE, c_void_p, c_size_t],
    "oxb_encoder_bytes": [_HANDLE, POINTER(EncoderOptions), _SIZE],
    "oxb_encoder_create": [_HANDLE, POINTER(EncoderOptions), c_void_p, c_size_t, POINTER(_HANDLE)],
    "oxb_encoder_run": [_HANDLE, c_void_p, c_size_t, c_int32, c_void_p, c_size_t, _SIZE, _SIZE],
    "oxb_decoder_bytes": [_HANDLE, POINTER(DecoderOptions), _SIZE],
    "oxb_decoder_create": [_HANDLE, POINTER(DecoderOptions), c_void_p, c_size_t, POINTER(_HANDLE)],
    "oxb_decoder_run": [_HANDLE, c_int32, c_void_p, c_size_t, _SIZE],
    "oxb_decoder_finish": [_HANDLE, c_void_p, c_size_t, _SIZE],
    "oxb_sampler_options_advised": [_HANDLE, POINTER(SamplerOptions)],
    "oxb_generator_bytes": [_HANDLE, POINTER(GeneratorOptions), _SIZE],
    "oxb_generator_create": [_HANDLE, POINTER(GeneratorOptions), c_void_p, c_size_t, POINTER(_HANDLE)],
    "oxb_generator_add_text": [_HANDLE, c_char_p, c_size_t],
    "oxb_generator_add_tokens": [_HANDLE, c_void_p, c_size_t],
    "oxb_generator_add_message": [_HANDLE, c_int32, c_char_p, c_size_t],
    "oxb_generator_next": [_HANDLE, POINTER(Piece)],
    "oxb_generator_undo": [_HANDLE],
    "oxb_generator_reset": [_HANDLE],
    "oxb_generator_save": [_HANDLE, c_void_p, c_size_t],
    "oxb_generator_load": [_HANDLE, c_void_p, c_size_t],
}
_ENDS = ("oxb_model_close", "oxb_session_destroy", "oxb_encoder_destroy", "oxb_decoder_destroy", "oxb_generator_destroy")


def _open() -> ctypes.CDLL:
    path = os.environ.get("OXBOW_LIBRARY") or str(NATIVE / "liboxbow.so.0.1")
    library = ctypes.CDLL(path)
    for name, arguments in _FUNCTIONS.items():
        function = getattr(library, name)
        function.argtypes = [*arguments, _ERROR]
        function.restype = c_int32
    for name in _ENDS:
        getattr(library, name).argtypes = [_HANDLE]
        getattr(library, name).restype = None
    library.oxb_version.restype = c_uint32
    library.oxb_status_name.argtypes, library.oxb_status_name.restype = [c_int32], c_char_p
    library.oxb_backend_name.argtypes, library.oxb_backend_name.restype = [c_int32], c_char_p
    library.oxb_decoder_most_text.argtypes, library.oxb_decoder_most_text.restype = [_HANDLE], c_size_t
    library.oxb_generator_state_bytes.argtypes, library.oxb_generator_state_bytes.restype = [_HANDLE], c_size_t
    return library


library = _open()


def call(name: str, *arguments: object) -> None:
    """Calls a function of the library; what it refuses is an OxbowError with its words."""
    error = Error()
    status = getattr(library, name)(*arguments, byref(error))
    if status != 0:
        text = error.text.decode("utf-8", "replace") or library.oxb_status_name(status).decode()
        raise OxbowError(text, status, library.oxb_status_name(status).decode())


def program(name: str) -> str:
    """The path of a program that came with the package; OXBOW_PROGRAMS names another folder."""
    folder = pathlib.Path(os.environ.get("OXBOW_PROGRAMS") or NATIVE)
    path = folder / name
    if not path.exists():
        raise FileNotFoundError(f"{path}: the program is not there; was the wheel built with it?")
    return str(path)
