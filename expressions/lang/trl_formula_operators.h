/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The operators of the formula language, as a table for documentation. */
#ifndef TRL_FORMULA_OPERATORS_H
#define TRL_FORMULA_OPERATORS_H

#include <trl_err.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct trl_formula_operator {
    const char *name;
    const char *signature; /* "advective_flux(phi, u[, limiter])" */
    const char *doc;
} trl_formula_operator;

/* Row i of the table, or NULL past its end. Thread: any. */
TRL_API const trl_formula_operator *trl_formula_operator_at(int i);

#ifdef __cplusplus
}
#endif
#endif
