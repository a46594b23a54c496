/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Writing a kernel's text by its plan: operations, what loops read, lanes, rows, groups. */
#ifndef TRLI_EMIT_WRITER_IMPL_H
#define TRLI_EMIT_WRITER_IMPL_H

#include "emit_plan_impl.h"

/* ---- emit_text.c ---- */

/* Whether an operation is a call of a function of trl_functions_body.h or trl_limiter_body.h. */
bool trli_is_function(const trli_node *n);
/* The call for a sample, of the function whose name has the suffix. */
void trli_put_call(trli_emitter *e, trli_loop_level loop, int32_t i, const char *suffix, trli_put_operand *put_operand);
/* The definitions on lanes of the functions that the kernel calls. */
void trli_put_definitions(trli_emitter *e);
/* Text with operands of a sample in place of x, y, z. */
void trli_put_form(trli_emitter *e, trli_loop_level loop, int32_t i, const char *form, trli_put_operand *put_operand);
void trli_put_indent(trli_emitter *e, int depth);
void trli_put_number(trli_emitter *e, double number);
/* The operation that computes a sample from the place of the point, or those of lanes. */
void trli_put_point(trli_emitter *e, bool lanes, int32_t i);
/* The operation that computes a sample, no leaf, inside of a loop. */
void trli_put_operation(trli_emitter *e, trli_loop_level loop, int32_t i);

/* ---- emit_use.c ---- */

/* Which of the numbers that the kernel is given a constant is, or -1. */
int trli_given_as(const trli_emitter *e, const double *number);
/* A constant in the text, or where the kernel finds the number that it is given in its place. */
void trli_put_number_of(trli_emitter *e, const double *number);
/* The same: where a function may be shared, by a name. */
void trli_put_constant(trli_emitter *e, const double *number);
/* How a sample is read inside of a loop over the points of a row, or outside of those. */
void trli_put_use(trli_emitter *e, trli_loop_level loop, int32_t i);
/* Whether a group is the first to read an input. */
bool trli_reads_first(const trli_emitter *e, int32_t group, int32_t input);
/* Mark what a loop over x has to compute: everything its results need that no outer loop provides. */
void trli_mark_computed(trli_emitter *e, trli_loop_level loop, int nroots, const int32_t *root);
/* Read a field's sample that may lie beyond the end of its row. */
void trli_put_beyond(trli_emitter *e, bool lanes, const trli_sample *in);
/* Ask for the lines ahead of the inputs that a group is the first to read. */
void trli_put_fetches(trli_emitter *e, int32_t group, int depth);
/* Whether what is wanted reads a row, or an input. */
bool trli_wants_row(const trli_emitter *e, int32_t pointer);
bool trli_reads_input(const trli_emitter *e, int32_t input);

/* ---- emit_row.c ---- */

/* One row of a group. */
void trli_put_row(trli_emitter *e, int32_t group, int depth);
/* The values of a loop over y or z, or of the call, that a group needs. */
void trli_put_values(trli_emitter *e, trli_loop_level loop, int32_t group, int depth);
/* The row buffers that a loop fills, and the loop. */
void trli_put_row_buffers(trli_emitter *e, trli_loop_level loop, int depth);

/* ---- emit_group.c ---- */

/* The functions of all groups. Fails with MEMORY. */
TRL_NODISCARD trl_err trli_put_groups(trli_emitter *e);
/* Call that of a group for `rows`. */
void trli_put_group_call(trli_emitter *e, int32_t group, int depth);
/* The scalars that are read outside of them. */
void trli_put_outer_scalars(trli_emitter *e);

/* ---- emit_lanes.c ---- */

/* Whether the loop that stores the results of a group keeps values of a row for the next one, which follows at once. */
bool trli_keeps_rows(trli_emitter *e, int32_t group);
/* Before the loop over the rows: room for what rows keep for the next one. */
void trli_put_kept(trli_emitter *e, int32_t group, int depth);
/* The loop over the points of rows that are not shorter than the lanes: it fills the row buffers of its place, or
 * stores the results of a group. */
void trli_put_lanes_loop(trli_emitter *e, trli_loop_level loop, int32_t group, int depth);
/* The same, of a loop that fills the row of ghosts of that name. */
void trli_put_lanes_fill(trli_emitter *e, int32_t root, int32_t name, int depth);

#endif
