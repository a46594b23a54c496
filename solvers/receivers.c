/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Values at points: a program computes the fields, each rank interpolates at the points that lie in its patches, and
 * one message collects all of them. Only exact copies are collected: bits depend on no rank. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "context_impl.h"
#include "lifecycle_impl.h"
#include "lower_impl.h"
#include "memory_impl.h"
#include "simulation_impl.h"
#include "spatialops_impl.h"
#include "symbols_impl.h"

enum { LOCATIONS = 8, FAR = 64 /* from a side, in points */ };

/* A point of this rank, as seen from a location: where the values around it are. */
typedef struct receiver_place {
    int number, patch; /* which point; local patch */
    trl_lidx at[3];    /* the first of the points around it */
    double weight[3];  /* of the next ones, 0: they are not read */
} receiver_place;

/* The points of this rank at a location. */
typedef struct receiver_table {
    bool made;
    int n;
    receiver_place *place; /* [n] by patches */
    trli_corner *corner;   /* [n] what is read of each */
    trl_offsets side;      /* as trli_read_step says, of the points of all ranks */
} receiver_table;

typedef struct received_value {
    const char *name;
    trl_location location;
    int field; /* of the model */
} received_value;

typedef struct trli_receivers {
    trli_program *program;
    receiver_table table[LOCATIONS];
    received_value *value;
    int32_t nvalues, capacity;
    double *received;                     /* [nvalues][points] */
    double (*around)[TRLI_CORNER_VALUES]; /* [points] */
    const double **row;
} trli_receivers;

static trl_err fail_outside(const trl_simulation *sim, int i, int axis)
{
    const trl_receivers_entry *r = &sim->problem->receivers;
    const trl_grid *g = &sim->layout->grid;
    return trl_fail(sim->ctx, TRL_ERR_INPUT, &r->place,
                    "receiver %d of %d (from 0) lies outside the domain: %c = %g, and the domain goes from %g to %g", i,
                    r->n, 'x' + axis, r->at[(ptrdiff_t)i * g->dim + axis], g->origin[axis],
                    g->origin[axis] + g->length[axis]);
}

static trl_err check_points(const trl_simulation *sim)
{
    const trl_receivers_entry *r = &sim->problem->receivers;
    const trl_grid *g = &sim->layout->grid;
    for (int i = 0; i < r->n; ++i)
        for (int a = 0; a < g->dim; ++a) {
            double x = r->at[(ptrdiff_t)i * g->dim + a];
            if (!trli_in_domain(g, a, &x)) return fail_outside(sim, i, a);
        }
    return TRL_OK;
}

/* Find a point from a location; -1: it is another rank's. */
static int find_patch(const trl_simulation *sim, trl_location location, int i, receiver_place *place, trl_offsets *side)
{
    const trl_layout *layout = sim->layout;
    const trl_grid *g = &layout->grid;
    trl_gidx cell[3] = {0}, first[3] = {0};
    *place = (receiver_place){.number = i};
    for (int a = 0; a < g->dim; ++a) {
        trl_gidx point, last = trl_grid_points(g, location, a) - 1;
        double x = sim->problem->receivers.at[(ptrdiff_t)i * g->dim + a];
        int by;
        (void)trli_in_domain(g, a, &x); /* checked; it may be an end but for rounding */
        trli_locate(g, a, location, x, &point, &by, &place->weight[a]);
        first[a] = point + by;
        cell[a] = point < g->cells[a] ? point : g->cells[a] - 1;
        const trl_gidx least = first[a], most = first[a] + (place->weight[a] != 0) - last;
        if (least < side->lo[a]) side->lo[a] = (trl_lidx)least;
        if (most > side->hi[a]) side->hi[a] = (trl_lidx)most;
    }
    const int p = trl_layout_local(layout, trl_layout_owner(layout, cell));
    for (int a = 0; a < g->dim && p >= 0; ++a) place->at[a] = (trl_lidx)(first[a] - layout->patch[p].first[a]);
    return p;
}

static int compare_places(const void *x, const void *y)
{
    const receiver_place *a = x, *b = y;
    if (a->patch != b->patch) return a->patch < b->patch ? -1 : 1;
    return (a->number > b->number) - (a->number < b->number);
}

static trl_err make_table(trl_simulation *sim, trl_location location)
{
    receiver_table *t = &sim->receivers->table[location];
    const int n = sim->problem->receivers.n;
    if (t->made) return TRL_OK;
    t->made = true;
    t->side = (trl_offsets){{FAR, FAR, FAR}, {-FAR, -FAR, -FAR}};
    t->place = trli_new(sim->ctx, (size_t)n, sizeof *t->place);
    t->corner = trli_new(sim->ctx, (size_t)n, sizeof *t->corner);
    if (!t->place || !t->corner) return trli_no_memory(sim->ctx, &sim->problem->receivers.place, "for %d receivers", n);
    for (int i = 0; i < n; ++i) {
        const int patch = find_patch(sim, location, i, &t->place[t->n], &t->side);
        if (patch < 0) continue;
        t->place[t->n++].patch = patch;
    }
    qsort(t->place, (size_t)t->n, sizeof *t->place, compare_places);
    for (int i = 0; i < t->n; ++i)
        for (int a = 0; a < 3; ++a) {
            t->corner[i].at[a] = t->place[i].at[a];
            t->corner[i].extent[a] = t->place[i].weight[a] != 0 ? 2 : 1;
        }
    return TRL_OK;
}

/* The field that holds a value in the program: an unknown's own, or one in which it is stored. */
static trl_err find_field(trl_simulation *sim, trli_instance *in, const char *name, trli_ir_value value,
                          trl_location location, int *field)
{
    const trli_node *n = trli_ir_node(&sim->model->ir, value);
    *field = n->index;
    if (n->op == TRLI_OP_FIELD && sim->model->field[n->index].location == location) return TRL_OK;
    return trli_program_store(in->program, name, "receivers read it", value, location, NULL, field);
}

static trl_err add_value(trl_simulation *sim, trli_instance *in, const char *name, trli_ir_value value,
                         trl_location location)
{
    trli_receivers *r = sim->receivers;
    received_value *v;
    trl_err err = TRL_OK;
    TRL_TRY(make_table(sim, location));
    if (!trli_make_room(sim->ctx, &r->value, r->nvalues, 1, &r->capacity, sizeof *r->value))
        TRL_TRY(trli_no_memory(sim->ctx, NULL, "for the values of receivers"));
    v = &r->value[r->nvalues++];
    *v = (received_value){.name = name, .location = location};
    err = find_field(sim, in, name, trli_ir_place(&sim->model->ir, value, location), location, &v->field);
done:
    return err;
}

static trl_err add_values(trl_simulation *sim, trli_instance *in, int i)
{
    const trl_receivers_entry *r = &sim->problem->receivers;
    const trl_text text = {r->value[i], r->value_place[i], true};
    trl_formula *formula = NULL;
    trli_operand f;
    trl_err err;
    TRL_TRY(trl_formula_parse(sim->ctx, &text, &formula));
    TRL_TRY(trli_lower(in, formula, sim->problem->parameters, &f));
    for (int c = 0; c < (f.components ? f.components : 1); ++c) {
        const char *name = f.components ? trli_model_name(sim->model, "%s.%c", r->value[i], "xyz"[c]) : r->value[i];
        const trl_location location = f.location[c] == TRLI_ANYWHERE ? TRL_CELL : (trl_location)f.location[c];
        TRL_TRY(add_value(sim, in, name, f.value[c], location));
    }
done:
    trl_formula_destroy(&formula);
    return err;
}

trl_err trli_receivers_compile(trl_simulation *sim)
{
    const trl_receivers_entry *entry = &sim->problem->receivers;
    trli_receivers *r;
    trli_instance *in = NULL;
    trl_err err = TRL_OK;
    if (entry->nvalues == 0) return TRL_OK;
    TRL_TRY(check_points(sim));
    r = sim->receivers = trli_new(sim->ctx, 1, sizeof *r);
    if (!r) TRL_TRY(trli_no_memory(sim->ctx, &entry->place, "for receivers"));
    TRL_TRY(trli_begin_observing(sim, "receive", &r->program, &in));
    for (int i = 0; i < entry->nvalues; ++i) TRL_TRY(add_values(sim, in, i));
    /* Behind all steps, or later ones would take the memory of what is read. */
    for (int v = 0; v < r->nvalues; ++v)
        TRL_TRY(trli_program_read(r->program, r->value[v].field, 1, &r->table[r->value[v].location].side));
    if ((int64_t)r->nvalues * entry->n > INT_MAX)
        TRL_TRY(trl_fail(sim->ctx, TRL_ERR_INPUT, &entry->place, "%d values at %d receivers are too many", r->nvalues,
                         entry->n));
    r->received = trli_new(sim->ctx, (size_t)r->nvalues * (size_t)entry->n, sizeof *r->received);
    r->row = trli_new(sim->ctx, (size_t)r->nvalues, sizeof *r->row);
    r->around = trli_new(sim->ctx, (size_t)entry->n, sizeof *r->around);
    if (!r->received || !r->row || !r->around)
        TRL_TRY(trli_no_memory(sim->ctx, &entry->place, "for %d receivers", entry->n));
    for (int v = 0; v < r->nvalues; ++v) r->row[v] = r->received + (ptrdiff_t)v * entry->n;
done:
    trli_instance_destroy(&in);
    return err;
}

void trli_receivers_destroy(trli_receivers **receivers)
{
    trli_receivers *r = *receivers;
    *receivers = NULL;
    if (!r) return;
    for (int l = 0; l < LOCATIONS; ++l) {
        trli_free(r->table[l].place);
        trli_free(r->table[l].corner);
    }
    trli_free(r->around);
    trli_free(r->value);
    trli_free(r->received);
    trli_free(r->row);
    trli_free(r);
}

/* The operations of `probe`, in its order: along x, then y, then z. */
static double interpolate(const double around[TRLI_CORNER_VALUES], const double weight[3], int dim)
{
    double corner[TRLI_CORNER_VALUES];
    int n = 1;
    memcpy(corner, around, sizeof corner);
    for (int a = 0; a < dim; ++a, n *= 2)
        for (int c = 0; c < TRLI_CORNER_VALUES; c += 2 * n)
            if (weight[a] != 0) corner[c] = (1 - weight[a]) * corner[c] + weight[a] * corner[c + n];
    return corner[0];
}

/* Those of one patch follow one another. */
static trl_err receive(const trl_simulation *sim, const received_value *value, double *received)
{
    const trli_receivers *r = sim->receivers;
    const receiver_table *t = &r->table[value->location];
    trl_err err = TRL_OK;
    for (int first = 0, end; first < t->n; first = end) {
        const int patch = t->place[first].patch;
        for (end = first + 1; end < t->n && t->place[end].patch == patch;) ++end;
        TRL_TRY(trli_frame_gather(sim->frame, value->field, patch, end - first, t->corner + first, r->around));
        for (int i = first; i < end; ++i)
            received[t->place[i].number] = interpolate(r->around[i - first], t->place[i].weight, sim->layout->grid.dim);
    }
done:
    return err;
}

trl_err trl_simulation_receive(trl_simulation *sim, const double *const **values)
{
    trli_receivers *r = sim ? sim->receivers : NULL;
    trl_err err = TRL_OK;
    if (!sim || !values) return TRL_ERR_USAGE;
    if (!r) return trl_fail(sim->ctx, TRL_ERR_USAGE, NULL, "this problem has no receivers");
    const int n = sim->problem->receivers.n;
    trli_set_present(sim);
    TRL_TRY(trli_program_run_agreed(sim, r->program));
    memset(r->received, 0, (size_t)r->nvalues * (size_t)n * sizeof *r->received);
    for (int v = 0; v < r->nvalues && err == TRL_OK; ++v)
        err = receive(sim, &r->value[v], r->received + (ptrdiff_t)v * n);
    TRL_TRY(trl_context_agree(sim->ctx, err));
    /* All bits of a value are one rank's, and those of the others zero. */
    TRL_TRY(trli_allreduce(sim->ctx, r->received, r->nvalues * n, MPI_INT64_T, MPI_BOR));
    *values = r->row;
done:
    return err;
}

int trl_simulation_received(const trl_simulation *sim)
{
    return sim->receivers ? sim->receivers->nvalues : 0;
}

const char *trl_simulation_received_name(const trl_simulation *sim, int value)
{
    return sim->receivers->value[value].name;
}
