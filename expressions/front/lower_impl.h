/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Lowering of the formula language to the IR: what its files share. */
#ifndef TRLI_LOWER_IMPL_H
#define TRLI_LOWER_IMPL_H

#include "formula_impl.h"
#include "instance_impl.h"
#include "model_impl.h"

/* One formula being lowered in an instance. */
typedef struct trli_lowering {
    trli_instance *instance;
    trli_model *model;
    trli_ir *ir;
    const trl_text *text;
    int dim;
} trli_lowering;

/* INPUT error at a node of the formula, its text underlined. */
#define trli_lower_fail(lw, node, ...) \
    trli_text_fail((lw)->model->ctx, (lw)->text, (node)->begin, (node)->end, __VA_ARGS__)

TRL_NODISCARD trl_err trli_lower_node(trli_lowering *lw, const trl_ast *node, const trl_scope *names,
                                      trli_operand *operand);
/* Lower one argument that must be a scalar; without location it is placed at cells if `placed`. */
TRL_NODISCARD trl_err trli_lower_scalar(trli_lowering *lw, const trl_ast *node, const trl_scope *names, bool placed,
                                        trli_operand *operand);
/* Lower a vector argument; in 1-D a scalar stands for its only component. */
TRL_NODISCARD trl_err trli_lower_vector(trli_lowering *lw, const trl_ast *node, const trl_scope *names,
                                        trli_operand *v);
/* A number that is fixed when a formula is expanded: a bound, a width, a seed. INPUT error if it depends on the parameter of a direction. */
TRL_NODISCARD trl_err trli_lower_number(trli_lowering *lw, const trl_ast *node, const trl_scope *names, double *number);
/* The value of a name among the parameters and indices. */
TRL_NODISCARD trl_err trli_lower_parameter(trli_lowering *lw, const char *name, const trl_scope *names,
                                           trli_operand *operand, bool *found);
/* A product or quotient: factors are collected along its left side, cell factors interpolated together. */
TRL_NODISCARD trl_err trli_lower_product(trli_lowering *lw, const trl_ast *node, const trl_scope *names,
                                         trli_operand *operand);
/* A call of an operator of the language (grad, at, integral, ...); *known = false if the name is none. */
TRL_NODISCARD trl_err trli_lower_operator(trli_lowering *lw, const trl_ast *node, const trl_scope *names,
                                          trli_operand *operand, bool *known);
/* How an operator is lowered, and what documents it. */
typedef trl_err (*trli_operator_fn)(trli_lowering *lw, const trl_ast *node, const trl_scope *names,
                                    trli_operand *operand);
/* -- linear.c: operators of trl_operator.h -- */
TRL_NODISCARD trl_err trli_lower_grad(trli_lowering *lw, const trl_ast *node, const trl_scope *names,
                                      trli_operand *operand);
TRL_NODISCARD trl_err trli_lower_div(trli_lowering *lw, const trl_ast *node, const trl_scope *names,
                                     trli_operand *operand);
TRL_NODISCARD trl_err trli_lower_laplacian(trli_lowering *lw, const trl_ast *node, const trl_scope *names,
                                           trli_operand *operand);
TRL_NODISCARD trl_err trli_lower_curl(trli_lowering *lw, const trl_ast *node, const trl_scope *names,
                                      trli_operand *operand);
TRL_NODISCARD trl_err trli_lower_along_axis(trli_lowering *lw, const trl_ast *node, const trl_scope *names,
                                            trli_operand *operand);
/* at, at4 and harmonic. */
TRL_NODISCARD trl_err trli_lower_interpolation(trli_lowering *lw, const trl_ast *node, const trl_scope *names,
                                               trli_operand *operand);
TRL_NODISCARD trl_err trli_lower_filter(trli_lowering *lw, const trl_ast *node, const trl_scope *names,
                                        trli_operand *operand);
TRL_NODISCARD trl_err trli_lower_extrapolation(trli_lowering *lw, const trl_ast *node, const trl_scope *names,
                                               trli_operand *operand);
/* A call of one of the problem's own stencils. */
TRL_NODISCARD trl_err trli_lower_stencil(trli_lowering *lw, const trl_ast *node, const trl_scope *names,
                                         const trl_operator *stencil, trli_operand *operand);
TRL_NODISCARD trl_err trli_lower_advective_flux(trli_lowering *lw, const trl_ast *node, const trl_scope *names,
                                                trli_operand *operand);
TRL_NODISCARD trl_err trli_lower_reconstruction(trli_lowering *lw, const trl_ast *node, const trl_scope *names,
                                                trli_operand *operand);
/* Reductions and probes. */
TRL_NODISCARD trl_err trli_lower_reduction(trli_lowering *lw, const trl_ast *node, const trl_scope *names,
                                           trli_operand *operand);
TRL_NODISCARD trl_err trli_lower_probe(trli_lowering *lw, const trl_ast *node, const trl_scope *names,
                                       trli_operand *operand);

/* The value of component c (of a scalar: itself), with its coordinates at a location. */
trli_value trli_operand_at(trli_lowering *lw, const trli_operand *operand, int c, int location);
trli_operand trli_operand_scalar(int location, trli_value value);
/* The location two values have in common: equal, or one of them has none; false if they differ. */
bool trli_location_join(int a, int b, int *joined);
const char *trli_location_text(int location);
/* Number of values: components of a vector, 1 of a scalar. */
static inline int trli_operand_count(const trli_operand *operand)
{
    return operand->components ? operand->components : 1;
}
/* Linear interpolation along every axis whose bit differs; a failure is kept in the IR, as by its makers. */
trli_value trli_interpolate(trli_lowering *lw, trli_value value, int from, int to);
/* The result of an operator: with one kernel per operator, or if it reads far, it is stored; else used as it is. */
TRL_NODISCARD trl_err trli_operator_result(trli_lowering *lw, const char *name, trli_value value, int location,
                                           trli_value *result);
/* Store a value in any case, unless it is a boundary value's or varies nowhere. why: see trli_field. */
TRL_NODISCARD trl_err trli_operator_stored(trli_lowering *lw, const char *name, const char *why, trli_value value,
                                           int location, trli_value *result);

#endif
