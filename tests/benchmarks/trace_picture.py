# SPDX-License-Identifier: Apache-2.0
# Part of Trellis, an expression-graph PDE solver framework.
"""A picture of one step of each of some traces, one above the other, on the same scale of time: of all ranks, a step of
the first. From a shell: trace_picture.py PICTURE.svg TITLE=TRACE.json ..."""
import html
import json
import pathlib
import statistics
import sys

WIDTH, LEFT, ROW, GAP = 900, 150, 18, 34
COLOURS = {"task": "#4878a8", "device": "#c05030", "copy": "#e0a030"}  # waiting is left blank
MESSAGES = {"pack", "post", "send", "receive", "unpack", "release"}  # tasks between ranks


def typical_step(events):
    """Begin and end of the step whose duration is the median of the second half."""
    first = [e for e in events if e["pid"] == 0 and e["name"] == "step"]
    begin = {e["id2"]["local"]: e["ts"] for e in first if e["ph"] == "b"}
    spans = [(begin[e["id2"]["local"]], e["ts"]) for e in first if e["ph"] == "e"]
    spans = spans[len(spans) // 2:]
    middle = statistics.median_low([end - start for start, end in spans])
    return next(span for span in spans if span[1] - span[0] == middle)


def lanes(events):
    """The process and thread of each lane, and its name."""
    names = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
    several = len({rank for rank, _ in names}) > 1
    return sorted((key, f"rank {key[0]}, {name}" if several else name) for key, name in names.items())


def draw(traces, path):
    """traces: (title, file) each. Names stand in boxes that are wide enough for them."""
    read = []
    for title, file in traces:
        events = json.loads(pathlib.Path(file).read_text(encoding="utf-8"))
        events = events if isinstance(events, list) else events["traceEvents"]
        read.append((title, events, typical_step(events)))
    scale = WIDTH / max(end - start for _, _, (start, end) in read)
    lines, y = [], 10
    for title, events, (start, end) in read:
        y += GAP - 10
        lines.append(f'<text x="6" y="{y - 6}" font-weight="bold">{html.escape(title)}: '
                     f'{1e-3 * (end - start):.2f} ms</text>')
        for lane, name in lanes(events):
            lines.append(f'<text x="6" y="{y + 13}">{html.escape(name)}</text>'
                         f'<rect x="{LEFT}" y="{y}" width="{scale * (end - start):.1f}" height="{ROW - 2}" '
                         'fill="#f2f2f2"/>')
            for e in events:
                if (e["pid"], e["tid"]) != lane or e.get("cat") not in COLOURS:
                    continue
                left, right = max(e["ts"], start), min(e["ts"] + e["dur"], end)
                if left > right:
                    continue
                colour = COLOURS["copy" if e["name"] in MESSAGES else e["cat"]]
                x, width = LEFT + scale * (left - start), max(0.6, scale * (right - left))
                lines.append(f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="{ROW - 2}" '
                             f'fill="{colour}" stroke="white" stroke-width="0.3"/>')
                if width > 6 * len(e["name"]):
                    lines.append(f'<text x="{x + 2:.1f}" y="{y + 12}" font-size="9" fill="white">'
                                 f'{html.escape(e["name"])}</text>')
            y += ROW
    head = (f'<svg xmlns="http://www.w3.org/2000/svg" width="{LEFT + WIDTH + 20}" height="{y + 12}" '
            'font-family="DejaVu Sans, sans-serif" font-size="11"><rect width="100%" height="100%" fill="white"/>')
    pathlib.Path(path).write_text("\n".join([head, *lines, "</svg>", ""]), encoding="utf-8")


if __name__ == "__main__":
    draw([argument.split("=", 1) for argument in sys.argv[2:]], sys.argv[1])
