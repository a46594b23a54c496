#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Part of Trellis, an expression-graph PDE solver framework.
# ctest: timeout=300
"""What a deck says never reaches a compiler: names that mean something in C change no character of any kernel, text
that is no name is refused wherever it stands, and the source of kernels consists of words of the emitter's own."""
import json
import os
import pathlib
import re
import subprocess
import sys

import random
import random_decks
import refusals
import test_bits

TRELLIS = os.environ.get("TRELLIS", "trellis")
LONG = "TRL_TEST_LONG" in os.environ
DECK = """trellis: 1
title: @title
grid: {cells: [9, 7]}
parameters: {@parameter: 0.5}
stencils: {@stencil: {to: @location, points: [[[1, 0], 0.25], [[0, -1], @weight]]}}
expressions:
  @expression: {formula: @formula, parameters: {@local: 2}}
  v: [@component, 0]
equations:
  @equation: {initial: @initial, ddt: @ddt, exact: @exact, mask: @mask, boundary: {
    x-: {dirichlet: @side}, x+: [{where: @where, neumann: 0}, {outflow: true}],
    y-: {expression: @expression}, y+: {robin: {a: 1, b: 1, c: @robin}}}}
  @member: {for: {@index: 1..2}, initial: 0, ddt: "1"}
time: {method: @method, dt: 1e-3, steps: 1}
output: {directory: @directory, series: {every: {steps: 1}, values: {@series: @value}}}
"""
# Where a name is defined, with the neutral one; uses follow it.
NAMES = {
    "parameter": "kappa", "stencil": "wide", "expression": "edge", "local": "two", "equation": "u", "index": "i",
    "series": "mean"
}
RESERVED_IN_C = [
    "system", "main", "double", "v0", "in0", "call", "grid", "trl_kernel", "trl_fn_sin", "asm", "__attribute__",
    "TRL_BODY", "_"
]
NO_NAMES = [
    "*/", "/*", "//", '"', "'", "\\", "a b", "a;b", "$(touch pwned)", "`touch pwned`", "\n#include </etc/passwd>\n",
    "??/", "%s%n", "a.b", "1a", "{", "a\u00e9", "*/ system(0); /*", '");system("touch pwned', "a-",
    "__attribute__((constructor))"
]


def deck_text(changed):
    """The deck with some of its parts changed."""
    part = dict(NAMES, title="a deck", location="cell", weight="0.1", method="euler", directory="out")
    part.update({key: value for key, value in changed.items() if key in NAMES})
    p = part
    part.update(
        formula=f"{p['local']}*0.1*x", component="0.5", initial="sin(3*x)", side="0.1*t", where="y > 0.4", exact="1",
        mask="x > 0.1", robin="0.1",
        ddt=f"{p['parameter']}*{p['stencil']}({p['equation']}) - {p['expression']}"
        f" - div(advective_flux({p['equation']}, v))",
        member="w{" + p["index"] + "}", value=f"integral({p['equation']})")
    part.update(changed)
    return re.sub(r"@(\w+)", lambda found: json.dumps(part[found[1]]), DECK)


def kernels(name, text, device="cpu"):
    """The way `trellis kernels` ends, and its text without comments."""
    path = pathlib.Path(name)
    path.write_text(text, encoding="utf-8")
    plugins = os.path.join(os.environ["TRELLIS_BUILD"], "test_plugins")
    done = subprocess.run([TRELLIS, "kernels", str(path), "--device", device, "--plugin-path", plugins],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=100)
    return done.returncode, re.sub(r"/\*.*?\*/", "", done.stdout, flags=re.DOTALL), done.stderr


def fail(message):
    sys.exit(f"{message}\n(in {pathlib.Path().resolve()})")


def check_names(expected):
    """All names at once, then in every place of its own."""
    for word in RESERVED_IN_C:
        changes = [{key: f"{word}{i}" if word != "_" else "_" * (i + 2)
                    for i, key in enumerate(NAMES)}] + [{key: word} for key in NAMES]
        for changed in changes if word == "double" or LONG and word == "system" else changes[: 2 if LONG else 1]:
            status, text, said = kernels("named.yaml", deck_text(changed))
            if status != 0 or text != expected:
                fail(f"{changed}: the names of a deck change its kernels, or are refused\n{said}")


def check_no_names():
    refused = 0
    places = [key for key in NAMES if key != "series"]  # that is a heading of a table, no name in formulas
    places += ["location", "weight", "formula", "side", "ddt", "where", "mask", "method", "value", "component"]
    for number, text in enumerate(NO_NAMES):  # the worst ones in every place, the others in a few
        for key in places if text in (
                "*/", '"') else [places[(5 * number + 3 * i) % len(places)] for i in range(4 if LONG else 2)]:
            status, _, said = kernels("unnamed.yaml", deck_text({key: text}))
            if status != 2 or "unnamed.yaml:" not in said:
                fail(f"{text!r} as {key} ends with {status}, and should be refused with its place\n{said}")
            refused += 1
    if pathlib.Path("pwned").exists():
        fail("a command in a deck was run")
    return refused


def check_free_text(expected):
    """What may be any text has no part in kernels."""
    for text in NO_NAMES:
        if "\n" not in text:
            status, found, said = kernels("free.yaml", deck_text({"title": text}))
            if status != 0 or found != expected:
                fail(f"the title {text!r} changes the kernels, or is refused\n{said}")


# The emitter's own words: values, rows, inputs and outputs by number, members of a call, functions of its own, and some
# of C.
WORDS = re.compile(
    r"(?:v|p|q|a|b|c|g|k|n|s|r|t|y|z|at|lo|hi|in|out|inside|kept|shared|group|number)\d+(?:_(?:[yz]|row))?|"
    r"(?:here|below|above|n[xyz])\d+|"
    r"trl_(?:kernel|fn|limiter|lanes)_?\w*|"
    r"TRL_KERNEL_\w+|TRL_BODY|TRL_OWN|__builtin_fabs|x|y|z|n|i|j|k|begin|end|part|lanes|last|first|"
    r"rest|stop|interleave|excess|sums|call|inside|FEW|MANY|grid|arrays?|rows?|value|number|found|"
    r"input|output|at|stride|scalar|lo|hi|block|blockIdx|blockDim|threadIdx|planes|streaming|ahead|"
    r"r|total|merged|merges|scalars|from|to|share|extreme|false|across|above|gridDim|plane|left|"
    r"here|point|auto|u|p|nonfinite|cells|room|gathered|low|late|const|double|char|unsigned|long|int|void|for|if|else|"
    r"break|continue|return|extern|C|__\w+__|0x[0-9a-f.]+(?:p[+-]?\d+|ull)?|\d+(?:\.\d+)?"
)


def check_words():
    """The source of random decks consists of these words and of operators."""
    words = 0
    for number in range(6):
        text, _, _ = random_decks.write(random.Random(number), "rk4", flat=True)
        text = test_bits.without_receivers(text)
        if "held.nc" in text:
            test_bits.write_held(TRELLIS, text, pathlib.Path())
        for device in ("cpu", "gpu"):
            status, source, said = kernels("random.yaml", text, device)
            if status == 2 and not refusals.unexpected(said):
                continue
            if status != 0:
                fail(f"random deck {number}: {said}")
            for word in re.findall(r"0x[\da-f.]+(?:p[+-]?\d+|ull)?|\d[\w.]*|[A-Za-z_]\w*", source):
                words += 1
                if not WORDS.fullmatch(word):
                    fail(f"random deck {number}, {device}: '{word}' is no word of the emitter")
            strange = re.search(r"[^\w\s.+\-*/%=<>!&|^~?:;,(){}\[\]]", source.replace('extern "C"', ""))
            if strange:
                fail(f"random deck {number}, {device}: {strange[0]!r} in the source")
    return words


def main():
    status, expected, said = kernels("plain.yaml", deck_text({}))
    if status != 0 or "trl_kernel" not in expected:
        fail(f"the deck itself ends with {status}\n{said}")
    check_names(expected)
    refused = check_no_names()
    check_free_text(expected)
    print(f"{len(RESERVED_IN_C)} words of C as names, {refused} texts that are none refused, "
          f"{check_words()} words of kernels known")


if __name__ == "__main__":
    main()
