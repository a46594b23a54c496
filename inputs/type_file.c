/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The expression type `file`: the values of a dataset, read once at setup. */
#include "builtins_impl.h"

#include <stdlib.h>
#include <string.h>

#include "memory_impl.h"
#include "output_impl.h"

enum { PARAM_PATH, PARAM_DATASET, PARAM_LOCATION };

static const trl_param_desc params[] = {
    [PARAM_PATH] = {.key = "path",
                    .kind = TRL_PARAM_PATH,
                    .required = true,
                    .unit = "",
                    .doc = "an HDF5 or netCDF-4 file, relative to the deck"},
    [PARAM_DATASET] = {.key = "dataset",
                       .kind = TRL_PARAM_TEXT,
                       .required = true,
                       .unit = "",
                       .doc = "the dataset in it: a tag in a file of fields"},
    [PARAM_LOCATION] = {.key = "location",
                        .kind = TRL_PARAM_TEXT,
                        .unit = "",
                        .text = "cell",
                        .doc = "where its values sit: cell, xface, ..."},
    {0},
};

typedef struct file_state {
    trl_context *ctx;
    trl_location location;
    int npatches;
    int *id;          /* [npatches] of this rank, ascending */
    trl_array *array; /* [npatches] the owned points */
} file_state;

static void teardown(void *data)
{
    file_state *s = data;
    for (int p = 0; s->array && p < s->npatches; ++p) {
        trl_array *a = &s->array[p];
        void *memory =
            a->at ? (double *)a->at + trl_array_offset(a, a->held.lo[0], a->held.lo[1], a->held.lo[2]) : NULL;
        trl_memory_free(s->ctx, &memory);
    }
    trli_free(s->array);
    trli_free(s->id);
    *s = (file_state){0};
}

/* Memory for exactly the points that a patch owns. */
static trl_err allocate_patch(file_state *s, const trl_layout *layout, int p)
{
    const trl_patch *patch = &layout->patch[p];
    const trl_box owned = trl_patch_owned(layout, patch, s->location);
    trl_array *a = &s->array[p];
    void *memory;
    ptrdiff_t stride = 1;
    trl_err err = TRL_OK;
    TRL_TRY(trl_memory_alloc(s->ctx, (size_t)trl_box_points(&owned) * sizeof(double), "the field of a file", &memory));
    *a = (trl_array){.owned = owned, .held = owned, .type = TRL_F64};
    for (int axis = 0; axis < layout->grid.dim; ++axis) {
        a->stride[axis] = stride;
        stride *= owned.hi[axis] - owned.lo[axis];
    }
    a->at = (double *)memory - trl_array_offset(a, owned.lo[0], owned.lo[1], owned.lo[2]);
    s->id[p] = patch->id;
done:
    return err;
}

static trl_err setup(void *data, const trl_setup_args *args)
{
    file_state *s = data;
    const trl_layout *layout = args->layout;
    const trl_param_value *location = &args->params[PARAM_LOCATION];
    trl_err err = TRL_OK;
    s->ctx = args->ctx;
    if (!trl_location_parse(location->text, &s->location))
        return trl_fail(args->ctx, TRL_ERR_INPUT, location->place.file ? &location->place : &args->place,
                        "unknown location '%s'; one of cell xface yface zface xedge yedge zedge node", location->text);
    s->location = trl_location_on(s->location, args->grid->dim);
    s->npatches = layout->nlocal;
    s->id = trli_new(args->ctx, (size_t)layout->nlocal, sizeof *s->id);
    s->array = trli_new(args->ctx, (size_t)layout->nlocal, sizeof *s->array);
    if (!s->id || !s->array) TRL_TRY(trli_no_memory(args->ctx, &args->place, "for the patches of a file's field"));
    for (int p = 0; p < layout->nlocal; ++p) TRL_TRY(allocate_patch(s, layout, p));
done:
    /* Reading is collective: all ranks come here first, or none goes on. */
    err = trl_context_agree(args->ctx, err);
    if (err != TRL_OK) return err;
    const trli_output_field field = {.name = "value", .location = s->location, .patch = s->array};
    const trl_param_value *path = &args->params[PARAM_PATH], *dataset = &args->params[PARAM_DATASET];
    const trli_dataset_name from = {path->text, dataset->text, path->place, dataset->place};
    return trli_dataset_read(args->ctx, layout, &from, &field);
}

static trl_err advertise_dependents(const void *data, trl_deps *deps)
{
    const file_state *s = data;
    return trl_deps_compute(deps, "value", s->location);
}

static int by_id(const void *a, const void *b)
{
    int x = *(const int *)a, y = *(const int *)b;
    return (x > y) - (x < y);
}

static trl_err evaluate(const void *data, const trl_eval_args *args, const trl_box *box)
{
    const file_state *s = data;
    const int *found = bsearch(&args->patch->id, s->id, (size_t)s->npatches, sizeof *s->id, by_id);
    if (!found) return trl_fail(args->ctx, TRL_ERR_BUG, NULL, "expression type 'file' got a patch it did not read");
    const trl_array *from = &s->array[found - s->id], *to = &args->computed[0];
    size_t row = (size_t)(box->hi[0] - box->lo[0]) * sizeof(double);
    for (trl_lidx k = box->lo[2]; k < box->hi[2]; ++k)
        for (trl_lidx j = box->lo[1]; j < box->hi[1]; ++j)
            memcpy((double *)to->at + trl_array_offset(to, box->lo[0], j, k),
                   (const double *)from->at + trl_array_offset(from, box->lo[0], j, k), row);
    return TRL_OK;
}

const trl_expr_type trli_type_file = {
    .abi = TRL_PLUGIN_ABI,
    .size = sizeof(trl_expr_type),
    .name = "file",
    .doc = "a field read from a dataset of an HDF5 file, such as one of out/fields",
    .params = params,
    .flags = TRL_EXPR_TILED | TRL_EXPR_PURE | TRL_EXPR_STATIC,
    .state_size = sizeof(file_state),
    .setup = setup,
    .teardown = teardown,
    .advertise_dependents = advertise_dependents,
    .evaluate = evaluate,
};
