#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Part of Trellis, an expression-graph PDE solver framework.
# ctest: timeout=300
"""The fenced blocks of the pages in docs/ work as printed, each page in a folder of its own.

c        with trl_plugin_entry: compiled to a plugin; else the text stands in a source that is compiled elsewhere yaml
with `trellis:`: a deck, checked and run for two steps; else a part of one, checked on top of the page's first deck, or,
on a page without a deck, the text stands in a deck of inputs/decks sh       run in order, by one shell per block;
output goes to the page's folder python   run if h5py is there, else only compiled console  a command after `$ `
(trellis, or a program of tests), then lines of its output, in order; numbers may differ, `...` stands for any lines
listing  the same with all lines of the output as they are; with TRL_WRITE_DOCS set, they are written to the page
formula  checked by tests/expressions/test_formula.c
"""
import importlib.util
import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(os.environ.get("TRELLIS_SOURCE", pathlib.Path(__file__).parents[2])).resolve()
BUILD = pathlib.Path(os.environ.get("TRELLIS_BUILD", ROOT / "build/release")).resolve()
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
COMPILED = ("inputs", "expressions", "spatialops",
            "tests/scheduler", "tests/spatialops", "tests/expressions", "tests/plugins")
C_FLAGS = ["-std=c17", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-ffp-contract=off", "-shared", "-fPIC"]


def run(command, folder):
    """Run a command; what is wrong with it, or None."""
    environment = dict(os.environ, PATH=f"{BUILD}:{BUILD}/tests:{os.environ['PATH']}")
    done = subprocess.run(command, cwd=folder, env=environment, text=True, capture_output=True)
    return None if done.returncode == 0 else f"exit code {done.returncode}\n{done.stdout}{done.stderr}"


def squeezed(text):
    """Text without what indentation and the ends of lines make of it."""
    return " ".join(text.split())


def stands_in(text, folder, patterns):
    sources = (path for pattern in patterns for path in folder.rglob(pattern))
    if any(squeezed(text) in squeezed(path.read_text(encoding="utf-8")) for path in sources):
        return None
    return f"this text stands in no {' or '.join(patterns)} of {folder.relative_to(ROOT)}/"


def check_c(text, page):
    name = re.search(r'trl_plugin_entry = \{.*?"(\w+)"', text, re.DOTALL)
    if not name:
        missing = [stands_in(text, ROOT / folder, ["*.c", "*.h"]) for folder in COMPILED]
        return missing[0] if all(missing) else None
    source = page.folder / f"{name[1]}.c"
    source.write_text(text, encoding="utf-8")
    folders = {
        path.parent for layer in ("scheduler", "spatialops", "expressions") for path in (ROOT / layer).rglob("trl_*.h")
    }
    includes = [f"-I{folder}" for folder in sorted(folders)]
    return run(["mpicc", *C_FLAGS, *includes, source.name, "-o", source.with_suffix(".so").name], page.folder)


def check_yaml(text, page):
    whole = re.search(r"^trellis:", text, re.MULTILINE)
    if not whole and not page.deck:
        return stands_in(text, ROOT / "inputs/decks", ["*.yaml"])
    deck = page.folder / ("deck.yaml" if whole else "part.yaml")
    deck.write_text(text if whole else f"trellis: 1\ninclude: {page.deck}\n{text}", encoding="utf-8")
    if whole and not page.deck:
        page.deck = deck.name
    wrong = run(["trellis", "check", deck.name], page.folder)
    return wrong or run(["trellis", "run", deck.name, "--steps", "2", "--quiet"], page.folder)


def check_sh(text, page):
    return run(["bash", "-euo", "pipefail", "-c", text], page.folder)


def check_python(text, page):
    if importlib.util.find_spec("h5py"):
        return run([sys.executable, "-c", text], page.folder)
    compile(text, str(page.path), "exec")
    return None


def check_console(text, page):
    lines = text.splitlines()
    if not lines[0].startswith("$ "):
        return "the first line of a console block is '$ ' and a command"
    environment = dict(os.environ, PATH=f"{BUILD}:{BUILD}/tests:{os.environ['PATH']}")
    done = subprocess.run(["bash", "-c", lines[0][2:]], cwd=page.folder, env=environment, text=True,
                          capture_output=True)

    def without_numbers(line):
        return re.sub(r"\d+(\.\d+)?(e[-+]\d+)?", "#", squeezed(line))

    printed = [without_numbers(line) for line in (done.stdout + done.stderr).splitlines()]
    at, anywhere = 0, False
    for line in lines[1:]:
        if line.strip() == "...":
            anywhere = True
            continue
        found = printed.index(without_numbers(line), at) if without_numbers(line) in printed[at:] else -1
        if found < 0 or (found > at and not anywhere):
            return f"'{lines[0][2:]}' does not print, at this place:\n{line}\nbut\n{done.stdout}{done.stderr}"
        at, anywhere = found + 1, False
    return None


def check_listing(text, page):
    command = text.splitlines()[0]
    if not command.startswith("$ "):
        return "the first line of a listing is '$ ' and a command"
    environment = dict(os.environ, PATH=f"{BUILD}:{os.environ['PATH']}")
    done = subprocess.run(["bash", "-o", "pipefail", "-c", command[2:]], cwd=page.folder, env=environment, text=True,
                          capture_output=True)
    printed = f"{command}\n{done.stdout}"
    if done.returncode != 0 or not done.stdout:
        return f"'{command[2:]}' ends with {done.returncode}\n{done.stdout}{done.stderr}"
    if printed == text:
        return None
    if os.environ.get("TRL_WRITE_DOCS"):
        page.text = page.text.replace(text, printed)
        return None
    return f"'{command[2:]}' prints\n{done.stdout}(set TRL_WRITE_DOCS to have that written to the page)"


class Page:
    """A page, its folder, and the name of its first deck."""

    def __init__(self, path):
        self.path, self.deck, self.text = path, None, path.read_text(encoding="utf-8")
        self.folder = pathlib.Path("docs") / path.stem
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        (self.folder / "inputs").symlink_to(ROOT / "inputs")


CHECKS = {"c": check_c, "yaml": check_yaml, "sh": check_sh, "python": check_python, "console": check_console,
          "listing": check_listing}


def check_gallery():
    """What is wrong with the gallery: decks without an entry, pictures that are missing or large."""
    text = (ROOT / "docs/gallery.md").read_text(encoding="utf-8")
    for deck in sorted((ROOT / "inputs/decks").glob("*.yaml")):
        picture = ROOT / f"docs/images/gallery/{deck.stem}.png"
        if f"\n## {deck.stem}\n" not in text or not picture.exists():
            yield (f"docs/gallery.md: no entry, or no picture, of the deck {deck.stem}; "
                   f"docs/gallery.py {deck.stem} makes them")
        elif picture.stat().st_size > 40 * 1024:
            yield (f"docs/images/gallery/{picture.name}: larger than 40 kB; "
                   f"docs/gallery.py {deck.stem} makes a smaller one")


def main():
    failures = 0
    for wrong in check_gallery():
        failures += 1
        print(wrong, file=sys.stderr)
    for path in sorted((ROOT / "docs").glob("*.md")):
        page = Page(path)
        text = page.text
        for block in FENCE.finditer(text):
            check = CHECKS.get(block[1])
            wrong = check(block[2], page) if check else None
            if wrong:
                failures += 1
                print(f"{path.relative_to(ROOT)}:{text.count(chr(10), 0, block.start()) + 1}: {wrong}", file=sys.stderr)
        if page.text != text:
            path.write_text(page.text, encoding="utf-8")
        for link in re.findall(r"\]\(([^):#]+)[^)]*\)", text):
            if not (path.parent / link).exists():
                failures += 1
                print(f"{path.relative_to(ROOT)}: a link to '{link}', which does not exist", file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
