#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Part of Trellis, an expression-graph PDE solver framework.
# The deck and the plugin of the README work as printed.
set -euo pipefail

block()
{
    awk -v fence="\`\`\`$1" '$0 == fence { inside = 1; next } /^```/ { inside = 0 } inside' "$TRELLIS_SOURCE/README.md"
}

block yaml >stripe.yaml
block c >stripe.c
includes=()
for folder in scheduler spatialops expressions/lang expressions/plugin; do includes+=("-I$TRELLIS_SOURCE/$folder"); done
mpicc -std=c17 -Wall -Wextra -Wpedantic -Werror -ffp-contract=off -shared -fPIC "${includes[@]}" stripe.c -o stripe.so

"$TRELLIS" run stripe.yaml --steps 3 --quiet
test -s out/fields/00000000.nc
