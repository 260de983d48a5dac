"""Renders templates/ and snippets.json with jinja2, set up as transformers does it, and records what comes out.

Usage: python make.py       writes templates/*.json and the second column of snippets.json
"""

import json
import pathlib

import jinja2
import jinja2.ext
import jinja2.nodes
import jinja2.sandbox

HERE = pathlib.Path(__file__).parent
TOKENS = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}


class Generation(jinja2.ext.Extension):
    """transformers has this tag to find the tokens an assistant said; it prints what is in it."""

    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_print"), [], [], body).set_lineno(line)

    def _print(self, caller):
        return caller()


def raise_exception(message):
    raise jinja2.exceptions.TemplateError(message)


def environment():
    env = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols]
    )
    env.filters["tojson"] = lambda value: json.dumps(value, ensure_ascii=False)
    env.globals["raise_exception"] = raise_exception
    return env


def render(text, messages):
    return environment().from_string(text).render(
        messages=messages, tools=None, documents=None, add_generation_prompt=True, **TOKENS
    )


def messages(*texts, system=None):
    """Of the user and the assistant in turn."""
    turns = [{"role": ["user", "assistant"][i % 2], "content": text} for i, text in enumerate(texts)]
    return turns if system is None else [{"role": "system", "content": system}] + turns


CHATS = [
    messages("One?", "Eins.", "Two?"),
    messages("One?", "Eins.", "Two?", "Zwei.", "Three?"),
    messages("One?", system="Count."),
    messages("One?", "Eins.", "Two?", "Zwei.", "Three?", system="Count."),
    messages(" One? \n"),
]


def chat(text, turns):
    """What the template makes of it; null when it refuses."""
    try:
        return render(text, turns)
    except jinja2.exceptions.TemplateError:
        return None


def main():
    question = "Which way does the water go?"
    for path in sorted((HERE / "templates").glob("*.jinja")):
        text = path.read_bytes().decode()
        before, after = render(text, [{"role": "user", "content": question}]).split(question)
        record = {"before": before, "after": after, "chats": [chat(text, messages) for messages in CHATS]}
        expected = json.dumps(record, ensure_ascii=False, indent=1)
        path.with_suffix(".json").write_text(expected + "\n")

    out = []
    turn = {"role": "user", "content": " Hi you "}
    for text, _ in json.loads((HERE / "snippets.json").read_text()):
        try:
            out.append([text, render(text, [turn, turn, turn])])
        except Exception:  # whatever it is, Python's or Jinja's: the template cannot be rendered
            out.append([text, None])
    lines = ",\n".join(json.dumps(pair, ensure_ascii=True) for pair in out)
    (HERE / "snippets.json").write_text("[\n" + lines + "\n]\n")


if __name__ == "__main__":
    main()
