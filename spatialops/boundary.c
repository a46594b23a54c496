/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include <math.h>
#include <string.h>

#include "boundary_impl.h"

trl_err trl_boundary_create(const trl_layout *layout, trl_location location, trl_boundary **result)
{
    void *memory;
    trl_err err = trl_memory_alloc(layout->ctx, sizeof **result, "boundary conditions", &memory);
    *result = NULL;
    if (err != TRL_OK) return err;
    *result = memory;
    **result = (trl_boundary){.layout = layout, .location = trl_location_on(location, layout->grid.dim)};
    return TRL_OK;
}

void trl_boundary_destroy(trl_boundary **boundary)
{
    if (*boundary == NULL) return;
    trl_context *ctx = (*boundary)->layout->ctx;
    for (int s = 0; s < 6; ++s) {
        const trli_pieces *side = &(*boundary)->side[s];
        for (int i = 0; i < side->n; ++i) {
            void *dependency = side->piece[i].dependency;
            trl_memory_free(ctx, &dependency);
        }
        trli_free(side->piece);
    }
    void *self = *boundary;
    trl_memory_free(ctx, &self);
    *boundary = NULL;
}

/* A side, for messages. */
typedef struct place {
    const trl_boundary *boundary;
    int axis, side;
} place;

static trl_err refuse(const place *at, const char *what)
{
    return trl_fail(at->boundary->layout->ctx, TRL_ERR_USAGE, NULL, "boundary condition on %c%c at %s: %s",
                    trli_axis_name(at->axis), "-+"[at->side], trl_location_name(at->boundary->location), what);
}

static bool everywhere(const trl_bc *bc)
{
    return bc->where == NULL && bc->mask == NULL;
}

static trl_err check_position(const place *at, const trl_bc *bc)
{
    const trl_boundary *b = at->boundary;
    const trli_pieces *side = &b->side[2 * at->axis + at->side];
    if (at->axis >= b->layout->grid.dim) return refuse(at, "the grid lacks this axis");
    if (b->layout->grid.periodic[at->axis]) return refuse(at, "the axis is periodic, and has no sides");
    if (bc->kind == TRL_BC_MODIFIER && (!everywhere(bc) || side->n > 0))
        return refuse(at, "a modifier sets its whole side and cannot stand beside other pieces");
    if (side->n > 0) {
        const trli_piece_bc *last = &side->piece[side->n - 1];
        if (everywhere(&last->bc))
            return refuse(at, "the piece before this one holds everywhere, so that this one never would");
    }
    return TRL_OK;
}

static trl_err check_value(const place *at, const trl_bc_value *value)
{
    const trl_boundary *b = at->boundary;
    if (value->field == NULL) return TRL_OK;
    if (trl_field_layout(value->field) != b->layout) return refuse(at, "the field of a value has another layout");
    int differs = (int)(trl_field_location(value->field) ^ b->location) & ~(1 << at->axis);
    return differs ? refuse(at, "the field of a value is at another location along the side") : TRL_OK;
}

static trl_err check_mask(const place *at, const trl_mask *mask)
{
    const trl_boundary *b = at->boundary;
    if (mask == NULL) return TRL_OK;
    if (trl_mask_layout(mask) != b->layout) return refuse(at, "the mask has another layout");
    if ((int)trl_mask_location(mask) != ((int)b->location | 1 << at->axis))
        return refuse(at, "the mask of a piece is at the field's location with the bit of the side's axis set");
    return TRL_OK;
}

static trl_err check_modifier(const place *at, const trl_bc *bc)
{
    if (bc->modify == NULL) return refuse(at, "a modifier needs its function");
    for (int d = 0; d < bc->ndependencies; ++d)
        if (trl_field_layout(bc->dependency[d].field) != at->boundary->layout)
            return refuse(at, "a field that a modifier depends on has another layout");
    return TRL_OK;
}

/* The rule of the layers that are not solved for: with the meaning of the operator, to its order. */
static void choose_base(trli_inversion *inversion, const trl_pass *pass, int axis, int side, double spacing)
{
    double total = 0, size = 0, moment = 0;
    for (int i = 0; i < pass->npoints; ++i) {
        total += pass->point[i].weight;
        size += fabs(pass->point[i].weight);
        moment += pass->point[i].weight * pass->point[i].offset[axis];
    }
    inversion->base = TRL_BC_NEUMANN;
    inversion->factor = 0;
    if (fabs(total) > 1e-12 * size) {
        inversion->base = TRL_BC_DIRICHLET;
        inversion->factor = 1 / (pass->scale * total);
    } else if (fabs(moment) > 1e-12 * size) {
        inversion->factor = (side ? 1 : -1) / (pass->scale * moment * spacing);
    }
}

static trl_err invert(const place *at, const trl_operator *op, trli_inversion *inversion)
{
    const trl_boundary *b = at->boundary;
    const int a = at->axis, outward = at->side ? 1 : -1;
    if (op == NULL) return refuse(at, "an operator is missing");
    if (op->ninputs != 1 || op->from[0] != b->location)
        return refuse(at, "the operator reads fields of another location");
    if (op->nterms != 1 || op->term[0].npasses != 1 || ((int)(op->to ^ b->location) & ~(1 << a)))
        return refuse(at, "only operators along the axis of the side can be inverted");
    const trl_pass *pass = &op->term[0].pass[0];
    int farthest = outward * pass->point[0].offset[a];
    for (int i = 0; i < pass->npoints; ++i) {
        const trl_stencil_point *p = &pass->point[i];
        for (int other = 0; other < 3; ++other)
            if (other != a && p->offset[other])
                return refuse(at, "only operators along the axis of the side can be inverted");
        if (outward * p->offset[a] > farthest) farthest = outward * p->offset[a];
    }
    /* Its point on the side, or the one next to it. On the minus side the plane has the index of the point next to it,
     * on the plus side the next one. */
    inversion->at = at->side ? trli_on_side(op->to, a) - trli_on_side(b->location, a) : 0;
    if (inversion->at + farthest < 1) inversion->at = 1 - farthest;
    inversion->layer = inversion->at + farthest;
    inversion->weight = 0;
    for (int i = 0; i < pass->npoints; ++i)
        if (outward * pass->point[i].offset[a] == farthest) inversion->weight += pass->point[i].weight;
    if (inversion->weight == 0) return refuse(at, "the operator gives its outermost point no weight");
    choose_base(inversion, pass, a, at->side, b->layout->grid.spacing[a]);
    return TRL_OK;
}

trl_err trl_boundary_add(trl_boundary *boundary, int axis, int side, const trl_bc *bc)
{
    trl_err err = TRL_OK;
    trl_context *ctx = boundary->layout->ctx;
    trli_piece_bc piece = {.bc = *bc};
    void *memory = NULL;
    if (axis < 0 || axis > 2 || side < 0 || side > 1)
        return trl_fail(ctx, TRL_ERR_USAGE, NULL,
                        "boundary condition on side %d of axis %d; sides are 0 and 1, axes 0 to 2", side, axis);
    const place at = {boundary, axis, side};
    trli_pieces *pieces = &boundary->side[2 * axis + side];
    TRL_TRY(check_position(&at, bc));
    TRL_TRY(check_value(&at, &bc->value));
    TRL_TRY(check_value(&at, &bc->b));
    TRL_TRY(check_value(&at, &bc->c));
    TRL_TRY(check_mask(&at, bc->mask));
    if (bc->kind == TRL_BC_MODIFIER) TRL_TRY(check_modifier(&at, bc));
    if (bc->kind == TRL_BC_OPERATOR) TRL_TRY(invert(&at, bc->op, &piece.inversion));
    if (!trli_make_room(ctx, &pieces->piece, pieces->n, 1, &pieces->capacity, sizeof piece))
        TRL_TRY(trli_no_memory(ctx, NULL, "for boundary conditions"));
    if (bc->kind == TRL_BC_MODIFIER && bc->ndependencies > 0) {
        size_t bytes = (size_t)bc->ndependencies * sizeof *bc->dependency;
        TRL_TRY(trl_memory_alloc(ctx, bytes, "boundary conditions", &memory));
        piece.dependency = memcpy(memory, bc->dependency, bytes);
    }
    piece.bc.dependency = piece.dependency;
    pieces->piece[pieces->n++] = piece;
done:
    return err;
}
