#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Part of Trellis, an expression-graph PDE solver framework.
# ctest: timeout=300
"""The rules of CONTRIBUTING.md that a program can check.

Each function whose name begins with `rule_` yields the places that break one rule, as text. The build folder
(TRELLIS_BUILD) supplies compiler flags and libraries; without it the rules that need them are skipped.
"""
import concurrent.futures
import functools
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

ROOT = pathlib.Path(os.environ.get("TRELLIS_SOURCE", pathlib.Path(__file__).parents[2])).resolve()
BUILD = pathlib.Path(os.environ.get("TRELLIS_BUILD", ROOT / "build/release")).resolve()
LAYERS = ("scheduler", "spatialops", "expressions", "solvers", "inputs")
FILE_LINES = 600
HEADER_LINES = 250
COLUMNS = 120
AT_ROOT = {"CMakeLists.txt", "CMakePresets.json", "CONTRIBUTING.md", "LICENSE", "README.md", "dev"}
AT_ROOT |= {"cmake", "docs", "expressions", "inputs", "scheduler", "solvers", "spatialops", "tests"}
FUNCTION_LINES = 80
# A trl_x and a trli_x that are outside and inside of one object.
TWINS = {
    "ast_number",  # checks its arguments, then calls the other
    "ast_visit_names",  # likewise
    "resource",  # a number, and what it stands for
}
LICENCE = ("SPDX-License-Identifier: Apache-2.0", "Part of Trellis, an expression-graph PDE solver framework.")


def files(*patterns, folders=LAYERS):
    """Files below the folders that match one of the patterns."""
    return sorted(path for folder in folders for pattern in patterns for path in (ROOT / folder).rglob(pattern))


def name(path):
    return path.relative_to(ROOT).as_posix()


def layer_of(path):
    return LAYERS.index(path.relative_to(ROOT).parts[0])


@functools.cache
def code_of(path):
    """The text of a C source with comments and string literals blanked, line numbers kept."""

    def blank(match):
        return re.sub(r"[^\n]", " ", match.group())

    pattern = r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\''
    return re.sub(pattern, blank, path.read_text(encoding="utf-8"), flags=re.DOTALL)


def rule_licence():
    """Every source begins with the licence."""
    sources = files("*.[ch]", "*.cu", folders=LAYERS + ("tests",))
    scripts = files("*.py", "*.sh", "*.cmake", folders=("tests", "cmake"))
    scripts += [ROOT / "CMakeLists.txt", ROOT / "dev", ROOT / ".ci/run"]
    for path in sources + scripts:
        if "templates" in path.parts:
            continue
        head = path.read_text(encoding="utf-8").splitlines()[:3]
        for line in LICENCE:
            if not any(line in text for text in head):
                yield f"{name(path)}:1: the first lines lack '{line}'"


def rule_layers():
    """A layer includes its own headers and those of the layers before it."""
    header_layer = {path.name: layer_of(path) for path in files("*.h") if "templates" not in path.parts}
    for path in files("*.[ch]", "*.cu"):
        if "templates" in path.parts:
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            include = re.match(r'\s*#\s*include\s*[<"]([^>"]+)[>"]', line)
            if include and header_layer.get(pathlib.Path(include[1]).name, -1) > layer_of(path):
                yield f"{name(path)}:{number}: includes {include[1]}, which belongs to a later layer"


# Files that may call the C library's allocator, with the reason.
RAW_MEMORY = {
    "scheduler/memory.c": "the allocator",
    "scheduler/context.c": "the context, before there is one",
    "scheduler/diagnostic.c": "messages, which say that memory is out",
    "inputs/command.c": "prints these messages",
}


def rule_memory():
    """Memory comes from the project's allocator, so that it is counted and meets the limit."""
    allocating = "malloc|calloc|realloc|reallocarray|strn?dup|aligned_alloc|posix_memalign|v?asprintf|"
    allocating += "open_memstream|scandir"
    calls = re.compile(rf"(?<![\w.>])(?:{allocating}|free)\(|\bgetcwd\(NULL")
    for path in files("*.[ch]"):
        if name(path) in RAW_MEMORY:
            continue
        for number, line in enumerate(code_of(path).splitlines(), 1):
            if calls.search(line):
                yield (f"{name(path)}:{number}: memory of the C library; "
                       "use trli_new, trli_memstream or trl_memory_alloc")


# Files that resize memory by themselves, with the reason.
RESIZED = {
    "scheduler/memory.c": "the growable list",
    "scheduler/memstream.c": "a growing text",
    "expressions/ir/ir_walk.c": "tables by value of the graph, grown with it",
    "expressions/ir/derivative.c": "likewise",
    "expressions/front/partials.c": "likewise",
    "expressions/program/program.c": "likewise",
    "expressions/passes/cost.c": "likewise",
    "expressions/passes/slots_colour.c": "arrays that share one count",
    "solvers/sensitivity.c": "likewise",
    "inputs/output_fields.c": "a text of known length",
}


def rule_lists():
    """Lists grow through one helper."""
    for path in files("*.c"):
        for number, line in enumerate(code_of(path).splitlines(), 1):
            if re.search(r"\btrli_resize\(", line) and name(path) not in RESIZED:
                yield f"{name(path)}:{number}: resizes memory; lists grow by trli_make_room or trli_list_reserve"


# The sub-folders of expressions/, each with those that it may know beside itself.
_BEFORE = ("lang", "plugin", "ir", "program")
FOLDERS = {
    "lang": (),
    "plugin": _BEFORE[:1],
    "ir": _BEFORE[:2],
    "program": _BEFORE[:3],
    "front": _BEFORE,
    "passes": _BEFORE,
    "backend": _BEFORE,
    "run": _BEFORE + ("front", "passes", "backend"),
}


def folder_of(path):
    return path.relative_to(ROOT / "expressions").parts[0]


def circles(edges):
    """The sets of nodes that reach each other, of more than one node; edges: node -> nodes."""
    index, low, stack, found = {}, {}, [], []

    def visit(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in edges.get(node, ()):
            if other not in index:
                visit(other)
            if other in stack:
                low[node] = min(low[node], low[other])
        if low[node] == index[node]:
            at = stack.index(node)
            if len(stack) - at > 1:
                found.append(sorted(stack[at:]))
            del stack[at:]

    for node in list(edges):
        if node not in index:
            visit(node)
    return found


def rule_circles():
    """Headers of no layer include each other in a circle."""
    headers = {path.name: path for path in files("*.h") if "templates" not in path.parts}
    edges = {}
    for path in headers.values():
        text = path.read_text(encoding="utf-8")
        for include in re.findall(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', text, re.MULTILINE):
            if include in headers:
                edges.setdefault(name(path), set()).add(name(headers[include]))
    for circle in circles(edges):
        yield f"headers include each other in a circle: {', '.join(circle)}"


def rule_folders():
    """Files of expressions/ include headers of their own sub-folder and of those before it."""
    headers = {path.name: path for path in files("*.h", folders=("expressions",))}
    for path in files("*.[ch]", folders=("expressions",)):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            include = re.match(r'\s*#\s*include\s*[<"]([^>"]+)[>"]', line)
            header = headers.get(include[1]) if include else None
            if not header:
                continue
            if folder_of(header) not in (folder_of(path), *FOLDERS[folder_of(path)]):
                yield (f"{name(path)}:{number}: includes {include[1]} of {folder_of(header)}/, "
                       f"which {folder_of(path)}/ does not know")


def rule_calls():
    """Files of expressions/ call those of their own sub-folder and of those before it, and not in a circle."""
    objects = BUILD / "CMakeFiles/trl_expressions.dir/expressions"
    sources = {objects / (path.relative_to(ROOT / "expressions").as_posix() + ".o"): path
               for path in files("*.c", folders=("expressions",))}
    if not BUILD.exists():
        return
    missing = [name(path) for compiled, path in sources.items() if not compiled.exists()]
    if missing:
        yield f"{missing[0]}: not compiled in {BUILD}, so nobody looked for circles of calls: build first"
        return
    done = subprocess.run(["nm", "--print-file-name", *map(str, sources)], capture_output=True, text=True, check=True)
    defined, used = {}, {path: set() for path in sources.values()}
    for line in done.stdout.splitlines():
        compiled, _, words = line.rpartition(":")
        kind, symbol = words.split()[-2:]
        if kind == "U":
            used[sources[pathlib.Path(compiled)]].add(symbol)
        elif kind in "TRDB":
            defined[symbol] = sources[pathlib.Path(compiled)]
    edges = {}
    for path, symbols in used.items():
        for symbol in sorted(symbols & defined.keys()):
            other = defined[symbol]
            edges.setdefault(name(path), set()).add(name(other))
            if folder_of(other) not in (folder_of(path), *FOLDERS[folder_of(path)]):
                yield (f"{name(path)}: uses {symbol} of {name(other)}, "
                       f"and {folder_of(path)}/ does not know {folder_of(other)}/")
    for circle in circles(edges):
        yield f"files call each other in a circle: {', '.join(circle)}"


def rule_opaque():
    """passes/ and run/ know plugins by trl_plugin.h and program/opaque_impl.h only: no entries, descriptors or
    registry."""
    plugin = {path.name for path in files("*.h", folders=("expressions/plugin",))} - {"trl_plugin.h"}
    words = re.compile(
        r"\b(trl_expression_entry|trl_stencil_entry|trl_expr_type|trli?_registry\w*|trli_entry\w*|front\s*->)")
    for path in files("*.[ch]", folders=("expressions/passes", "expressions/run")):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            include = re.match(r'\s*#\s*include\s*[<"]([^>"]+)[>"]', line)
            if include and include[1] in plugin:
                yield (f"{name(path)}:{number}: includes {include[1]}; "
                       f"{folder_of(path)}/ knows opaque expressions by opaque_impl.h")
        for number, line in enumerate(code_of(path).splitlines(), 1):
            if found := words.search(line):
                yield (f"{name(path)}:{number}: uses {found[1]}; "
                       f"{folder_of(path)}/ knows opaque expressions by opaque_impl.h")


def rule_cuda():
    """CUDA headers are included in .cu files only."""
    for path in files("*.[ch]", folders=LAYERS + ("tests",)):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if re.match(r'\s*#\s*include\s*[<"](cuda|cublas|cusparse|cusolver|nvrtc|nvToolsExt)', line):
                yield f"{name(path)}:{number}: a CUDA header outside a .cu file"


def rule_silence():
    """Only inputs/ prints or exits."""
    pattern = re.compile(r"\b(v?printf|puts|putchar|perror|exit|_Exit|quick_exit|abort|stdout|stderr)\b")
    for path in files("*.[ch]", "*.cu", folders=LAYERS[:-1]):
        code = re.sub(r"format\(printf", "format(      ", code_of(path))
        for number, line in enumerate(code.splitlines(), 1):
            if found := pattern.search(line):
                yield f"{name(path)}:{number}: '{found[1]}': the library never prints or exits"


def rule_files():
    """docs/files.md names each source file once, below the heading of its folder, and no file that is missing."""
    page, folder, named = ROOT / "docs/files.md", None, []
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        if line.startswith("## "):
            folder = line[3:].rstrip("/")
        for file in re.findall(r"`([\w@./-]+\.(?:c|cu|h|py))`", line):
            layer = folder.split("/")[0].split()[-1] if folder else ""
            places = [ROOT / (folder or "") / file, ROOT / "tests" / layer / file, ROOT / "tests/solvers" / file]
            found = next((path for path in places if path.exists()), None)
            if not found:
                yield f"{name(page)}:{number}: names {file}, which is not in {folder}/"
            named.append(found)
    for path in files("*.c", "*.cu"):
        if (times := named.count(path)) != 1:
            yield f"{name(page)}: names {name(path)} {times} times; say once, in a line, what it does"


def rule_root():
    """Of the root's files and folders, git keeps those that belong there: none that a run left behind."""
    kept = subprocess.run(["git", "ls-files", "--cached"], cwd=ROOT, capture_output=True, text=True, check=False)
    for entry in sorted({file.split("/")[0] for file in kept.stdout.splitlines()}):
        if not entry.startswith(".") and entry not in AT_ROOT:
            yield f"{entry}: does not belong to the root"


def rule_collectives():
    """Collective calls of MPI are those of agree.c, each behind an agreement, and few that say why they need none."""
    pattern = re.compile(
        r"\bMPI_(Allreduce|Reduce|Bcast|Barrier|Gather|Allgather|Alltoall|Scan|Comm_dup|Comm_split)\w*")
    exempt = {
        "scheduler/agree.c",
        "scheduler/context.c",  # before there is a context
        "scheduler/topology.c",  # likewise
        "scheduler/diagnostic.c",  # a part of the agreement
        "spatialops/exchange.c",  # when an exchange is destroyed, which all ranks do
    }
    for path in files("*.[ch]", "*.cu"):
        for number, line in enumerate(code_of(path).splitlines(), 1):
            if (found := pattern.search(line)) and name(path) not in exempt:
                yield (f"{name(path)}:{number}: {found[0]}: a rank that failed before does not come to it; "
                       "use trli_allreduce, ...")


def rule_length():
    """Files below 600 lines, functions of at most 80."""
    for path in files("*.[ch]", "*.cu", "*.py", "*.sh", folders=LAYERS + ("tests",)):
        lines = code_of(path).splitlines() if path.suffix in (".c", ".h", ".cu") else path.read_text().splitlines()
        if len(lines) >= FILE_LINES:
            yield f"{name(path)}: {len(lines)} lines; split it below {FILE_LINES}"
        start = None
        for number, line in enumerate(lines, 1):
            if line == "{":
                start = number
            elif line.startswith("}") and start:
                if number - start + 1 > FUNCTION_LINES:
                    yield f"{name(path)}:{start}: a function of {number - start + 1} lines; {FUNCTION_LINES} at most"
                start = None


def rule_header_length():
    """Internal headers have one topic: at most 250 lines."""
    for path in files("*_impl.h"):
        lines = len(path.read_text(encoding="utf-8").splitlines())
        if lines > HEADER_LINES:
            yield f"{name(path)}: {lines} lines; an internal header has {HEADER_LINES} at most, give each topic one"


def rule_columns():
    """No line of a source or a script is longer than 120 columns; clang-format leaves comments as they are."""
    scripts = files("*.py", "*.sh", "*.bash", folders=LAYERS + ("tests", "docs"))
    for path in files("*.[ch]", "*.cu", folders=LAYERS + ("tests",)) + scripts:
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if len(line) > COLUMNS:
                yield f"{name(path)}:{number}: {len(line)} columns; wrap it at {COLUMNS}"


def rule_references():
    """Sources name no document that is not in the repository."""
    for path in files("*.[ch]", "*.cu", "*.py", "*.sh", folders=LAYERS + ("tests",)):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if re.search(r"\binput[.]md\b", line):
                yield f"{name(path)}:{number}: refers to a document that is not here; say what holds"


def defined_names():
    """Where each type and function trl_x and trli_x is defined or declared: {name: {(kind, file)}}. An opaque struct
    counts where it has members."""
    opened = re.compile(r"\b(?:struct|enum|union)\s+(trli?_\w+)\s*\{")
    closed = re.compile(r"^\}\s*(trli?_\w+)\s*;", re.MULTILINE)
    alias = re.compile(r"\btypedef\s[^;{}()]*?\b(trli?_\w+)\s*;|\btypedef\s[^;{}]*?\(\*\s*(trli?_\w+)\)")
    function = re.compile(r"^[a-zA-Z][\w \t*]*?\b(trli?_\w+)\(", re.MULTILINE)
    found = {}
    for path in files("*.h"):
        if "templates" in path.parts:
            continue
        code = code_of(path)
        for pattern, kind in ((opened, "members"), (closed, "members"), (alias, "name"), (function, "function")):
            for match in pattern.finditer(code):
                found.setdefault(next(filter(None, match.groups())), set()).add((kind, name(path)))
    return found


def rule_twins():
    """A name means one thing: trl_x and trli_x share x only as outside and inside of one object, and each type is
    defined once."""
    found = defined_names()
    for outside in sorted(found):
        inside = outside.replace("trl_", "trli_", 1)
        if outside.startswith("trl_") and inside in found and outside[4:] not in TWINS:
            places = sorted({path for _, path in found[inside]})
            yield (f"{places[0]}: {inside} shares its name with {outside}, another thing: "
                   "rename it, or add the pair to TWINS")
        places = sorted({path for kind, path in found[outside] if kind == "members"})
        if len(places) > 1:
            yield f"{places[1]}: {outside} is defined in {places[0]}, too"
    for twin in sorted(TWINS):
        if f"trl_{twin}" not in found or f"trli_{twin}" not in found:
            yield f"tests/rules: '{twin}' is no pair any more: remove it from TWINS"


def rule_format():
    """Sources are as clang-format 14 leaves them."""
    tool = shutil.which("clang-format")
    if not tool or "version 14." not in subprocess.run([tool, "--version"], capture_output=True, text=True).stdout:
        return
    sources = [
        str(path) for path in files("*.[ch]", "*.cu", folders=LAYERS + ("tests", )) if "templates" not in path.parts
    ]
    done = subprocess.run([tool, "--dry-run", "-Werror", f"--style=file:{ROOT}/.clang-format"] + sources,
                          capture_output=True, text=True)
    wrong = sorted(set(re.findall(r"^(\S+?):\d+:\d+: error", done.stderr, re.MULTILINE)))
    for path in wrong:
        yield f"{name(pathlib.Path(path))}: run clang-format -i"


def compile_commands():
    path = BUILD / "compile_commands.json"
    return json.loads(path.read_text()) if path.exists() else []


def include_flags():
    """Include folders and definitions that the last layer is compiled with."""
    for entry in compile_commands():
        if entry["file"].startswith(str(ROOT / "inputs")) and entry["file"].endswith(".c"):
            words = shlex.split(entry["command"])
            flags = [word for word in words if word.startswith(("-I", "-D_"))]
            return flags + [w for i, word in enumerate(words[:-1]) if word == "-isystem" for w in (word, words[i + 1])]
    return None


def rule_headers():
    """Every header compiles alone: the user's as C and as C++, internal ones as C. MPI's own C++ bindings, which take
    ten times as long as the header, are read once, with the user's headers together."""
    flags = include_flags()
    if flags is None:
        return
    jobs, users = [], []
    for path in files("*.h", folders=LAYERS):
        if "templates" in path.parts or path.name.endswith("_body.h"):
            continue
        jobs.append(([path], ["cc", "-std=c17", "-xc", "-Wpedantic"]))
        if path.name.startswith("trl_") and shutil.which("c++"):
            users.append(path)
            jobs.append(([path], ["c++", "-std=c++17", "-xc++", "-DOMPI_SKIP_MPICXX", "-DMPICH_SKIP_MPICXX"]))
    if users:
        jobs.append((users, ["c++", "-std=c++17", "-xc++"]))

    def compile_alone(job):
        paths, compiler = job
        command = compiler + ["-fsyntax-only", "-Wall", "-Wextra", "-Werror"
                              ] + flags + [word for path in paths for word in ("-include", str(path))] + ["/dev/null"]
        done = subprocess.run(command, capture_output=True, text=True)
        first = next((line for line in done.stderr.splitlines() if "error" in line), "")
        what = ", ".join(map(name, paths))
        return None if done.returncode == 0 else f"{what}: does not compile alone with {compiler[0]}: {first}"

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        yield from filter(None, pool.map(compile_alone, jobs))


def defined_symbols(paths, *options):
    """(file, symbol) of each that the files define."""
    if not paths:
        return []
    command = ["nm", "--defined-only", "--print-file-name", *options, *map(str, paths)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    lines = [line.rpartition(":") for line in done.stdout.splitlines()]
    return sorted({(path, words.split()[-1]) for path, _, words in lines if len(words.split()) == 3})


def rule_symbols():
    """libtrellis.so exports what the user's headers declare, and nothing else; hidden names begin with trl_ or
    trli_."""
    library = BUILD / "libtrellis.so"
    if not library.exists():
        return
    exported = {symbol for _, symbol in defined_symbols([library], "--dynamic")}
    for symbol in sorted(exported):
        if not symbol.startswith("trl_"):
            yield f"libtrellis.so exports {symbol}"
    for path in files("trl_*.h"):
        for symbol in re.findall(r"^TRL_API\b[^;{]*?\b(trl_\w+)\s*\(", code_of(path), re.MULTILINE):
            if symbol not in exported:
                yield f"{name(path)}: declares {symbol}, which libtrellis.so does not define"
    for layer in LAYERS:
        objects = sorted((BUILD / f"CMakeFiles/trl_{layer}.dir").rglob("*.o"))
        for path, symbol in defined_symbols(objects, "--extern-only"):
            # The compilers' own helpers begin with an underscore or hold a dot.
            if not re.match(r"trli?_|_|.*\.", symbol):
                yield f"{layer}/{pathlib.Path(path).name}: the global name {symbol} does not begin with trl_ or trli_"


def main():
    broken = 0
    for rule in [value for key, value in sorted(globals().items()) if key.startswith("rule_")]:
        for text in rule():
            print(text)
            broken += 1
    print(f"{broken} places break the rules" if broken else "no rule is broken")
    sys.exit(1 if broken else 0)


if __name__ == "__main__":
    main()
