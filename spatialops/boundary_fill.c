/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Filling of ghosts and of points on sides. A side is swept in rows along one of its axes; the pieces cut a row into
 * runs, and the values of a run, taken once, serve all layers. */
#include "boundary_impl.h"
#include "field_impl.h"
#include "mask_impl.h"
#include "spans_impl.h"

#define TRL_GHOST double
#define TRL_GHOST_ENV const void *
#define TRL_GHOST_NUMBER(env, x) ((void)(env), (double)(x))
#define TRL_GHOST_ADD(env, p, q) ((void)(env), (p) + (q))
#define TRL_GHOST_SUB(env, p, q) ((void)(env), (p) - (q))
#define TRL_GHOST_MUL(env, p, q) ((void)(env), (p) * (q))
#define TRL_GHOST_DIV(env, p, q) ((void)(env), (p) / (q))
#include "trl_boundary_body.h"

static double coordinate(const trli_side_fill *f, int axis, trl_lidx i)
{
    return trl_grid_coordinate(&f->boundary->layout->grid, f->boundary->location, axis, f->patch->first[axis] + i);
}

static void point_on_side(const trli_side_fill *f, const trl_lidx at[3], double x[3])
{
    const trl_grid *g = &f->boundary->layout->grid;
    for (int a = 0; a < 3; ++a) x[a] = coordinate(f, a, at[a]);
    x[f->axis] = f->side ? g->origin[f->axis] + g->length[f->axis] : g->origin[f->axis];
}

/* Index along the axis, in a location with or without points on the side, of the point on the side or else next to it.
 */
trl_lidx trli_side_edge(const trli_side_fill *f, trl_location location)
{
    return f->side ? f->patch->cells[f->axis] - 1 + trli_on_side(location, f->axis) : 0;
}

bool trli_side_holds(const trli_side_fill *f, const trl_bc *bc, const trl_lidx at[3])
{
    if (bc->where) {
        double x[3];
        point_on_side(f, at, x);
        if (!trli_condition_holds(bc->where(bc->where_data, x, f->t))) return false;
    }
    if (bc->mask) {
        trl_lidx in[3] = {at[0], at[1], at[2]};
        in[f->axis] = trli_side_edge(f, trl_mask_location(bc->mask));
        return trl_mask_holds(bc->mask, f->local, in[0], in[1], in[2]);
    }
    return true;
}

/* The first piece that holds; the last one does everywhere. */
static int piece_at(const trli_side_fill *f, const trl_lidx at[3])
{
    int i = 0;
    while (i < f->npieces - 1 && !trli_side_holds(f, &f->piece[i].bc, at)) ++i;
    return i;
}

trl_err trli_side_values(const trli_side_fill *f, const trl_bc_value *value, const trli_side_run *r,
                         double values[TRLI_RUN_POINTS])
{
    if (value->field) {
        trl_array array;
        trl_err err = trl_field_read(value->field, f->local, &array);
        if (err != TRL_OK) return err;
        trl_lidx in[3] = {r->at[0], r->at[1], r->at[2]};
        in[f->axis] = trli_side_edge(f, trl_field_location(value->field));
        const double *from = (const double *)array.at + trl_array_offset(&array, in[0], in[1], in[2]);
        for (trl_lidx i = 0; i < r->n; ++i) values[i] = from[i * array.stride[f->row_axis]];
        return TRL_OK;
    }
    if (value->function == NULL) {
        for (trl_lidx i = 0; i < r->n; ++i) values[i] = value->number;
        return TRL_OK;
    }
    double x[3];
    point_on_side(f, r->at, x);
    for (trl_lidx i = 0; i < r->n; ++i) {
        x[f->row_axis] = coordinate(f, f->row_axis, r->at[f->row_axis] + i);
        values[i] = value->function(value->data, x, f->t);
    }
    return TRL_OK;
}

/* What a run needs to know of its piece, with robin at b = 0 made a dirichlet. */
typedef struct run_values {
    trl_bc_kind kind;
    double a[TRLI_RUN_POINTS], b[TRLI_RUN_POINTS], c[TRLI_RUN_POINTS];
} run_values;

bool trli_bc_is_zero(const trl_bc_value *value)
{
    return !value->field && !value->function && value->number == 0;
}

/* Whether a piece sets anything now: of the points on a side only those that it fixes. */
bool trli_side_takes_part(const trli_side_fill *f, const trl_bc *bc)
{
    return f->layers > 0 || bc->kind == TRL_BC_DIRICHLET || bc->kind == TRL_BC_EXPRESSION ||
           (bc->kind == TRL_BC_ROBIN && trli_bc_is_zero(&bc->b));
}

static trl_err take_run(const trli_side_fill *f, const trl_bc *bc, const trli_side_run *r, run_values *v)
{
    trl_err err = TRL_OK;
    v->kind = bc->kind;
    if (bc->kind == TRL_BC_OUTFLOW) return TRL_OK;
    TRL_TRY(trli_side_values(f, &bc->value, r, v->a));
    if (bc->kind != TRL_BC_ROBIN) return TRL_OK;
    TRL_TRY(trli_side_values(f, &bc->c, r, v->c));
    if (trli_bc_is_zero(&bc->b)) {
        v->kind = TRL_BC_DIRICHLET;
        for (trl_lidx i = 0; i < r->n; ++i) v->a[i] = v->c[i] / v->a[i];
        return TRL_OK;
    }
    TRL_TRY(trli_side_values(f, &bc->b, r, v->b));
done:
    return err;
}

/* One layer of a run, by a rule of trl_boundary_body.h. */
static void fill_layer(const trli_side_fill *f, const trli_side_run *r, const run_values *v, int m)
{
    const bool on_side = trli_on_side(f->boundary->location, f->axis);
    const ptrdiff_t step = f->target.stride[f->row_axis];
    const ptrdiff_t inward = f->side ? -f->target.stride[f->axis] : f->target.stride[f->axis];
    const double distance = trl_ghost_span(on_side, m) * f->spacing;
    double *nearest = (double *)f->target.at + trl_array_offset(&f->target, r->at[0], r->at[1], r->at[2]);
    double *ghost = nearest - m * inward, *mirror = ghost + trl_ghost_span(on_side, m) * inward;
    /* A loop for each kind; of the values a, b, c it reads those that the kind has. */
#define FILL(KIND, A, B, C)                                                                                   \
    case KIND:                                                                                                \
        for (trl_lidx i = 0; i < r->n; ++i)                                                                   \
            ghost[i * step] =                                                                                 \
                trl_ghost_value(NULL, KIND, on_side, distance, mirror[i * step], nearest[i * step], A, B, C); \
        break
    switch (v->kind) {
        FILL(TRL_BC_DIRICHLET, v->a[i], 0, 0);
        FILL(TRL_BC_NEUMANN, v->a[i], 0, 0);
        FILL(TRL_BC_ROBIN, v->a[i], v->b[i], v->c[i]);
        FILL(TRL_BC_OUTFLOW, 0, 0, 0);
        FILL(TRL_BC_EXPRESSION, v->a[i], 0, 0);
    default:
        break;
    }
#undef FILL
}

/* All layers by the operator's base rule, then the one that it reads farthest out from the operator itself. */
static void fill_inverted(const trli_side_fill *f, const trli_side_run *r, const trli_piece_bc *piece, run_values *v)
{
    const trli_inversion *inversion = &piece->inversion;
    const trl_pass *pass = &piece->bc.op->term[0].pass[0];
    const ptrdiff_t step = f->target.stride[f->row_axis], along = f->target.stride[f->axis], outward = f->side ? 1 : -1;
    double value[TRLI_RUN_POINTS];
    v->kind = inversion->base;
    for (trl_lidx i = 0; i < r->n; ++i) {
        value[i] = v->a[i];
        v->a[i] *= inversion->factor;
    }
    for (int m = 1; m <= f->layers; ++m) fill_layer(f, r, v, m);
    double *edge = (double *)f->target.at + trl_array_offset(&f->target, r->at[0], r->at[1], r->at[2]);
    for (trl_lidx i = 0; i < r->n; ++i) {
        double *result = edge + i * step + outward * inversion->at * along, rest = value[i] / pass->scale;
        for (int p = 0; p < pass->npoints; ++p) {
            int offset = pass->point[p].offset[f->axis];
            if (inversion->at + outward * offset != inversion->layer)
                rest -= pass->point[p].weight * result[offset * along];
        }
        edge[i * step + outward * inversion->layer * along] = rest / inversion->weight;
    }
}

static trl_err fill_run(const trli_side_fill *f, const trli_piece_bc *piece, const trli_side_run *r)
{
    run_values v;
    trl_err err = TRL_OK;
    if (!trli_side_takes_part(f, &piece->bc)) return TRL_OK;
    TRL_TRY(take_run(f, &piece->bc, r, &v));
    if (f->layers == 0) {
        double *at = (double *)f->target.at + trl_array_offset(&f->target, r->at[0], r->at[1], r->at[2]);
        for (trl_lidx i = 0; i < r->n; ++i) at[i * f->target.stride[f->row_axis]] = v.a[i];
        return TRL_OK;
    }
    if (v.kind == TRL_BC_OPERATOR) {
        fill_inverted(f, r, piece, &v);
        return TRL_OK;
    }
    for (int m = 1; m <= f->layers; ++m) fill_layer(f, r, &v, m);
done:
    return err;
}

/* Points [0, n) of a row, n <= TRLI_RUN_POINTS, in runs of one piece. */
static trl_err fill_row(const trli_side_fill *f, const trl_lidx at[3], trl_lidx n)
{
    trl_err err = TRL_OK;
    trli_side_run r = {{at[0], at[1], at[2]}, 0};
    trl_lidx next[3] = {at[0], at[1], at[2]}, end = at[f->row_axis] + n;
    while (r.at[f->row_axis] < end) {
        int piece = f->npieces == 1 ? 0 : piece_at(f, r.at);
        next[f->row_axis] = f->npieces == 1 ? end : r.at[f->row_axis] + 1;
        while (next[f->row_axis] < end && piece_at(f, next) == piece) ++next[f->row_axis];
        r.n = next[f->row_axis] - r.at[f->row_axis];
        TRL_TRY(fill_run(f, &f->piece[piece], &r));
        r.at[f->row_axis] = next[f->row_axis];
    }
done:
    return err;
}

/* box: what is set. */
static trl_err call_modifier(const trli_side_fill *f, const trl_box *box)
{
    const trl_bc *bc = &f->piece[0].bc;
    const trl_bc_call call = {f->boundary->layout, f->local, f->axis, f->side, f->layers == 0, f->t, &f->target, *box};
    trl_err err = TRL_OK;
    for (int d = 0; d < bc->ndependencies; ++d) {
        const trl_bc_dependency *dependency = &bc->dependency[d];
        trl_box read = *box;
        read.lo[f->axis] = trli_side_edge(f, trl_field_location(dependency->field));
        read.hi[f->axis] = read.lo[f->axis] + 1;
        for (int a = 0; a < 3; ++a) {
            read.lo[a] += dependency->reads.lo[a];
            read.hi[a] += dependency->reads.hi[a];
        }
        TRL_TRY(trl_field_require(dependency->field, f->local, &read));
    }
    err = bc->modify(bc->modify_data, &call);
done:
    return err;
}

/* That the fields of values are valid on the side, and masks wide enough. range: the side's own axes. */
static trl_err check_reads(const trli_side_fill *f, const trl_box *range)
{
    trl_err err = TRL_OK;
    for (int i = 0; i < f->npieces; ++i) {
        const trl_bc *bc = &f->piece[i].bc;
        const trl_bc_value *const value[3] = {&bc->value, &bc->b, &bc->c};
        for (int j = 0; j < 3; ++j) {
            trl_box box = *range;
            if (!value[j]->field || !trli_side_takes_part(f, bc)) continue;
            box.lo[f->axis] = trli_side_edge(f, trl_field_location(value[j]->field));
            box.hi[f->axis] = box.lo[f->axis] + 1;
            TRL_TRY(trl_field_require(value[j]->field, f->local, &box));
        }
        for (int a = 0; bc->mask && a < 3; ++a) {
            if (a == f->axis) continue;
            int needs = f->target.owned.lo[a] - range->lo[a], above = range->hi[a] - f->target.owned.hi[a];
            if (above > needs) needs = above;
            if (needs <= trl_mask_ghosts(bc->mask)) continue;
            return trl_fail(f->boundary->layout->ctx, TRL_ERR_USAGE, NULL,
                            "boundary condition on %c%c: its mask has %d layers of ghosts, and %d are filled along %c",
                            trli_axis_name(f->axis), "-+"[f->side], trl_mask_ghosts(bc->mask), needs,
                            trli_axis_name(a));
        }
    }
done:
    return err;
}

/* range: the side's own axes; along the axis across it is not read. *done = false: the device cannot do it. */
static trl_err fill_side(const trli_side_fill *f, const trl_box *range, bool *done)
{
    trl_err err = TRL_OK;
    int r = f->row_axis, q = 3 - f->axis - r;
    trl_lidx at[3];
    if (f->piece[0].bc.kind == TRL_BC_MODIFIER) {
        trl_box box = *range;
        box.lo[f->axis] = f->layers == 0 ? f->edge : f->side ? f->edge + 1 : f->edge - f->layers;
        box.hi[f->axis] = box.lo[f->axis] + (f->layers == 0 ? 1 : f->layers);
        return call_modifier(f, &box);
    }
    TRL_TRY(check_reads(f, range));
    if (f->device) return trli_side_there(f, range, done);
    at[f->axis] = f->edge;
    for (at[q] = range->lo[q]; at[q] < range->hi[q]; ++at[q])
        for (at[r] = range->lo[r]; at[r] < range->hi[r]; at[r] += TRLI_RUN_POINTS)
            TRL_TRY(fill_row(f, at, range->hi[r] - at[r] < TRLI_RUN_POINTS ? range->hi[r] - at[r] : TRLI_RUN_POINTS));
done:
    return err;
}

/* How many layers can be set: as many as are held, but mirrored ones have interior values only as far as these go. */
static trl_err count_layers(const trli_side_fill *f, int *layers)
{
    const trl_box *held = &f->target.held, *owned = &f->target.owned;
    int on_side = trli_on_side(f->boundary->location, f->axis), reach = (int)f->inside - on_side;
    int all = f->side ? held->hi[f->axis] - owned->hi[f->axis] : owned->lo[f->axis] - held->lo[f->axis];
    *layers = all;
    for (int i = 0; i < f->npieces; ++i) {
        const trli_piece_bc *piece = &f->piece[i];
        trl_bc_kind kind = piece->bc.kind;
        bool mirrors =
            kind == TRL_BC_DIRICHLET || kind == TRL_BC_NEUMANN || kind == TRL_BC_ROBIN || kind == TRL_BC_OPERATOR;
        if (mirrors && *layers > reach) *layers = reach;
    }
    for (int i = 0; i < f->npieces; ++i) {
        const trli_piece_bc *piece = &f->piece[i];
        if (piece->bc.kind != TRL_BC_OPERATOR) continue;
        const trl_offsets reads = trl_footprint_hull(&piece->bc.op->reads[0]);
        int deepest = (f->side ? -reads.lo[f->axis] : reads.hi[f->axis]) - piece->inversion.at;
        if (piece->inversion.layer <= *layers && deepest < f->inside) continue;
        return trl_fail(f->boundary->layout->ctx, TRL_ERR_USAGE, NULL,
                        "boundary condition on %c%c: to invert %s the field needs %d layers of ghosts and %d points "
                        "inside; it has %d "
                        "and %d",
                        trli_axis_name(f->axis), "-+"[f->side], piece -> bc.op->name, piece->inversion.layer,
                        deepest + 1 > piece->inversion.layer ? deepest + 1 : piece->inversion.layer, all,
                        (int)f->inside);
    }
    return TRL_OK;
}

typedef struct fill_job {
    const trl_boundary *boundary;
    trl_field *field;
    double t;
    bool planes;              /* set the points on the sides, not the ghosts */
    trl_field_device *device; /* that does it; NULL: the host */
    bool done;                /* by the device: with all that there is */
} fill_job;

/* False where the patch is not at this side, or the side has no condition. */
static bool begin_side(const fill_job *job, int p, int axis, int side, trli_side_fill *f)
{
    const trl_boundary *b = job->boundary;
    const trl_layout *layout = b->layout;
    const trli_pieces *pieces = &b->side[2 * axis + side];
    *f = (trli_side_fill){.boundary = b,
                          .patch = &layout->patch[p],
                          .local = p,
                          .axis = axis,
                          .side = side,
                          .row_axis = axis == 0 ? 1 : 0,
                          .npieces = pieces->n,
                          .piece = pieces->piece,
                          .t = job->t,
                          .device = job->device,
                          .spacing = layout->grid.spacing[axis]};
    f->edge = trli_side_edge(f, b->location);
    return f->npieces > 0 && trl_patch_at_side(layout, f->patch, axis, side);
}

static trl_err set_planes(fill_job *job, int p, const trl_array *target)
{
    trl_err err = TRL_OK;
    trli_side_fill f;
    for (int a = 0; a < 3; ++a) {
        if (!trli_on_side(job->boundary->location, a)) continue;
        for (int s = 0; s < 2; ++s) {
            if (!begin_side(job, p, a, s, &f)) continue;
            f.target = *target;
            TRL_TRY(fill_side(&f, &target->owned, &job->done));
            if (!job->done) return TRL_OK;
        }
    }
done:
    return err;
}

static trl_err fill_ghosts(fill_job *job, int p, const trl_array *target)
{
    trl_err err = TRL_OK;
    trl_box valid = trl_field_valid(job->field, p);
    trli_side_fill f;
    for (int s = 0; s < 6; ++s) { /* what earlier fills left there is not trusted */
        if (!begin_side(job, p, s / 2, s % 2, &f)) continue;
        if (s % 2 == 0) valid.lo[s / 2] = target->owned.lo[s / 2];
        if (s % 2 == 1) valid.hi[s / 2] = target->owned.hi[s / 2];
    }
    for (int a = 0; a < 3; ++a) {
        const trl_box before = valid;
        for (int s = 0; s < 2; ++s) {
            if (!begin_side(job, p, a, s, &f)) continue;
            f.target = *target;
            f.inside = before.hi[a] - before.lo[a];
            TRL_TRY(count_layers(&f, &f.layers));
            if (f.layers == 0) continue;
            TRL_TRY(fill_side(&f, &before, &job->done));
            if (!job->done) return TRL_OK;
            if (s == 0) valid.lo[a] -= f.layers;
            if (s == 1) valid.hi[a] += f.layers;
        }
    }
    err = trl_field_set_valid(job->field, p, &valid);
done:
    return err;
}

static trl_err run_patch(void *data, int chunk, int chunks, int worker)
{
    fill_job *job = data;
    trl_array target;
    trl_err err = TRL_OK;
    (void)chunks, (void)worker;
    TRL_TRY(job->device ? trli_field_there(job->field, chunk, true, &target)
                        : trl_field_array(job->field, chunk, &target));
    err = job->planes ? set_planes(job, chunk, &target) : fill_ghosts(job, chunk, &target);
done:
    return err;
}

static trl_err check_target(const trl_boundary *b, const trl_field *field)
{
    if (trl_field_layout(field) != b->layout || trl_field_location(field) != b->location)
        return trl_fail(b->layout->ctx, TRL_ERR_USAGE, NULL,
                        "field '%s' is at %s and its boundary conditions are for %s, or their layouts differ",
                        trl_field_name(field), trl_location_name(trl_field_location(field)),
                        trl_location_name(b->location));
    for (int s = 0; s < 6; ++s) {
        if (b->side[s].n == 0) continue;
        const trli_piece_bc *last = &b->side[s].piece[b->side[s].n - 1];
        if (!last->bc.where && !last->bc.mask) continue;
        return trl_fail(
            b->layout->ctx, TRL_ERR_USAGE, NULL,
            "boundary condition on %c%c: the last piece must hold everywhere; add one without `where` and mask",
            trli_axis_name(s / 2), "-+"[s % 2]);
    }
    return trli_span_require(field);
}

/* Whether a device can do it: it calls no modifiers. */
static bool suits_devices(const trl_boundary *b)
{
    for (int s = 0; s < 6; ++s)
        for (int i = 0; i < b->side[s].n; ++i)
            if (b->side[s].piece[i].bc.kind == TRL_BC_MODIFIER) return false;
    return true;
}

/* What workers read and write, where it does not live on the host. */
static trl_err bring(const fill_job *job)
{
    const trl_boundary *b = job->boundary;
    trl_err err = TRL_OK;
    for (int s = 0; s < 6; ++s)
        for (int i = 0; i < b->side[s].n; ++i) {
            const trl_bc *bc = &b->side[s].piece[i].bc;
            const trl_bc_value *const value[3] = {&bc->value, &bc->b, &bc->c};
            for (int v = 0; v < 3; ++v)
                if (value[v]->field && value[v]->field->device) TRL_TRY(trli_field_bring(value[v]->field, false));
            for (int d = 0; d < bc->ndependencies; ++d)
                if (bc->dependency[d].field->device) TRL_TRY(trli_field_bring(bc->dependency[d].field, false));
        }
    if (job->field->device) TRL_TRY(trli_field_bring(job->field, true));
done:
    return err;
}

static trl_err run(fill_job *job, trl_loop *loop)
{
    const int n = job->boundary->layout->nlocal;
    trl_err err = TRL_OK;
    job->done = true;
    job->device = suits_devices(job->boundary) ? job->field->device : NULL;
    if (job->device) {
        TRL_TRY(trl_loop_run(NULL, n, run_patch, job));
        for (int p = 0; p < n; ++p) trli_field_changed_there(job->field, p);
        if (job->done) return TRL_OK;
    }
    job->done = true;
    job->device = NULL;
    TRL_TRY(bring(job));
    err = trl_loop_run(loop, n, run_patch, job);
done:
    return err;
}

trl_err trl_boundary_fill(const trl_boundary *boundary, trl_loop *loop, trl_field *field, double t)
{
    fill_job job = {.boundary = boundary, .field = field, .t = t};
    const trl_err err = check_target(boundary, field);
    return err != TRL_OK ? err : run(&job, loop);
}

trl_err trl_boundary_set_sides(const trl_boundary *boundary, trl_loop *loop, trl_field *field, double t)
{
    fill_job job = {.boundary = boundary, .field = field, .t = t, .planes = true};
    bool sets = false;
    trl_err err = TRL_OK;
    TRL_TRY(check_target(boundary, field));
    for (int s = 0; s < 6; ++s) sets = sets || (trli_on_side(boundary->location, s / 2) && boundary->side[s].n > 0);
    if (!sets) return TRL_OK;
    TRL_TRY(run(&job, loop));
    trl_field_invalidate_ghosts(field);
done:
    return err;
}
