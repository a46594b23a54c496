/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include "arithmetic_impl.h"
#include "chunks_impl.h"
#include "spans_impl.h"

typedef struct sweep {
    const trl_layout *layout;
    trl_location location;
    trli_span_fn fn;
    void *data;
    int64_t spans;
} sweep;

static trl_box owned_box(const trl_layout *layout, trl_location location, int p)
{
    return trl_patch_owned(layout, &layout->patch[p], location);
}

static int64_t row_spans(const trl_box *box)
{
    return trli_ceil_div(box->hi[0] - box->lo[0], TRLI_SPAN_POINTS);
}

static int64_t box_spans(const trl_box *box)
{
    return row_spans(box) * (box->hi[1] - box->lo[1]) * (box->hi[2] - box->lo[2]);
}

int trli_span_chunks(const trl_loop *loop, const trl_layout *layout, trl_location location)
{
    int64_t points = 0;
    for (int p = 0; p < layout->nlocal; ++p) {
        trl_box box = owned_box(layout, location, p);
        points += trl_box_points(&box);
    }
    int64_t wanted = trli_chunks_wanted(points, trl_loop_workers(loop));
    return wanted < TRLI_SPAN_CHUNKS ? (int)wanted : TRLI_SPAN_CHUNKS;
}

static trl_err sweep_chunk(void *data, int chunk, int chunks, int worker)
{
    const sweep *s = data;
    int64_t first = s->spans * chunk / chunks, end = s->spans * (chunk + 1) / chunks, before = 0;
    trl_err err = TRL_OK;
    (void)worker;
    for (int p = 0; p < s->layout->nlocal && before < end; ++p) {
        trl_box box = owned_box(s->layout, s->location, p);
        int64_t here = box_spans(&box), per_row = row_spans(&box), rows = box.hi[1] - box.lo[1];
        for (int64_t u = first > before ? first - before : 0; u < here && u < end - before; ++u) {
            trli_span span = {.patch = p};
            span.i = box.lo[0] + (trl_lidx)(u % per_row) * TRLI_SPAN_POINTS;
            span.j = box.lo[1] + (trl_lidx)(u / per_row % rows);
            span.k = box.lo[2] + (trl_lidx)(u / per_row / rows);
            span.n = box.hi[0] - span.i < TRLI_SPAN_POINTS ? box.hi[0] - span.i : TRLI_SPAN_POINTS;
            TRL_TRY(s->fn(s->data, &span, chunk));
        }
        before += here;
    }
done:
    return err;
}

trl_err trli_span_sweep(trl_loop *loop, const trl_layout *layout, trl_location location, trli_span_fn fn, void *data)
{
    sweep s = {.layout = layout, .location = location, .fn = fn, .data = data};
    for (int p = 0; p < layout->nlocal; ++p) {
        trl_box box = owned_box(layout, location, p);
        s.spans += box_spans(&box);
    }
    return trl_loop_run(loop, trli_span_chunks(loop, layout, location), sweep_chunk, &s);
}

trl_err trli_span_require(const trl_field *field)
{
    const trl_layout *layout = trl_field_layout(field);
    trl_err err = TRL_OK;
    for (int p = 0; p < layout->nlocal; ++p) {
        trl_box box = owned_box(layout, trl_field_location(field), p);
        TRL_TRY(trl_field_require(field, p, &box));
    }
done:
    return err;
}
