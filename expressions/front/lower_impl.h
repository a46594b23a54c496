/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Lowering of formulas to values of the IR: what all kinds of nodes and operators share. */
#ifndef TRLI_LOWER_IMPL_H
#define TRLI_LOWER_IMPL_H

#include "formula_impl.h"
#include "instance_impl.h"

/* A name that one formula knows beside those of the model. */
typedef struct trli_named_value {
    const char *name;
    trli_ir_value value;
} trli_named_value;

/* One formula being lowered in an instance. */
struct trli_lowering {
    trli_instance *instance;
    trli_model *model;
    trli_ir *ir;
    const trl_text *text;
    int dim;
    int nnamed; /* values without location that hide names of the model */
    const trli_named_value *named;
};

/* INPUT error at a node of the formula, its text underlined. */
#define trli_lower_fail(lw, node, ...) \
    trli_text_fail((lw)->model->ctx, (lw)->text, (node)->begin, (node)->end, __VA_ARGS__)

/* The word that an argument is, such as the name of a limiter; NULL if it is anything else. */
const char *trli_lower_word(const trl_ast *node);
/* INPUT error at an argument that is none of the words for `what`; the words near it are remedies. */
TRL_NODISCARD trl_err trli_lower_fail_word(trli_lowering *lw, const trl_ast *node, const char *what,
                                           const char *const *words, int n);
/* INPUT error at a name that needs an axis which the grid lacks, and its remedy. */
TRL_NODISCARD trl_err trli_lower_fail_axis(trli_lowering *lw, const trl_ast *node, const char *name, int axis);

/* Lower a formula in an instance. scope: indices, local and global parameters. */
TRL_NODISCARD trl_err trli_lower(trli_instance *instance, const trl_formula *formula, const trl_scope *scope,
                                 trli_operand *operand);
/* The same of a formula that knows names of its own, which others that it leads to do not. */
TRL_NODISCARD trl_err trli_lower_named(trli_instance *instance, const trl_formula *formula, const trl_scope *scope,
                                       int nnamed, const trli_named_value *named, trli_operand *operand);
/* Advice to use a central difference, where a call of ddx, ddy or ddz in the tree moved a value; else "". */
const char *trli_central_advice(const trl_ast *node);
/* Remedies for the last message: a part of a formula interpolated to a location; a central difference in place of one
 * that moves a value, if there is a call of such a one. */
void trli_advise_at(trli_lowering *lw, const trl_ast *node, int location);
void trli_advise_central(trli_lowering *lw, const trl_ast *node);
/* The same: dot() for products of two vectors in the tree, which multiply components. */
void trli_advise_dot(trli_lowering *lw, const trl_ast *node, const trl_scope *scope);
/* The same: scalars at cells that the tree takes to faces, which makes vectors of them, as they are. */
void trli_advise_cells(trli_lowering *lw, const trl_ast *node, const trl_scope *scope);
/* Lower where one location is wanted: values without location are placed there, others must be there. */
TRL_NODISCARD trl_err trli_lower_at(trli_instance *instance, const trl_formula *formula, const trl_scope *scope,
                                    trl_location location, trli_ir_value *value);

/* Lower a part of a formula. */
TRL_NODISCARD trl_err trli_lower_node(trli_lowering *lw, const trl_ast *node, const trl_scope *scope,
                                      trli_operand *operand);
/* Lower one argument that must be a scalar; without location it is placed at cells if `placed`. */
TRL_NODISCARD trl_err trli_lower_scalar(trli_lowering *lw, const trl_ast *node, const trl_scope *scope, bool placed,
                                        trli_operand *operand);
/* Lower a vector argument; in 1-D a scalar stands for its only component. */
TRL_NODISCARD trl_err trli_lower_vector(trli_lowering *lw, const trl_ast *node, const trl_scope *scope,
                                        trli_operand *v);
/* Lower an argument of any shape; components without location are placed at cells. */
TRL_NODISCARD trl_err trli_lower_placed(trli_lowering *lw, const trl_ast *node, const trl_scope *scope,
                                        trli_operand *f);

/* The value of component c (of a scalar: itself), with its coordinates at a location. */
trli_ir_value trli_operand_at(trli_lowering *lw, const trli_operand *operand, int c, int location);
/* Linear interpolation along every axis whose bit differs; a failure is kept in the IR, as by its makers. */
trli_ir_value trli_interpolate(trli_lowering *lw, trli_ir_value value, int from, int to);
/* The result of an operator: with one kernel per operator, or if it reads far, it is stored; else used as it is. */
TRL_NODISCARD trl_err trli_operator_result(trli_lowering *lw, const char *name, trli_ir_value value, int location,
                                           trli_ir_value *result);
/* Store a value in any case, unless it is a boundary value's or varies nowhere. why: see trli_model_field. */
TRL_NODISCARD trl_err trli_operator_stored(trli_lowering *lw, const char *name, const char *why, trli_ir_value value,
                                           int location, trli_ir_value *result);

#endif
