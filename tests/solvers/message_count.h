/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* What the calls of MPI in test_delays.c count. */
#ifndef MESSAGE_COUNT_H
#define MESSAGE_COUNT_H

extern _Atomic int values_sent; /* MPI_Isend of doubles, by this process */

#endif
