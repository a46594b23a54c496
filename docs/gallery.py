#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Part of Trellis, an expression-graph PDE solver framework.
"""Write docs/gallery.md and its pictures: docs/gallery.py [--trellis PROGRAM] [DECK...]

Each deck of inputs/decks, or those named, is run as it is, with compiled kernels, and its last output is drawn; a line
`# gallery: ...` near its top holds other options of `trellis plot`. Entries of decks that were not named stay, and one
that is missing is made.
"""
import argparse
import json
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
DECKS = ROOT / "inputs/decks"
PAGE = ROOT / "docs/gallery.md"
IMAGES = ROOT / "docs/images/gallery"
MOST_BYTES = 40 * 1024
SIZES = range(240, 80, -8)  # pixels: the first that makes a picture small enough
HEAD = """# Gallery

Every deck of `inputs/decks`, with its last output and the time that its loop took, without output. `docs/gallery.py` \
wrote this page
and drew its pictures; it ran on {machine}.
"""


def directive(text, key):
    """What follows `# key:` in the first ten lines of a deck."""
    lines = [line.split(":", 1)[1].strip() for line in text.splitlines()[:10] if line.startswith(f"# {key}:")]
    return lines[0] if lines else ""


def description(text):
    """The comment at the top of a deck."""
    lines = []
    for line in text.splitlines():
        if not line.startswith("#"):
            break
        if not re.match(r"# (ctest|gallery):", line):
            lines.append(line.lstrip("# "))
    return " ".join(lines)


def section(text, key):
    """The lines of a key at the top level of a deck, without empty ones at its end."""
    found = re.search(rf"^{key}:.*\n(?:(?:[ #].*)?\n)*", text, re.MULTILINE)
    return found[0].rstrip() + "\n" if found else ""


def run(command):
    done = subprocess.run(command, text=True, capture_output=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{shlex.join(map(str, command))}\nended with {done.returncode}:\n{done.stderr}")
    return done.stdout


def run_deck(trellis, name, folder):
    """Run a deck, and before it the one whose output it reads; the report."""
    text = (DECKS / f"{name}.yaml").read_text(encoding="utf-8")
    settings = ["--set", f"output.directory={folder / name}", "--set", "run.compile=always", "--quiet"]
    before = re.search(r"after=(\w+)", directive(text, "ctest"))
    if before:
        run_deck(trellis, before[1], folder)
        arguments = re.search(r'args="([^"]*)"', directive(text, "ctest"))
        settings += shlex.split(arguments[1].replace("{after}", str(folder / before[1])))
    run([trellis, "run", DECKS / f"{name}.yaml", *settings])
    return json.loads((folder / name / "report.json").read_text(encoding="utf-8"))


def draw(trellis, name, folder):
    """Draw the picture of a run, as large as the limit on its bytes allows."""
    options = shlex.split(directive((DECKS / f"{name}.yaml").read_text(encoding="utf-8"), "gallery"))
    picture = IMAGES / f"{name}.png"
    for size in SIZES:
        run([trellis, "plot", folder / name, "--size", str(size), "-o", picture, *options])
        if picture.stat().st_size <= MOST_BYTES:
            return
    sys.exit(f"{picture} has {picture.stat().st_size} bytes, more than {MOST_BYTES}")


def entry(trellis, name):
    """The text about a deck, after it was run and drawn."""
    text = (DECKS / f"{name}.yaml").read_text(encoding="utf-8")
    print(name, flush=True)
    with tempfile.TemporaryDirectory() as folder:
        report = run_deck(trellis, name, pathlib.Path(folder))
        draw(trellis, name, pathlib.Path(folder))
    cells = " x ".join(str(n) for n in report["grid"]["cells"])
    threads = f"{report['threads']} thread{'s' if report['threads'] > 1 else ''}"
    shown = section(text, "equations") or section(text, "expressions")
    return (
        f"## {name}\n\n![{name}](images/gallery/{name}.png)\n\n{description(text)}\n\n"
        f"[The deck](../inputs/decks/{name}.yaml): {cells} cells, "
        f"{report['steps_run']} steps in {report['wall']['loop']:.2g} s on {threads}.\n\n"
        f"```yaml\n{shown}```\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trellis", default=str(ROOT / "build/release/trellis"), help="the program")
    parser.add_argument("decks", nargs="*", metavar="DECK", help="names without ending; none: all")
    options = parser.parse_args()
    names = sorted(path.stem for path in DECKS.glob("*.yaml"))
    unknown = set(options.decks) - set(names)
    if unknown:
        sys.exit(f"no deck {', '.join(sorted(unknown))} in {DECKS}")
    old = {}
    if options.decks and PAGE.exists():
        for part in re.split(r"^(?=## )", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
            old[part.split("\n", 1)[0][3:]] = part.rstrip() + "\n"
    IMAGES.mkdir(parents=True, exist_ok=True)
    machine = re.search(r"^processor +(.*?), (\d+) cores", run([options.trellis, "info"]), re.MULTILINE)
    parts = [HEAD.format(machine=f"{machine[2]} cores of {machine[1]}")]
    for name in names:
        redo = not options.decks or name in options.decks or name not in old
        parts.append(entry(options.trellis, name) if redo else old[name])
    PAGE.write_text("\n".join(parts), encoding="utf-8")
    for picture in IMAGES.glob("*.png"):
        if picture.stem not in names:
            picture.unlink()


if __name__ == "__main__":
    main()
