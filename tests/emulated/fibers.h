/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The threads of a block as fibers of one thread: each has a stack of its own, and runs until it waits or ends. */
#ifndef FIBERS_H
#define FIBERS_H

/* What a fiber does; i: which of them it is. */
typedef void (*trl_fiber_body)(void *data, unsigned i);

/* Run n of them, in descending order, round after round: each from where it waited to where it waits next, until all
 * have ended. Thread: any, and none of its fibers. */
void trl_fibers_run(unsigned n, trl_fiber_body body, void *data);
/* A barrier: give way to the others until each of them waits or has ended. In a fiber. */
void trl_fibers_wait(void);

#endif
