/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Statements on fields of drivers as values: field i of the IR is input i. */
#ifndef TRLI_FIELD_VALUES_IMPL_H
#define TRLI_FIELD_VALUES_IMPL_H

#include <residence_impl.h>

#include "ir_impl.h"

/* What a statement computes. Fails with MEMORY. */
TRL_NODISCARD trl_err trli_statement_value(trli_ir *ir, const trli_statement *statement, trli_ir_value *value);
/* A digest of all that the value depends on. */
void trli_statement_digest(const trli_statement *statement, uint64_t digest[2]);

#endif
