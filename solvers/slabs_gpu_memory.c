/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The grid in slabs in the memory of GPUs: planes across the last axis and lines along it, as slabs.c has them for
 * ranks, of one GPU after the other over all ranks. A GPU has tables of the plan, its planes, its lines, and what
 * elimination keeps of these, one behind another. */
#include <string.h>

#include "arithmetic_impl.h"
#include "context_impl.h"
#include "memory_impl.h"
#include "model_run_impl.h"
#include "slabs_gpu_impl.h"

static size_t whole_rows(size_t n)
{
    return (size_t)trli_ceil_div((int64_t)n, TRLI_LINES_MOST) * TRLI_LINES_MOST;
}

/* ---- tables ---- */

/* Laid out twice: to see how much there is, then with memory. */
static void put(double *memory, size_t *used, const void *from, size_t bytes, size_t *at)
{
    *at = from ? *used : 0;
    if (!from) return;
    if (memory) memcpy(memory + *used, from, bytes);
    *used += (bytes + sizeof(double) - 1) / sizeof(double);
}

static size_t lay_tables(const trli_direct_plan *p, trli_axis_tables table[3], double *memory)
{
    const size_t line = (size_t)p->axis[p->last].n * sizeof(double);
    const double *const row[3] = {p->lower, p->middle, p->upper};
    size_t used = 1; /* 0: there is none */
    for (int a = 0; a < 3; ++a) {
        const trli_transform *t = p->axis[a].transform;
        put(memory, &used, t ? t->table : NULL, t ? t->ntable * sizeof(double) : 0, &table[a].transform);
        put(memory, &used, t ? t->index : NULL, t ? t->nindex * sizeof(int) : 0, &table[a].index);
        put(memory, &used, p->axis[a].value, (size_t)p->axis[a].n * sizeof(double), &table[a].value);
        put(memory, &used, p->axis[a].weight, line, &table[a].weight);
        put(memory, &used, p->swept ? row[a] : NULL, line, &table[a].row);
    }
    return whole_rows(used);
}

/* ---- slabs ---- */

/* The extents and strides of a slab; returns its values. */
static size_t lay_slab(const trli_shuffle_part *part, trli_gpu_slab *s)
{
    for (int a = 0; a < 3; ++a) {
        s->lo[a] = part->lo[a];
        s->n[a] = part->hi[a] - part->lo[a];
    }
    s->local.stride[0] = 1;
    s->local.stride[1] = (ptrdiff_t)whole_rows((size_t)s->n[0]);
    s->local.stride[2] = s->local.stride[1] * s->n[1];
    return (size_t)(s->local.stride[2] * s->n[2]);
}

static void place_slab(trli_gpu_slab *s, double *at)
{
    s->local.at = at;
    s->view = s->local;
    for (int a = 0; a < 3; ++a) s->view.at -= s->lo[a] * s->view.stride[a];
}

/* Values are zero at first, and stay so where a row is filled up. */
static trl_err fill_member(const trli_slab_grid *grid, trli_slab_memory *m, int number, const trli_shuffle_part *planes,
                           const trli_shuffle_part *lines)
{
    trl_device *device = trli_team_member(m->team, number);
    trli_slab_member *to = &m->member[number];
    const size_t tables = lay_tables(grid->plan, m->table, NULL), of_planes = lay_slab(planes, &to->planes);
    const size_t of_lines = lines ? lay_slab(lines, &to->lines) : 0;
    const size_t above = !grid->plan->swept ? 0 : lines ? of_lines : of_planes, given = tables + of_planes + of_lines;
    void *memory = NULL;
    double *content = trli_new(m->ctx, given, sizeof *content);
    if (!content) return trli_no_memory(m->ctx, NULL, "for a direct solver");
    (void)lay_tables(grid->plan, m->table, content);
    const trl_err err =
        trli_device_upload(device, (given + above) * sizeof *content, content, given * sizeof *content, &memory);
    trli_free(content);
    if (err != TRL_OK) return err;
    to->memory = memory;
    place_slab(&to->planes, to->memory + tables);
    if (lines)
        place_slab(&to->lines, to->memory + tables + of_planes);
    else
        to->lines = to->planes;
    to->above = to->lines.local;
    to->above.at = to->memory + given;
    return TRL_OK;
}

/* ---- distributions ---- */

/* Parts of the grid for the GPUs of all ranks, and those of this one's first. */
static trl_err cut_grid(const trli_slab_grid *grid, const int *count, int axis, trli_boxes *boxes, int *own)
{
    trl_context *ctx = grid->sim->ctx;
    const int ranks = trl_context_ranks(ctx);
    int n = 0;
    for (int r = 0; r < ranks; ++r) {
        if (r == trl_context_rank(ctx)) *own = n;
        n += count[r];
    }
    *boxes = (trli_boxes){n, trli_new(ctx, (size_t)n, sizeof *boxes->part)};
    if (!boxes->part) return trli_no_memory(ctx, NULL, "for a direct solver");
    trli_cut_boxes(grid->line, axis, 1, n, boxes->part);
    for (int r = 0, i = 0; r < ranks; ++r)
        for (int k = 0; k < count[r]; ++k, ++i) {
            boxes->part[i].rank = r;
            boxes->part[i].array = k;
        }
    return TRL_OK;
}

static trl_err make_shuffles(const trli_slab_grid *grid, trli_slab_memory *m, const trli_boxes *planes,
                             const trli_boxes *lines)
{
    static const trli_boxes none = {0};
    const trl_layout *layout = grid->sim->layout;
    trl_device *device = trli_team_member(m->team, 0);
    trli_boxes patches = {0};
    trl_err err = TRL_OK;
    if (planes->n > 1) TRL_TRY(trli_shuffle_create(m->ctx, device, NULL, 1, planes, &none, lines, &m->inside));
    if (m->direct) goto done;
    TRL_TRY(trli_patch_boxes(m->ctx, layout, grid->location, grid->line, &patches));
    err = trli_shuffle_create(m->ctx, device, NULL, 1, &patches, &none, planes, &m->outside);
done:
    trli_free(patches.part);
    return err;
}

/* Whether each GPU reads the memory of all others. */
static bool reach_each_other(const trli_team *team)
{
    for (int i = 0; i < trli_team_members(team); ++i)
        for (int k = 0; k < trli_team_members(team); ++k)
            if (!trli_gpu_reaches(trli_team_member(team, i), trli_team_member(team, k)->space)) return false;
    return true;
}

trl_err trli_slab_memory_create(const trli_slab_grid *grid, uint32_t spaces, const int *count, bool takes_rows,
                                trli_slab_memory *m, const char **why)
{
    const trl_devices *devices = trl_workers_devices(grid->sim->model->run->workers);
    const int last = grid->plan->last;
    trli_boxes planes = {0}, lines = {0};
    int own = 0;
    trl_err err = TRL_OK;
    *why = NULL;
    *m = (trli_slab_memory){.ctx = grid->sim->ctx, .spaces = spaces};
    TRL_TRY(trli_team_create(devices, spaces, &m->team));
    if (!reach_each_other(m->team)) *why = "GPUs cannot read each other's memory";
    if (*why) goto done;
    TRL_TRY(cut_grid(grid, count, last, &planes, &own));
    TRL_TRY(cut_grid(grid, count, trli_other_axis(grid->line, last), &lines, &own));
    m->direct = takes_rows && grid->sim->layout->npatches == 1;
    for (int i = 0; i < trli_team_members(m->team); ++i)
        TRL_TRY(fill_member(grid, m, i, &planes.part[own + i], planes.n > 1 ? &lines.part[own + i] : NULL));
    err = make_shuffles(grid, m, &planes, &lines);
done:
    trli_free(planes.part);
    trli_free(lines.part);
    return err;
}

trl_err trli_slab_memory_connect(trli_slab_memory *m, bool near)
{
    trl_err err = TRL_OK;
    if (m->outside) TRL_TRY(trli_shuffle_connect(m->outside, near));
    if (m->inside) TRL_TRY(trli_shuffle_connect(m->inside, near));
    m->connected = true;
done:
    return err;
}

void trli_slab_memory_destroy(trli_slab_memory *m)
{
    const int members = m->team ? trli_team_members(m->team) : 0;
    for (int i = 0; i < members; ++i) { /* others may be reading there */
        trl_device *device = trli_team_member(m->team, i);
        device->ops->finish(device);
    }
    for (int i = 0; i < members; ++i) {
        trl_device *device = trli_team_member(m->team, i);
        if (m->member[i].memory) device->ops->release(device, m->member[i].memory);
    }
    trli_shuffle_destroy(&m->outside);
    trli_shuffle_destroy(&m->inside);
    trli_team_destroy(&m->team);
    *m = (trli_slab_memory){0};
}
