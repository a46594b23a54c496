/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Making and end of a model's front. */

#include "front_impl.h"
#include "lasting_impl.h"
#include "memory_impl.h"
#include "plugin_entry_impl.h"
#include "symbols_impl.h"
#include "tree_impl.h"

static trl_err make_stencils(trli_model *model, const trli_model_request *request)
{
    trli_front *front = model->front;
    trl_err err = TRL_OK;
    front->stencil = trli_new(model->ctx, (size_t)request->nstencils + 1, sizeof *front->stencil);
    if (!front->stencil) return trli_no_memory(model->ctx, NULL, "for %d stencils", request->nstencils);
    for (; front->nstencils < request->nstencils; ++front->nstencils) {
        const trl_stencil_entry *s = &request->stencils[front->nstencils];
        TRL_TRY(trl_operator_create_custom(model->ctx, &request->layout->grid, s->name, s->from, s->to, s->npoints,
                                           s->point, &front->stencil[front->nstencils]));
    }
done:
    return err;
}

trl_err trli_front_create(trli_model *model, const trli_model_request *request)
{
    trli_front *front = model->front = trli_new(model->ctx, 1, sizeof *front);
    trl_err err = TRL_OK;
    if (front) front->entry = trli_new(model->ctx, (size_t)request->nentries + 1, sizeof *front->entry);
    if (!front || !front->entry)
        return trli_no_memory(model->ctx, NULL, "for a model of %d expressions", request->nentries);
    front->parameters = request->parameters;
    front->nentries = request->nentries;
    for (int e = 0; e < request->nentries; ++e) {
        front->entry[e].deck = &request->entries[e];
        front->entry[e].finer = request->finer ? &request->finer->front->entry[e] : NULL;
    }
    TRL_TRY(make_stencils(model, request));
    TRL_TRY(trli_symbols_build(model));
    TRL_TRY(trli_tree_order(model));
    TRL_TRY(trli_lasting_find(model));
done:
    return err;
}

void trli_front_destroy(trli_front **front)
{
    trli_front *f = *front;
    *front = NULL;
    if (!f) return;
    for (int e = 0; e < f->nentries; ++e) trli_entry_free(&f->entry[e]);
    for (int i = 0; i < f->nstencils; ++i) trl_operator_destroy(&f->stencil[i]);
    trli_table_free(&f->names);
    trli_free(f->entry);
    trli_free(f->stencil);
    trli_free(f->defined);
    trli_free(f->symbol);
    trli_free(f->order);
    trli_free(f->dep_start);
    trli_free(f->dep);
    trli_free(f);
}
