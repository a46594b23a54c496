#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Part of Trellis, an expression-graph PDE solver framework.
# docs/pictures.sh TRELLIS: run the decks of the pages and draw their pictures in docs/images again.
set -euo pipefail
trellis=$(realpath "${1:-build/release/trellis}")
cd "$(dirname "${BASH_SOURCE[0]}")/.."
images=$PWD/docs/images
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

run()
{
    "$trellis" run "inputs/decks/$1.yaml" --quiet --set "output.directory=$work/$1" "${@:2}"
}

run heat_2d --set 'output.every={time: 0.001}' \
    --set 'output.series={every: {steps: 10}, values: {heat: "integral(T)", hottest: "domain_max(T)"}}'
run outflow --set 'output.every={time: 0.01}'
run jet
run gray_scott
run seismic
run cylinder
run rotation
plot=("$trellis" plot)
"${plot[@]}" "$work/heat_2d" --time 0.002 --contours 9 --size 300 -o "$images/plot_plane.png"
"${plot[@]}" "$work/outflow" --spacetime --size 300 -o "$images/plot_spacetime.png"
"${plot[@]}" "$work/heat_2d" --time 0.002 --slice y=0.5 --size 400 -o "$images/plot_line.png"
"${plot[@]}" "$work/heat_2d/series.csv" --size 300 -o "$images/plot_series.png"
"${plot[@]}" "$work/heat_2d" --time 0.002 --field T,q.x --size 200 -o "$images/plot_fields.png"
"${plot[@]}" "$work/jet" --movie --size 240 --range 0,1 -o "$images/plot_movie.png"
"${plot[@]}" "$work/seismic" --spacetime --slice y=0.98 --range -0.03,0.03 --size 260 -o "$images/shot_record.png"
"${plot[@]}" "$work/heat_2d" -o "$images/heat_2d.png"
"${plot[@]}" "$work/gray_scott" --field v -o "$images/gray_scott.png"
"${plot[@]}" "$work/cylinder" -o "$images/cylinder.png"
"${plot[@]}" "$work/jet" -o "$images/jet.png"
"${plot[@]}" "$work/rotation" --field upwind,vanleer,superbee -o "$images/rotation.png"
