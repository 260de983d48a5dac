"""From a checkpoint to a model file, by the converter that is inside the package."""

import json
import os
import pathlib
import struct
import subprocess
import tempfile
from typing import Any, Mapping, Optional, Sequence, Union

import numpy

from ._library import program

_TYPES = {"float32": "F32", "float16": "F16", "float64": "F64", "int64": "I64", "int32": "I32", "int8": "I8", "uint8": "U8",
          "bool": "BOOL"}


class ConvertError(RuntimeError):
    """What the converter says when it refuses a checkpoint; `exit_code` is 2 for wrong options, 3 for bad input."""

    def __init__(self, text: str, exit_code: int) -> None:
        super().__init__(text)
        self.exit_code = exit_code


def _array(value: Any) -> numpy.ndarray:
    """An array of a NumPy array or of a torch tensor, wherever it lies; bfloat16 becomes float32, which holds it exactly."""
    if hasattr(value, "detach"):
        value = value.detach().cpu()
        if str(value.dtype) == "torch.bfloat16":
            value = value.float()
        value = value.numpy()
    array = numpy.asarray(value)
    if array.dtype.name not in _TYPES:
        raise TypeError(f"tensors of {array.dtype} cannot be stored")
    # ascontiguousarray would make a number a row.
    return numpy.asarray(array, order="C") if array.ndim == 0 else numpy.ascontiguousarray(array)


def write_safetensors(path: Union[str, os.PathLike], tensors: Mapping[str, Any]) -> None:
    """Tensors by name in the format safetensors."""
    arrays = {name: _array(value) for name, value in tensors.items()}
    header, end = {}, 0
    for name, array in arrays.items():
        header[name] = {"dtype": _TYPES[array.dtype.name], "shape": list(array.shape),
                        "data_offsets": [end, end + array.nbytes]}
        end += array.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    # Whole or not at all.
    temporary = f"{os.fspath(path)}.{os.getpid()}.tmp"
    try:
        with open(temporary, "wb") as file:
            file.write(struct.pack("<Q", len(text)) + text)
            for array in arrays.values():
                file.write(array.tobytes())
        os.replace(temporary, path)
    except BaseException:
        pathlib.Path(temporary).unlink(missing_ok=True)
        raise


def convert(source: Union[str, os.PathLike, Mapping[str, Any]], output: Union[str, os.PathLike], *,
            config: Optional[Mapping[str, Any]] = None, weights: str = "int8", activations: Optional[str] = None,
            max_segment: Optional[int] = None, tokenizer: Union[str, os.PathLike, None] = None,
            calibrate: Union[str, os.PathLike, None] = None, quality: bool = True, options: Sequence[str] = ()) -> dict:
    """Converts a checkpoint folder, or a state_dict with its configuration, and gives the converter's summary.

    `options` are further words for oxbow-convert, as its --help tells them.
    """
    words = [program("oxbow-convert")]
    with tempfile.TemporaryDirectory() as work:
        if isinstance(source, (str, os.PathLike)):
            if config is not None:
                raise TypeError("config goes with a state_dict; a folder has its own config.json")
            words.append(os.fspath(source))
        else:
            if config is None:
                raise TypeError("a state_dict needs its config, with model_type")
            write_safetensors(pathlib.Path(work) / "model.safetensors", source)
            (pathlib.Path(work) / "config.json").write_text(json.dumps(dict(config)))
            words.append(work)
        words += ["-o", os.fspath(output), "--weights", weights, "--json"]
        for name, value in (("activations", activations), ("max-segment", max_segment), ("tokenizer", tokenizer),
                            ("calibrate", calibrate)):
            if value is not None:
                words += [f"--{name}", str(os.fspath(value) if isinstance(value, os.PathLike) else value)]
        if not quality:
            words.append("--no-quality")
        # A path may be no text.
        result = subprocess.run([*words, *options], capture_output=True, encoding="utf-8", errors="replace",
                                stdin=subprocess.DEVNULL)
    if result.returncode != 0:
        lines = result.stderr.strip().splitlines()
        raise ConvertError(lines[-1] if lines else f"oxbow-convert ended with {result.returncode}", result.returncode)
    return json.loads(result.stdout)
