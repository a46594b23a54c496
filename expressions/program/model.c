/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include <stdarg.h>
#include <string.h>

#include "memory_impl.h"
#include "model_impl.h"

/* Make room for one more in a list, unless the model has failed; list: the address of a pointer. */
static bool make_room(trli_model *model, void *list, int count, int *capacity, size_t size, const char *what)
{
    if (model->ir.err == TRL_OK && !trli_make_room(model->ctx, list, count, 1, capacity, size))
        model->ir.err = trli_no_memory(model->ctx, NULL, "for %d %s", count + 1, what);
    return model->ir.err == TRL_OK;
}

void *trli_model_keep(trli_model *model, size_t bytes)
{
    if (!make_room(model, &model->owned, model->nowned, &model->owned_capacity, sizeof *model->owned, "small blocks"))
        return NULL;
    void *block = trli_new(model->ctx, 1, bytes ? bytes : 1);
    if (block)
        model->owned[model->nowned++] = block;
    else
        model->ir.err = trli_no_memory(model->ctx, NULL, "for %zu bytes", bytes);
    return block;
}

const char *trli_model_name(trli_model *model, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vsnprintf(NULL, 0, format, args);
    va_end(args);
    char *name = trli_model_keep(model, (size_t)n + 1);
    if (!name) return "";
    va_start(args, format);
    vsnprintf(name, (size_t)n + 1, format, args);
    va_end(args);
    return name;
}

void trli_model_note_location(trli_model *model, trl_location written)
{
    const char **word = &model->location_word[trl_location_on(written, model->layout->grid.dim)];
    if (!*word) *word = trl_location_name(written);
}

const char *trli_location_text(const trli_model *model, int location)
{
    if (location < 0) return "no location";
    return model->location_word[location] ? model->location_word[location] : trl_location_name((trl_location)location);
}

int trli_model_add_field(trli_model *model, const char *name, trl_location location)
{
    if (!make_room(model, &model->field, model->nfields, &model->fields_capacity, sizeof *model->field, "fields"))
        return -1;
    model->field[model->nfields] = (trli_model_field){.name = name, .location = location, .slot = -1};
    return model->nfields++;
}

int trli_model_add_scalar(trli_model *model, double value)
{
    if (!make_room(model, &model->scalar, model->nscalars, &model->scalars_capacity, sizeof *model->scalar, "scalars"))
        return -1;
    model->scalar[model->nscalars] = value;
    return model->nscalars++;
}

int64_t trli_model_points(const trli_model *model, trl_location location, trl_lidx *row)
{
    const trl_layout *layout = model->layout;
    trl_lidx longest = 1;
    int64_t points = 0;
    for (int p = 0; p < layout->nlocal; ++p) {
        const trl_box owned = trl_patch_owned(layout, &layout->patch[p], location);
        points += trl_box_points(&owned);
        if (owned.hi[0] - owned.lo[0] > longest) longest = owned.hi[0] - owned.lo[0];
    }
    if (row) *row = longest;
    return points;
}

bool trli_exceeds_caches(const trl_context *ctx, int64_t values)
{
#ifdef TRL_SMALL_SIZES
    (void)ctx;
    return values > 0;
#else
    const size_t last = trl_context_cache_bytes(ctx, 0);
    return last > 0 && 2 * (size_t)values * sizeof(double) > last * (size_t)trl_context_threads(ctx);
#endif
}
