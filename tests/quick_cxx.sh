#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Part of Trellis, an expression-graph PDE solver framework.
# The same for C++.
exec c++ "$@" -O0
