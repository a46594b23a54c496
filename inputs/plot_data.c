/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* What the readers of `trellis plot` share. */
#include <math.h>
#include <string.h>

#include <plot_impl.h>

#include "memory_impl.h"
#include <trl_formula.h>

void trli_plot_data_scan(trli_plot_data *data)
{
    const trl_gidx n = data->axis[0].points * (data->naxes == 2 ? data->axis[1].points : 1);
    data->low = data->high = NAN;
    data->not_finite = 0;
    for (trl_gidx i = 0; i < n; ++i) {
        data->not_finite += !isfinite(data->value[i]);
        if (!isfinite(data->value[i])) continue;
        data->low = fmin(data->low, data->value[i]);
        data->high = fmax(data->high, data->value[i]);
    }
}

void trli_plot_release(trli_plot_set *set)
{
    for (int i = 0; i < set->n; ++i) {
        trli_free(set->panel[i].name);
        trli_free(set->panel[i].value);
        trli_free(set->panel[i].times);
    }
    *set = (trli_plot_set){0};
}

static trl_err fail_name(trl_context *ctx, const char *path, const char *of, const char *wanted, int n,
                         char *const *name)
{
    trl_place place = {.file = path};
    size_t length = 1;
    for (int i = 0; i < n; ++i) length += strlen(name[i]) + 2;
    char *list = trli_new(ctx, length, 1), *end = list;
    if (!list) return trli_no_memory(ctx, NULL, "to list %d names", n);
    for (int i = 0; i < n; ++i) end = stpcpy(stpcpy(end, i ? ", " : ""), name[i]);
    const char *nearest = trl_name_nearest(wanted, (const char *const *)name, n);
    trl_err err = trl_fail(ctx, TRL_ERR_INPUT, &place, "no %s '%s'; there is: %s%s%s%s", of, wanted, list,
                           nearest ? "; did you mean '" : "", nearest ? nearest : "", nearest ? "'?" : "");
    trli_free(list);
    return err;
}

trl_err trli_plot_choose(trl_context *ctx, const char *path, const char *of, const char *wanted, int n,
                         char *const *name, int *chosen)
{
    for (*chosen = 0; wanted && *chosen < n; ++*chosen)
        if (!strcmp(name[*chosen], wanted)) return TRL_OK;
    return wanted ? fail_name(ctx, path, of, wanted, n, name) : TRL_OK;
}
