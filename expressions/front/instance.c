/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Instances, and which files answer the calls that their parts make of one another. */

#include "instance_impl.h"
#include "memory_impl.h"
#include "nodes_impl.h"
#include "tangent_impl.h"
#include "values_impl.h"

static const trli_front_ops ops = {
    .node = trli_lower_by_kind, .symbol = trli_value_of_symbol, .tangent = trli_tangent_of_value};

trl_err trli_instance_create(trli_model *model, trli_program *program, int time_scalar, int stage,
                             const trli_instance *old, trli_instance **instance)
{
    trli_instance *in = trli_new(model->ctx, 1, sizeof *in);
    size_t nv = (size_t)model->nvariables + 1, ne = (size_t)model->front->nentries + 1;
    *instance = NULL;
    if (in) {
        *in = (trli_instance){.ops = &ops,
                              .model = model,
                              .program = program,
                              .old = old,
                              .time_scalar = time_scalar,
                              .stage = stage,
                              .fill = {.conditions_from = -1}};
        in->variable = trli_new(model->ctx, nv, sizeof *in->variable);
        in->plugin_field = trli_new(model->ctx, ne, sizeof *in->plugin_field);
    }
    if (!in || !in->variable || !in->plugin_field) {
        trli_instance_destroy(&in);
        return trli_no_memory(model->ctx, NULL, "for an instance of %d expressions", model->front->nentries);
    }
    for (int v = 0; v < model->nvariables; ++v) in->variable[v] = -1;
    *instance = in;
    return TRL_OK;
}

static void destroy_shared(trli_instance **shared)
{
    trli_instance *s = *shared;
    *shared = NULL;
    if (!s) return;
    trli_tangents_free(&s->tangents);
    trli_free(s->memo);
    trli_free(s);
}

void trli_instance_destroy(trli_instance **instance)
{
    trli_instance *in = *instance;
    *instance = NULL;
    if (!in) return;
    trli_tangents_free(&in->tangents);
    destroy_shared(&in->sides);
    destroy_shared(&in->inlined);
    trli_free(in->variable);
    trli_free(in->memo);
    trli_free(in->plugin_field);
    trli_free(in);
}

trl_err trli_instance_marked(trli_instance *instance, const trli_marks *marks, trli_instance **marked)
{
    trl_err err = trli_instance_share(instance, marked);
    if (err != TRL_OK) return err;
    err = trli_instance_share(instance, &(*marked)->no_cse);
    if (err != TRL_OK) return err;
    (*marked)->marks = marks;
    (*marked)->no_cse->reads_no_cse = true;
    return TRL_OK;
}

void trli_instance_marked_destroy(trli_instance **marked)
{
    if (*marked) destroy_shared(&(*marked)->no_cse);
    destroy_shared(marked);
}
