/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "exchange_impl.h"
#include "spatialops_impl.h"

enum { DIRECTIONS = 27, CENTRE = 13 };

/* Widths of the ghost box in each direction, along the direction's own axes; has: whether anything is wanted there. */
typedef struct field_widths {
    bool has[DIRECTIONS];
    trl_lidx width[DIRECTIONS][3];
} field_widths;

typedef struct planner {
    const trl_layout *layout;
    const trl_exchange_field *fields;
    const field_widths *widths;
    int nfields, rank;
    bool wanted[DIRECTIONS]; /* by some field */
} planner;

static int opposite(int direction)
{
    return DIRECTIONS - 1 - direction;
}

static void find_widths(const trl_footprint *footprint, field_widths *widths)
{
    memset(widths, 0, sizeof *widths);
    for (int p = 0; p < footprint->n; ++p) {
        const trl_offsets *part = &footprint->part[p];
        for (int d = 0; d < DIRECTIONS; ++d) {
            trl_lidx reach[3];
            bool touches = d != CENTRE;
            for (int a = 0; a < 3; ++a) {
                int step = trli_exchange_step(d, a);
                reach[a] = step < 0 ? -part->lo[a] : step > 0 ? part->hi[a] : 0;
                touches = touches && (step == 0 || reach[a] > 0);
            }
            if (!touches) continue;
            widths->has[d] = true;
            for (int a = 0; a < 3; ++a) {
                if (reach[a] > widths->width[d][a]) widths->width[d][a] = reach[a];
            }
        }
    }
}

/* The thinnest patch along an axis, whichever rank has it: all ranks come to the same verdict. */
static trl_err check_widths(trl_context *ctx, const trl_layout *layout, const trl_exchange_field *field,
                            const field_widths *widths)
{
    for (int a = 0; a < layout->grid.dim; ++a) {
        trl_gidx thinnest = trli_layout_thinnest(layout, a);
        if (layout->counts[a] == 1 && !layout->grid.periodic[a]) continue;
        for (int d = 0; d < DIRECTIONS; ++d) {
            if (widths->width[d][a] <= thinnest) continue;
            if (layout->counts[a] == 1)
                return trl_fail(ctx, TRL_ERR_INPUT, field->place,
                                "stencils reach %" TRL_LIDX_FMT
                                " points of '%s' along %c, whose period has %" TRL_GIDX_FMT
                                "; use more cells along %c, or operators that reach less far",
                                widths->width[d][a], field->name ? field->name : "a field", trli_axis_name(a), thinnest,
                                trli_axis_name(a));
            return trl_fail(ctx, TRL_ERR_INPUT, field->place,
                            "patches: stencils reach %" TRL_LIDX_FMT
                            " points of '%s' along %c, but the thinnest of the %d patches there has %" TRL_GIDX_FMT
                            " cells and needs %" TRL_LIDX_FMT "; use fewer patches or ranks, or more cells along %c",
                            widths->width[d][a], field->name ? field->name : "a field", trli_axis_name(a),
                            layout->counts[a], thinnest, widths->width[d][a], trli_axis_name(a));
        }
    }
    return TRL_OK;
}

/* The id of the patch next to another, round periodic axes; -1 beyond a side or along an axis that the grid lacks. */
static int find_neighbour(const trl_layout *layout, const trl_patch *patch, int direction)
{
    int index[3];
    for (int a = 0; a < 3; ++a) {
        int step = trli_exchange_step(direction, a), count = layout->counts[a];
        if (step != 0 && a >= layout->grid.dim) return -1;
        index[a] = patch->index[a] + step;
        if (index[a] < 0 || index[a] >= count) {
            if (!layout->grid.periodic[a]) return -1;
            index[a] = index[a] < 0 ? index[a] + count : index[a] - count;
        }
    }
    return index[0] + layout->counts[0] * (index[1] + layout->counts[1] * index[2]);
}

/* A patch's neighbours in the directions that some field wants ghosts from, or sends them to; NULL: there is none. */
typedef struct neighbours {
    const trl_patch *at[DIRECTIONS];
    trl_patch elsewhere[DIRECTIONS]; /* those of other ranks */
} neighbours;

static void find_neighbours(const planner *plan, const trl_patch *patch, neighbours *n)
{
    const trl_layout *layout = plan->layout;
    for (int d = 0; d < DIRECTIONS; ++d) {
        if (!plan->wanted[d] && !plan->wanted[opposite(d)]) continue;
        const int id = find_neighbour(layout, patch, d), local = id < 0 ? -1 : trl_layout_local(layout, id);
        n->at[d] = NULL;
        if (id < 0) continue;
        if (local >= 0) {
            n->at[d] = &layout->patch[local];
        } else {
            n->elsewhere[d] = trl_layout_patch(layout, id);
            n->at[d] = &n->elsewhere[d];
        }
    }
}

static int local_index(const planner *plan, const trl_patch *patch)
{
    return patch->rank == plan->rank ? trl_layout_local(plan->layout, patch->id) : -1;
}

static trli_exchange_piece make_transfer(const planner *plan, const trl_patch *source, const trl_patch *target,
                                         int field, int direction)
{
    const trl_exchange_field *wanted = &plan->fields[field];
    trli_exchange_piece transfer = {
        .peer = source->rank == plan->rank ? target->rank : source->rank,
        .field = field,
        .direction = direction,
        .source = source->id,
        .target = target->id,
        .source_local = local_index(plan, source),
        .target_local = local_index(plan, target),
        .value_bytes = trl_scalar_size(wanted->type),
    };
    trl_box have = trl_patch_owned(plan->layout, source, wanted->location);
    trl_box hold = trl_patch_owned(plan->layout, target, wanted->location);
    for (int a = 0; a < 3; ++a) {
        int step = trli_exchange_step(direction, a);
        trl_lidx width = plan->widths[field].width[direction][a];
        transfer.extent[a] = step == 0 ? hold.hi[a] : width;
        transfer.from[a] = step < 0 ? have.hi[a] - width : 0;
        transfer.to[a] = step < 0 ? -width : step > 0 ? hold.hi[a] : 0;
    }
    return transfer;
}

/* Only counted while the arrays do not exist yet. */
static void append(const planner *plan, trli_traffic *traffic, const trl_patch *source, const trl_patch *target,
                   int field, int direction)
{
    if (traffic->transfer != NULL)
        traffic->transfer[traffic->ntransfers] = make_transfer(plan, source, target, field, direction);
    ++traffic->ntransfers;
}

/* Every transfer at an end of which this rank is. */
static void enumerate(const planner *plan, trl_exchange *exchange)
{
    const trl_layout *layout = plan->layout;
    neighbours beside;
    exchange->receives.ntransfers = exchange->sends.ntransfers = exchange->copies.ntransfers = 0;
    for (int l = 0; l < layout->nlocal; ++l) {
        const trl_patch *patch = &layout->patch[l];
        find_neighbours(plan, patch, &beside);
        for (int f = 0; f < plan->nfields; ++f) {
            for (int d = 0; d < DIRECTIONS; ++d) {
                if (!plan->widths[f].has[d]) continue;
                const trl_patch *source = beside.at[d], *target = beside.at[opposite(d)];
                if (source)
                    append(plan, source->rank == plan->rank ? &exchange->copies : &exchange->receives, source, patch, f,
                           d);
                if (target && target->rank != plan->rank) append(plan, &exchange->sends, patch, target, f, d);
            }
        }
    }
}

static bool is_of_message(const trli_exchange_piece *a, const trli_exchange_piece *b)
{
    return a->peer == b->peer && a->label == b->label;
}

static int by_message_and_target(const void *left, const void *right)
{
    const trli_exchange_piece *a = left, *b = right;
    if (a->peer != b->peer) return a->peer < b->peer ? -1 : 1;
    if (a->label != b->label) return a->label < b->label ? -1 : 1;
    if (a->target != b->target) return a->target < b->target ? -1 : 1;
    if (a->field != b->field) return a->field < b->field ? -1 : 1;
    return (a->direction > b->direction) - (a->direction < b->direction);
}

static trl_err close_message(trl_context *ctx, trli_message *message, size_t end)
{
    message->words = (end - message->offset) / 8;
    if (message->words <= INT_MAX) return TRL_OK;
    return trl_fail(
        ctx, TRL_ERR_INPUT, NULL,
        "patches: ghosts of %zu bytes for rank %d exceed the %.0f bytes of one message; run on more ranks or exchange "
        "fewer fields",
        message->words * 8, message->peer, INT_MAX * 8.0);
}

size_t trli_exchange_piece_bytes(const trli_exchange_piece *t)
{
    size_t bytes = t->value_bytes;
    for (int a = 0; a < 3; ++a) bytes *= (size_t)t->extent[a];
    return (bytes + 7) / 8 * 8;
}

/* Order the transfers, give each its place in the buffer, and find the messages. */
static trl_err make_messages(trl_context *ctx, trli_traffic *traffic)
{
    trl_err err = TRL_OK;
    size_t offset = 0;
    void *memory = NULL;

    if (traffic->ntransfers == 0) return TRL_OK;
    qsort(traffic->transfer, (size_t)traffic->ntransfers, sizeof *traffic->transfer, by_message_and_target);
    for (int i = 0; i < traffic->ntransfers; ++i) {
        traffic->nmessages += i == 0 || !is_of_message(&traffic->transfer[i], &traffic->transfer[i - 1]);
    }
    TRL_TRY(trl_memory_alloc(ctx, (size_t)traffic->nmessages * sizeof *traffic->message, "the plan of a ghost exchange",
                             &memory));
    traffic->message = memory;

    int open = -1;
    for (int i = 0; i < traffic->ntransfers; ++i) {
        trli_exchange_piece *transfer = &traffic->transfer[i];
        if (i == 0 || !is_of_message(transfer, transfer - 1)) {
            if (open >= 0) TRL_TRY(close_message(ctx, &traffic->message[open], offset));
            traffic->message[++open] =
                (trli_message){.peer = transfer->peer, .label = transfer->label, .first = i, .offset = offset};
        }
        ++traffic->message[open].n;
        transfer->offset = offset;
        offset += trli_exchange_piece_bytes(transfer);
    }
    TRL_TRY(close_message(ctx, &traffic->message[open], offset));
    traffic->bytes = offset;
done:
    return err;
}

static trl_err allocate_transfers(trl_context *ctx, trli_traffic *traffic)
{
    void *memory = NULL;
    if (traffic->ntransfers == 0) return TRL_OK;
    trl_err err = trl_memory_alloc(ctx, (size_t)traffic->ntransfers * sizeof *traffic->transfer,
                                   "the plan of a ghost exchange", &memory);
    traffic->transfer = memory;
    return err;
}

trl_err trli_exchange_plan(trl_exchange *exchange, const trl_layout *layout, int nfields,
                           const trl_exchange_field *fields)
{
    trl_err err = TRL_OK;
    trl_context *ctx = exchange->ctx;
    void *memory = NULL;

    if (nfields == 0) return TRL_OK;
    TRL_TRY(trl_memory_alloc(ctx, (size_t)nfields * sizeof(field_widths), "the plan of a ghost exchange", &memory));
    field_widths *widths = memory;
    planner plan = {
        .layout = layout, .fields = fields, .widths = widths, .nfields = nfields, .rank = trl_context_rank(ctx)};
    for (int f = 0; f < nfields; ++f) {
        find_widths(&fields[f].footprint, &widths[f]);
        TRL_TRY(check_widths(ctx, layout, &fields[f], &widths[f]));
        for (int d = 0; d < DIRECTIONS; ++d) plan.wanted[d] |= widths[f].has[d];
    }
    enumerate(&plan, exchange);
    TRL_TRY(allocate_transfers(ctx, &exchange->receives));
    TRL_TRY(allocate_transfers(ctx, &exchange->sends));
    TRL_TRY(allocate_transfers(ctx, &exchange->copies));
    enumerate(&plan, exchange);
    TRL_TRY(make_messages(ctx, &exchange->receives));
    TRL_TRY(make_messages(ctx, &exchange->sends));
done:
    trl_memory_free(ctx, &memory);
    return err;
}

static trl_err take_pieces(trl_context *ctx, int n, const trli_exchange_piece *piece, trli_traffic *traffic)
{
    trl_err err = TRL_OK;
    traffic->ntransfers = n;
    TRL_TRY(allocate_transfers(ctx, traffic));
    if (n > 0) memcpy(traffic->transfer, piece, (size_t)n * sizeof *piece);
    TRL_TRY(make_messages(ctx, traffic));
done:
    return err;
}

trl_err trli_exchange_take_pieces(trl_exchange *exchange, int nreceives, const trli_exchange_piece *receive, int nsends,
                                  const trli_exchange_piece *send)
{
    trl_err err = TRL_OK;
    TRL_TRY(take_pieces(exchange->ctx, nreceives, receive, &exchange->receives));
    TRL_TRY(take_pieces(exchange->ctx, nsends, send, &exchange->sends));
done:
    return err;
}
