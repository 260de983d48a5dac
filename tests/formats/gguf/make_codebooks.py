"""Writes host/ggml_codebooks.inc, the codebooks of ggml's IQ types, as its own Python library has them.

python make_codebooks.py        needs: pip install gguf==0.19.0
"""

import pathlib

from gguf import quants

TARGET = pathlib.Path(__file__).resolve().parents[3] / "host" / "ggml_codebooks.inc"
NAMES = {"IQ2_XXS": "kIq2XxsRows", "IQ2_XS": "kIq2XsRows", "IQ2_S": "kIq2SRows", "IQ3_XXS": "kIq3XxsRows", "IQ3_S": "kIq3SRows",
         "IQ1_S": "kIq1SRows"}
HEAD = """// Codebooks of ggml's IQ types, which are part of the format: rows of numbers that blocks name by their index. An element is its
// place in the list of values that its type has (host/ggml_codebooks.cc), two bits of eight elements or three bits of four, the
// first element lowest. Written by tests/formats/gguf/make_codebooks.py from the gguf package.
"""

lines = [HEAD]
for kind, name in NAMES.items():
    table = getattr(quants, kind)
    table.init_grid()
    values = [float(v) for v in table.grid_map]
    bits = 2 if len(values) <= 4 else 3
    rows = table.grid.reshape(table.grid_shape)
    packed = [sum(values.index(float(v)) << (bits * i) for i, v in enumerate(row)) for row in rows]
    lines.append(f"constexpr uint16_t {name}[{len(packed)}] = {{")
    line = "   "
    for number in packed:
        text = f" {number:#x},"
        if len(line) + len(text) > 124:
            lines.append(line)
            line = "   "
        line += text
    lines += [line, "};"]
TARGET.write_text("\n".join(lines) + "\n")
