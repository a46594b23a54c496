#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Part of Trellis, an expression-graph PDE solver framework.
# A C compiler for TRELLIS_CC that does not optimise, and so takes a quarter of the time, and links nothing to a kernel,
# which needs nothing that its program lacks: for tests that ask what kernels mean.
exec cc "$@" -O0 -nostdlib
