# SPDX-License-Identifier: Apache-2.0
# Part of Trellis, an expression-graph PDE solver framework.
. "$(dirname "$0")/lib/common.bash"

# Pictures of a run, from its folder; vectors are well-formed; without any font text is drawn nevertheless.
write_deck
expect 0 "$TRELLIS" run deck.yaml --quiet --set 'output.every={steps: 2}'

expect 0 "$TRELLIS" plot out -o picture.svg
silent stderr.txt
expect 0 "$TRELLIS" plot out -o picture.pdf
expect 0 "$TRELLIS" plot out --movie -o movie.png --size 100
python3 - <<'PYTHON'
import struct
import xml.etree.ElementTree
import zlib

root = xml.etree.ElementTree.parse("picture.svg").getroot()
assert root.tag.endswith("svg") and root.get("width"), root.attrib
pdf = open("picture.pdf", "rb").read()
table = int(pdf[pdf.rindex(b"startxref") + 9 :].split()[0])
assert pdf.startswith(b"%PDF-") and pdf[table : table + 4] == b"xref", table

png = open("movie.png", "rb").read()
at, frames, size = 8, [], None
while at < len(png):
    (length,), kind = struct.unpack(">I", png[at : at + 4]), png[at + 4 : at + 8]
    data = png[at + 8 : at + 8 + length]
    (crc,) = struct.unpack(">I", png[at + 8 + length : at + 12 + length])
    assert crc == zlib.crc32(kind + data), (at, kind)
    if kind == b"IHDR":
        size = struct.unpack(">II", data[:8])
    if kind == b"fcTL":
        assert struct.unpack(">II", data[4:12]) == size
        frames.append(b"")
    if kind in (b"IDAT", b"fdAT"):
        frames[-1] += data if kind == b"IDAT" else data[4:]
    at += 12 + length
assert len(frames) > 2, len(frames)
for frame in frames:
    assert len(zlib.decompress(frame)) == size[1] * (1 + 3 * size[0])
assert frames[0] != frames[-1]
PYTHON

expect 0 "$TRELLIS" plot out -o with_fonts.png
echo '<fontconfig></fontconfig>' >no_fonts.conf
for picture in without_fonts.png without_fonts.svg; do
    FONTCONFIG_FILE=$PWD/no_fonts.conf expect 0 "$TRELLIS" plot out -o $picture
    silent stderr.txt
done
[ "$(grep -o 'href="#glyph' without_fonts.svg | wc -l)" -gt 20 ] || fail "there is no text without fonts"
# The first field of a file is the first one of the deck, whatever its name.
cat >order.yaml <<'DECK'
trellis: 1
grid: {cells: [8], periodic: [true]}
equations:
  zeta: {initial: 1, ddt: 0}
  alpha: {initial: 2, ddt: 0}
time: {method: euler, dt: 0.1, steps: 1}
output: {directory: order}
DECK
expect 0 "$TRELLIS" run order.yaml --quiet
expect 0 "$TRELLIS" plot order
says stdout.txt "zeta.png"
expect 0 "$TRELLIS" collect order
expect 0 "$TRELLIS" plot order/all.nc
says stdout.txt "zeta.png"

expect 0 "$TRELLIS" info
says stdout.txt "cairo      "
