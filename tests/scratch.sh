#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Part of Trellis, an expression-graph PDE solver framework.
# scratch.sh FOLDER COMMAND...: run a command inside an empty FOLDER.
set -euo pipefail
rm -rf "$1"
mkdir -p "$1"
cd "$1"
shift
exec "$@"
