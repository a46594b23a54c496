/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Means over planes or lines, as columns of series. A program computes the values; sums are exact, and a mean is a sum
 * divided by a number of cells, so the bits are the same on any patches, ranks and threads. */
#include <string.h>

#include "context_impl.h"
#include "late_impl.h"
#include "lifecycle_impl.h"
#include "lower_impl.h"
#include "memory_impl.h"
#include "profiles_impl.h"
#include "spans_impl.h"
#include "tasks_impl.h"

typedef struct profile {
    int axis, columns;
    trl_location location;
    int field;    /* of the model */
    double cells; /* of a mean: the weight of all points */
} profile;

struct trli_profiles {
    trli_program *program;
    profile *list; /* [problem->nprofiles] */
    trl_loop *loop;
    trli_batch_run sums; /* of all columns, on their way between the ranks */
};

/* A field on its way to the sums. */
typedef struct gathering {
    const trl_simulation *sim;
    const profile *profile;
    trl_sum *sum; /* [chunks][columns] */
} gathering;

static trl_err find_value(trl_simulation *sim, trli_instance *in, const trl_profile_entry *entry, profile *p)
{
    const trl_grid *grid = &sim->layout->grid;
    trl_formula *formula = NULL;
    trli_operand f;
    trl_err err = TRL_OK;
    if (entry->axis >= grid->dim)
        return trl_fail(sim->ctx, TRL_ERR_INPUT, &entry->place,
                        "the profile '%s' is along %c, which a grid of %d dimension%s does not have: use another axis",
                        entry->name, "xyz"[entry->axis], grid -> dim, grid -> dim > 1 ? "s" : "");
    TRL_TRY(trli_formula_of(sim, &entry->value, &formula));
    in->program->place = trl_text_place(&entry->value, formula->root->begin, formula->root->end);
    TRL_TRY(trli_lower(in, formula, sim->problem->parameters, &f));
    if (f.components > 1)
        TRL_TRY(trl_fail(sim->ctx, TRL_ERR_INPUT, &in->program->place,
                         "the profile '%s' is of one value, and this is a vector: use its components, as 'q.x'",
                         entry->name));
    p->location = f.location[0] == TRLI_ANYWHERE ? TRL_CELL : (trl_location)f.location[0];
    p->axis = entry->axis;
    p->columns = (int)trl_grid_points(grid, p->location, p->axis);
    p->cells = 1;
    for (int a = 0; a < grid->dim; ++a)
        if (a != p->axis) p->cells *= (double)grid->cells[a];
    const trli_ir_value value = trli_ir_place(&sim->model->ir, f.value[0], p->location);
    const trli_node *n = trli_ir_node(&sim->model->ir, value);
    p->field = n->index;
    if (n->op != TRLI_OP_FIELD || sim->model->field[n->index].location != p->location)
        err = trli_program_store(in->program, entry->name, "a profile reads it", value, p->location, NULL, &p->field);
done:
    trl_formula_destroy(&formula);
    return err;
}

static trl_err make_sums(const trl_simulation *sim, struct trli_profiles *all)
{
    int n = 0;
    for (int i = 0; i < sim->problem->nprofiles; ++i) n += all->list[i].columns;
    sim->model->sent[TRLI_SENT_PROFILES] = n;
    return trli_batch_create(sim->ctx, &all->sums, TRLI_SENT_PROFILES, n, 0);
}

trl_err trli_profiles_compile(trl_simulation *sim)
{
    const trl_problem *p = sim->problem;
    const trl_offsets owned = {{0}, {0}};
    struct trli_profiles *all;
    trli_instance *in = NULL;
    trl_err err = TRL_OK;
    if (p->nprofiles == 0) return TRL_OK;
    all = sim->profiles = trli_new(sim->ctx, 1, sizeof *all);
    if (!all) return trli_no_memory(sim->ctx, NULL, "for profiles");
    all->list = trli_new(sim->ctx, (size_t)p->nprofiles, sizeof *all->list);
    if (!all->list) return trli_no_memory(sim->ctx, NULL, "for %d profiles", p->nprofiles);
    TRL_TRY(trli_begin_observing(sim, "profiles", &all->program, &in));
    for (int i = 0; i < p->nprofiles; ++i) TRL_TRY(find_value(sim, in, &p->profile[i], &all->list[i]));
    /* Behind all steps, or later ones would take the memory of what is read. */
    for (int i = 0; i < p->nprofiles; ++i) TRL_TRY(trli_program_read(all->program, all->list[i].field, 0, &owned));
    TRL_TRY(make_sums(sim, all));
    err = trl_loop_create(sim->ctx, sim->workers, &all->loop);
done:
    trli_instance_destroy(&in);
    return err;
}

void trli_profiles_destroy(trl_simulation *sim)
{
    struct trli_profiles *all = sim->profiles;
    sim->profiles = NULL;
    if (!all) return;
    trl_loop_destroy(&all->loop);
    trli_batch_destroy(sim->frame, &all->sums);
    trli_free(all->list);
    trli_free(all);
}

int trli_profile_columns(const trl_simulation *sim, int i)
{
    return sim->profiles->list[i].columns;
}

/* Halves are exact, so that a point on a side adds what it would to an integral. */
static trl_err gather(void *data, const trli_span *span, int chunk)
{
    const gathering *g = data;
    const profile *f = g->profile;
    const trl_grid *grid = &g->sim->layout->grid;
    const trl_patch *patch = &g->sim->layout->patch[span->patch];
    const trl_array array = trli_frame_array(g->sim->frame, f->field, span->patch, 0);
    const double *from = (const double *)array.at + trl_array_offset(&array, span->i, span->j, span->k);
    const trl_gidx first[3] = {patch->first[0] + span->i, patch->first[1] + span->j, patch->first[2] + span->k};
    trl_sum *sum = g->sum + (ptrdiff_t)chunk * f->columns;
    double weight[3] = {1, 1, 1}, row[TRLI_SPAN_POINTS];
    for (int a = 0; a < grid->dim; ++a) {
        const bool sided = f->location >> a & 1 && !grid->periodic[a] && a != f->axis;
        if (sided && (first[a] == 0 || first[a] == grid->cells[a])) weight[a] = 0.5;
    }
    for (int i = 0; i < span->n; ++i) row[i] = from[i] * (weight[1] * weight[2]);
    if (f->axis == 0) {
        for (int i = 0; i < span->n; ++i) trl_sum_add(&sum[first[0] + i], &row[i], 1);
        return TRL_OK;
    }
    const bool ends = f->location & 1 && !grid->periodic[0];
    if (ends && first[0] == 0) row[0] *= 0.5;
    if (ends && first[0] + span->n - 1 == grid->cells[0]) row[span->n - 1] *= 0.5;
    trl_sum_add(&sum[first[f->axis]], row, span->n);
    return TRL_OK;
}

/* This rank's part of a profile. */
static trl_err sum_one(trl_simulation *sim, const profile *f, int64_t (*words)[TRLI_PARTIAL_WORDS])
{
    trl_loop *loop = sim->profiles->loop;
    const int chunks = trli_span_chunks(loop, sim->layout, f->location);
    gathering g = {.sim = sim, .profile = f};
    trl_err err = TRL_OK;
    TRL_TRY(trli_frame_fetch(sim->frame, f->field));
    g.sum = trli_new(sim->ctx, (size_t)chunks * (size_t)f->columns, sizeof *g.sum);
    if (!g.sum) TRL_TRY(trli_no_memory(sim->ctx, NULL, "for a profile of %d points", f->columns));
    for (int i = 0; i < chunks * f->columns; ++i) trl_sum_clear(&g.sum[i]);
    TRL_TRY(trli_span_sweep(loop, sim->layout, f->location, gather, &g));
    for (int i = f->columns; i < chunks * f->columns; ++i) trl_sum_merge(&g.sum[i % f->columns], &g.sum[i]);
    for (int i = 0; i < f->columns; ++i) trli_partial_pack_sum(&(trli_partial){.sum = g.sum[i]}, words[i]);
done:
    trli_free(g.sum);
    return err;
}

/* Of all profiles, on its way to the other ranks; with an error it says so. */
static trl_err send_sums(trl_simulation *sim, trl_err *own)
{
    trli_batch_run *m = &sim->profiles->sums;
    int64_t(*words)[TRLI_PARTIAL_WORDS] = m->sum;
    memset(m->sum, 0, (size_t)m->nsums * sizeof *m->sum);
    for (int i = 0; i < sim->problem->nprofiles && *own == TRL_OK; ++i) {
        *own = sum_one(sim, &sim->profiles->list[i], words);
        words += sim->profiles->list[i].columns;
    }
    if (*own != TRL_OK) trli_partial_spoil_sum(m->sum[0]);
    return trli_batch_post(sim->frame, m);
}

trl_err trli_profiles_begin(trl_simulation *sim, trl_err *own)
{
    if (!sim->profiles) return TRL_OK;
    const bool failed = trli_late_is_failed(sim); /* of which the others hear otherwise */
    const trl_err made = trli_run_deferring(sim, sim->profiles->program);
    if (!trli_was_made(sim, made)) return trl_context_agree(sim->ctx, made);
    if (*own == TRL_OK) *own = made;
    trl_err part = failed ? TRL_ERR_NUMERICS : *own;
    const trl_err err = send_sums(sim, &part);
    if (!failed) *own = part;
    return err;
}

trl_err trli_profiles_end(trl_simulation *sim, double *value, bool *failed)
{
    struct trli_profiles *all = sim->profiles;
    const int64_t(*words)[TRLI_PARTIAL_WORDS];
    trl_err err = TRL_OK;
    if (!all) return TRL_OK;
    TRL_TRY(trli_batch_await(sim->frame, &all->sums));
    *failed |= trli_partial_spoilt_sum(all->sums.sum[0]);
    words = (const int64_t(*)[TRLI_PARTIAL_WORDS])all->sums.sum;
    for (int i = 0; i < sim->problem->nprofiles; ++i)
        for (int k = 0; k < all->list[i].columns; ++k)
            *value++ = trli_partial_unpack_sum(*words++) / all->list[i].cells;
done:
    return err;
}

trl_err trli_profiles_find(trl_simulation *sim, double *value)
{
    trl_err own = TRL_OK, err = TRL_OK;
    bool failed = false;
    if (!sim->profiles) return TRL_OK;
    TRL_TRY(trli_program_run_agreed(sim, sim->profiles->program));
    TRL_TRY(send_sums(sim, &own));
    TRL_TRY(trli_profiles_end(sim, value, &failed));
    if (failed) err = trl_context_agree(sim->ctx, own);
done:
    return err;
}
