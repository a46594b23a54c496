# SPDX-License-Identifier: Apache-2.0
# Part of Trellis, an expression-graph PDE solver framework.
"""A deck in several files that include each other, with entries that later ones replace. Equations stay together: their
order names systems, and is that of results."""
import random
import re

LEVELS = ["aside.yaml", "deep.yaml", "beside.yaml", "top.yaml"]  # each wins over those before it
INCLUDES = {"top.yaml": ["aside.yaml", "beside.yaml"], "beside.yaml": ["deep.yaml"]}
TITLES = ["a title", "\\u00fcber: {all} # of \\\"it\\\"", "-", "  two\\nlines "]


def entries_of(text):
    """Key of the deck and text of an entry within it, or of all entries."""
    for block in re.split(r"^(?=\S)", text, flags=re.MULTILINE):
        key, _, rest = block.partition(":")
        if rest.startswith("\n") and key != "equations":
            for entry in re.split(r"^(?=  \S)", rest[1:], flags=re.MULTILINE):
                if entry.strip():
                    yield key, entry
        elif block.strip() and key != "trellis":
            yield key, block


def spoilt(entry):
    """The entry with formulas that nobody can read: another one has to replace them."""
    return re.sub(r'"[^"]*"(:?)', lambda found: found[0] if found[1] else '"no such( thing"', entry)


def write(seed, text, folder):
    """The path of the deck that includes the others."""
    rng = random.Random(seed)
    files = {name: {"title": [f'title: "{rng.choice(TITLES)}"\n']} for name in LEVELS}
    for key, entry in entries_of(text):
        at = rng.randrange(len(LEVELS))
        files[LEVELS[at]].setdefault(key, []).append(entry)
        if at > 0 and rng.random() < 0.5:
            files[LEVELS[rng.randrange(at)]].setdefault(key, []).append(spoilt(entry))
    for name, keys in files.items():
        parts = [("include", [f"include: {rng.choice([repr(INCLUDES[name]), INCLUDES[name][-1]])}\n"
                              if len(INCLUDES[name]) == 1 else f"include: {INCLUDES[name]!r}\n"])
                 ] if name in INCLUDES else []
        parts += keys.items()
        rng.shuffle(parts)
        body = "".join("".join(part) if part[0].startswith(f"{key}:") else f"{key}:\n{''.join(part)}"
                       for key, part in parts)
        (folder / name).write_text(("trellis: 1\n" if name == "top.yaml" or rng.random() < 0.5 else "") + body,
                                   encoding="utf-8")
    return folder / "top.yaml"
