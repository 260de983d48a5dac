"""Functions and constants of oxbow.h, as the checks of this folder want them."""

import re


def read(path):
    with open(path, encoding="utf-8") as file:
        return re.sub(r"/\*.*?\*/", " ", file.read(), flags=re.S)


def functions(text):
    """Name -> (what it returns, [(type, name)])."""
    found = {}
    for returns, name, parameters in re.findall(r"OXB_API ([^;(]*?)\b(oxb_\w+)\(([^;]*?)\);", text):
        split = []
        for parameter in re.sub(r"\s+", " ", parameters).split(","):
            match = re.fullmatch(r"(.*?[ *])(\w+)", parameter.strip())
            if match and parameter.strip() != "void":
                split.append((match.group(1).strip(), match.group(2)))
        found[name] = (returns.strip(), split)
    return found


def constants(text):
    """Name -> number, of all enumerations and of macros that are a number, but for the version's."""
    found = {name: int(number)
             for body in re.findall(r"enum \{(.*?)\}", text, flags=re.S)
             for name, number in re.findall(r"(OXB_[A-Z0-9_]+) = (\d+)", body)}
    found.update((name, int(number)) for name, number in re.findall(r"^#define (OXB_\w+) +(\d+)$", text, flags=re.M)
                 if not name.startswith("OXB_VERSION_"))
    return found


def enums(text):
    """Name of an enumeration's type -> {constant: number}."""
    return {name: {constant: int(number) for constant, number in re.findall(r"(OXB_[A-Z0-9_]+) = (\d+)", body)}
            for name, body in re.findall(r"typedef int32_t (oxb_\w+);\s*enum \{(.*?)\}", text, flags=re.S)}


def structs(text):
    """Name of each struct that begins with its size -> its fields, as 'type name'."""
    found = {name: [re.sub(r"\s+", " ", field).strip() for field in body.split(";") if field.strip()]
             for body, name in re.findall(r"typedef struct \w+ \{(.*?)\}\s*(oxb_\w+);", text, flags=re.S)}
    return {name: fields for name, fields in found.items() if fields[0] == "size_t size"}


def field_name(field):
    """'char text[256]' -> text."""
    return re.search(r"(\w+)(\[\d+\])?$", field).group(1)
