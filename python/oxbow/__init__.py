"""Long-context transformers over endless streams, in a memory that is fixed before the first token.

    import oxbow
    oxbow.convert("checkpoint", "model.oxb")
    model = oxbow.Model("model.oxb")
    session = model.session()
    logits = session.run(model.encode("In the beginning"))
    for piece in session.generate(" God", max_tokens=100):
        print(piece, end="", flush=True)
"""

from ._convert import ConvertError, convert, write_safetensors
from ._library import OxbowError, library
from ._model import Generator, Model, Session

_number = library.oxb_version()
__version__ = f"{_number // 10000}.{_number // 100 % 100}.{_number % 100}"
__all__ = ["ConvertError", "Generator", "Model", "OxbowError", "Session", "convert", "write_safetensors"]
