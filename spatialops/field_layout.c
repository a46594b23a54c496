/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Values go to another layout of their grid: what the patches of both have in common goes from the owner in the one to
 * the owner in the other, by a copy or in one message for each pair of ranks. */
#include <sched.h>
#include <string.h>

#include <arithmetic_impl.h>
#include <context_impl.h>

#include "exchange_impl.h"
#include "field_impl.h"
#include "memory_impl.h"

enum { FROM, TO }; /* fields of the exchange */

typedef struct piece_list {
    trli_exchange_piece *piece;
    int n, capacity;
} piece_list;

typedef struct route {
    trl_context *ctx;
    trl_location location;
    const trl_layout *layout[2];
    piece_list sends, receives, copies;
} route;

/* The points that two patches have in common; false: none. */
static bool find_common(const route *r, const trl_patch *source, const trl_patch *target, trli_exchange_piece *piece)
{
    const trl_box have = trl_patch_owned(r->layout[FROM], source, r->location),
                  want = trl_patch_owned(r->layout[TO], target, r->location);
    for (int a = 0; a < 3; ++a) {
        const trl_gidx lo = trli_max(source->first[a] + have.lo[a], target->first[a] + want.lo[a]),
                       hi = trli_min(source->first[a] + have.hi[a], target->first[a] + want.hi[a]);
        if (hi <= lo) return false;
        piece->from[a] = (trl_lidx)(lo - source->first[a]);
        piece->to[a] = (trl_lidx)(lo - target->first[a]);
        piece->extent[a] = (trl_lidx)(hi - lo);
    }
    return true;
}

/* Both ends of a message list its pieces by target and source, which takes the place of a direction. */
static trl_err add_piece(route *r, const trl_patch *source, const trl_patch *target, bool sends)
{
    const int me = trl_context_rank(r->ctx);
    const bool own = source->rank == me && target->rank == me;
    piece_list *list = own ? &r->copies : sends ? &r->sends : &r->receives;
    trli_exchange_piece piece = {.peer = sends ? target->rank : source->rank,
                                 .field = sends ? FROM : TO,
                                 .direction = source->id,
                                 .source = source->id,
                                 .target = target->id,
                                 .source_local = trl_layout_local(r->layout[FROM], source->id),
                                 .target_local = trl_layout_local(r->layout[TO], target->id),
                                 .value_bytes = sizeof(double)};
    if ((own && !sends) || !find_common(r, source, target, &piece)) return TRL_OK;
    if (!trli_make_room(r->ctx, &list->piece, list->n, 1, &list->capacity, sizeof piece))
        return trli_no_memory(r->ctx, NULL, "to move a field to another layout");
    list->piece[list->n++] = piece;
    return TRL_OK;
}

/* Add what a patch of this rank has in common with patches of the other layout. */
static trl_err add_pieces_of(route *r, const trl_patch *mine, bool sends)
{
    const trl_layout *other = r->layout[sends ? TO : FROM];
    trl_gidx cell[2][3];
    trl_patch corner[2];
    trl_err err = TRL_OK;
    for (int side = 0; side < 2; ++side) {
        for (int a = 0; a < 3; ++a) cell[side][a] = mine->first[a] + side * (mine->cells[a] - 1);
        corner[side] = trl_layout_patch(other, trl_layout_owner(other, cell[side]));
    }
    const int *lo = corner[0].index, *hi = corner[1].index;
    for (int k = lo[2]; k <= hi[2]; ++k)
        for (int j = lo[1]; j <= hi[1]; ++j)
            for (int i = lo[0]; i <= hi[0]; ++i) {
                const trl_patch its = trl_layout_patch(other, i + other->counts[0] * (j + other->counts[1] * k));
                TRL_TRY(add_piece(r, sends ? mine : &its, sends ? &its : mine, sends));
            }
done:
    return err;
}

static trl_err find_route(route *r)
{
    const trl_layout *from = r->layout[FROM], *to = r->layout[TO];
    trl_err err = TRL_OK;
    for (int p = 0; p < from->nlocal; ++p) TRL_TRY(add_pieces_of(r, &from->patch[p], true));
    for (int p = 0; p < to->nlocal; ++p) TRL_TRY(add_pieces_of(r, &to->patch[p], false));
done:
    return err;
}

/* Memory for all that comes. */
static trl_err touch_all(trl_field *field)
{
    trl_err err = TRL_OK;
    trl_array array;
    for (int p = 0; p < field->layout->nlocal; ++p) TRL_TRY(trl_field_array(field, p, &array));
done:
    return err;
}

trl_err trli_layout_move(const trl_layout *from, const trl_layout *to, trl_location location, trl_err local,
                         const trl_array *source, const trl_array *target)
{
    const trl_array *arrays[] = {[FROM] = source, [TO] = target};
    route r = {.ctx = from->ctx, .location = location, .layout = {from, to}};
    trl_exchange *plan = NULL, *exchange = NULL;
    bool done = false;
    trl_err err = local;
    if (err == TRL_OK) err = find_route(&r);
    if (err == TRL_OK)
        err = trli_exchange_plan_pieces(r.ctx, 1, r.receives.n, r.receives.piece, r.sends.n, r.sends.piece, &plan);
    TRL_TRY(trl_context_agree(r.ctx, err));
    TRL_TRY(trli_exchange_create_from(plan, &exchange));
    TRL_TRY(trl_exchange_begin(exchange, arrays));
    for (const trli_exchange_piece *p = r.copies.piece; p < r.copies.piece + r.copies.n; ++p)
        trli_exchange_copy(p, 0, 1, &source[p->source_local], &target[p->target_local]);
    while (!done) {
        TRL_TRY(trl_exchange_finish(exchange, arrays, &done));
        if (!done) sched_yield();
    }
done:
    trl_exchange_destroy(&exchange);
    trl_exchange_destroy(&plan);
    trli_free(r.sends.piece);
    trli_free(r.receives.piece);
    trli_free(r.copies.piece);
    return err;
}

static trl_err move_values(trl_field *from, trl_field *to)
{
    const trl_err local = touch_all(to);
    trl_err err;
    TRL_TRY(trli_layout_move(from->layout, to->layout, from->location, local, from->array, to->array));
    trl_field_invalidate_ghosts(to);
done:
    return err;
}

static trl_err check_layout(const trl_field *field, const trl_layout *layout)
{
    const trl_grid *a = &field->layout->grid, *b = &layout->grid;
    bool same = a->dim == b->dim && field->ctx == layout->ctx;
    for (int k = 0; k < 3; ++k) same &= a->cells[k] == b->cells[k] && a->periodic[k] == b->periodic[k];
    if (!same)
        return trl_fail(field->ctx, TRL_ERR_USAGE, NULL, "field '%s' cannot go to a layout of another grid",
                        field->name);
    if (field->device)
        return trl_fail(field->ctx, TRL_ERR_USAGE, NULL,
                        "field '%s' lives on a device; move it to the host, and back when its layout is set",
                        field->name);
    return TRL_OK;
}

static trl_err set_layout(trl_field *field, const trl_layout *layout)
{
    trl_field *next = NULL;
    trl_field_desc desc = {.name = field->name, .location = field->location};
    trl_err err = check_layout(field, layout);
    memcpy(desc.ghost_lo, field->ghost_lo, sizeof desc.ghost_lo);
    memcpy(desc.ghost_hi, field->ghost_hi, sizeof desc.ghost_hi);
    if (err == TRL_OK) err = trli_field_require_owned(field);
    if (err == TRL_OK) err = trl_field_create(field->manager, layout, &desc, &next);
    TRL_TRY(trl_context_agree(field->ctx, err));
    TRL_TRY(move_values(field, next));
    const trl_field was = *field;
    *field = *next; /* also what is computed into it: nothing yet */
    *next = was;
done:
    trl_field_destroy(&next);
    return err;
}

trl_err trl_field_set_layout(trl_field *field, const trl_layout *layout)
{
    trl_context_begin_phase(field->ctx);
    return trl_context_end_phase(field->ctx, set_layout(field, layout));
}
