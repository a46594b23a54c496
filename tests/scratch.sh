#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Part of Trellis, an expression-graph PDE solver framework.
# scratch.sh FOLDER COMMAND...: run a command inside an empty FOLDER. Open MPI's files lie in another one: programs
# without a launcher share one name below /tmp else, and one that ends removes what another one needs. It has a short
# name: they are sockets, too.
set -euo pipefail
rm -rf "$1"
mkdir -p "$1"
cd "$1"
shift
OMPI_MCA_orte_tmpdir_base=$(mktemp -d)
export OMPI_MCA_orte_tmpdir_base
# Looking for uses of the variables of functions that have returned takes a fifth of a test's time.
[ -z "${TRL_TEST_LONG:-}" ] || export ASAN_OPTIONS="${ASAN_OPTIONS:-}:detect_stack_use_after_return=1"
trap 'rm -rf "$OMPI_MCA_orte_tmpdir_base"' EXIT
"$@"
