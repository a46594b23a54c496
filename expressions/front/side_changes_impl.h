/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Changes of variables beyond their sides, and on them. */
#ifndef TRLI_SIDE_CHANGES_IMPL_H
#define TRLI_SIDE_CHANGES_IMPL_H

#include "instance_impl.h"

/* Of an instance along a direction: variables without a tangent of their own, which change where their conditions set
 * them. */
typedef struct trli_side_changes {
    trli_instance *in;
    int direction, nvariables;
    int *field;           /* [nvariables] tangents, 0 inside; -1: none yet */
    unsigned char *known; /* [nvariables] 0: not yet; or whether it changes */
    bool deciding;        /* which of them do: meanwhile all may */
} trli_side_changes;

TRL_NODISCARD trl_err trli_side_changes_begin(trli_side_changes *changes, trli_instance *in, int direction);
void trli_side_changes_end(trli_side_changes *changes);
/* The tangent of a variable; TRLI_NO_VALUE: it does not change. sure: it is known whether it does, and the steps of the
 * tangent, and of others that this one needs, are appended. Else see below. */
TRL_NODISCARD trl_err trli_side_changes_of(trli_side_changes *changes, int variable, bool sure, trli_ir_value *tangent);
/* *value, a derivative, without what it reads of tangents that are zero, or are so where they are read: at points
 * inside. Those that are left have steps. across: an axis along which all points are inside, as the nearest points are
 * that conditions read; or -1. TRLI_NO_VALUE: nothing is left. */
TRL_NODISCARD trl_err trli_side_changes_settle(trli_side_changes *changes, int across, trli_ir_value *value);

#endif
