/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The text of a kernel for CPUs: C, one sweep over the box; and of a kernel in any dialect. */
#include <stdlib.h>
#include <string.h>

#include "emit_writer_impl.h"
#include "memstream_impl.h"

enum {
    SHARED_ROWS = 64,   /* of buffers of one call, of the longest rows */
    INTERLEAVE_MOST = 4 /* planes: what a row reads of more is not in the first-level cache */
};

/* Groups go through the rows one after the other: each reads and writes few arrays at a time. */
static void put_planes(trli_emitter *e)
{
    fputs("            for (long long k = call->lo[2]; k < call->hi[2]; ++k) {\n", e->out);
    if (e->edges)
        fprintf(e->out, "                trl_kernel_set_edges(call, x, y, end, k, %s);\n",
                trli_goes_by_pairs(e) ? "call->interleave > 1 && k + 1 < call->hi[2] ? k + 2 : k + 1" : "k + 1");
    trli_put_values(e, TRLI_IN_PLANE, TRLI_ALL_GROUPS, 4);
    trli_put_row_buffers(e, TRLI_IN_PLANE_ROW, 4);
    fputs("                rows.z = k, rows.stop = k + 1;\n", e->out);
    if (trli_goes_by_pairs(e)) {
        fputs("                if (call->interleave > 1 && k + 1 < call->hi[2]) {\n", e->out);
        trli_put_group_call(e, e->ngroups, 5);
        fputs("                    ++k;\n                    continue;\n                }\n", e->out);
    }
    if (e->nshared > 0) trli_put_group_call(e, TRLI_SHARED, 4);
    for (int32_t g = 0; g < e->ngroups; ++g) trli_put_group_call(e, g, 4);
    fputs("            }\n", e->out);
}

static void put_interleaved_planes(trli_emitter *e)
{
    fputs("            for (long long z = call->lo[2]; z < call->hi[2]; z += call->interleave) {\n"
          "                const long long stop = call->hi[2] - z < call->interleave ? call->hi[2] : z + "
          "call->interleave;\n"
          "                rows.z = z, rows.stop = stop;\n",
          e->out);
    if (e->edges) fputs("                trl_kernel_set_edges(call, x, y, end, z, stop);\n", e->out);
    for (int32_t g = 0; g < e->ngroups; ++g) trli_put_group_call(e, g, 4);
    fputs("            }\n", e->out);
}

/* The loop over blocks of rows. Of what groups share there are buffers for all rows of a block. */
static void put_blocks(trli_emitter *e)
{
    if (e->nshared > 0) {
        const int rows = SHARED_ROWS / e->nshared > 2 ? SHARED_ROWS / e->nshared : 2;
        for (int32_t o = 0; o < e->count; ++o) {
            const trli_sample *in = &e->sample[e->order[o]];
            if (in->buffered && in->place == TRLI_IN_POINT)
                fprintf(e->out, "        double shared%d[%d * TRL_KERNEL_ROW];\n", o, rows);
        }
        fprintf(e->out, "        const long long room = %d * TRL_KERNEL_ROW / n;\n", rows);
    }
    fprintf(e->out, "        const long long block = %s;\n",
            e->nshared > 0 ? "call->block < room ? call->block : room" : "call->block");
    fprintf(e->out,
            "        for (long long y = call->lo[%d]; y < call->hi[%d]; y += block) {\n"
            "            const long long end = call->hi[%d] - y < block ? call->hi[%d] : y + block;\n"
            "            rows.y = y, rows.end = end;\n",
            e->across, e->across, e->across, e->across);
    e->interleave = !e->by_planes ? INTERLEAVE_MOST : trli_goes_by_pairs(e) ? 2 : 1;
    if (e->by_planes)
        put_planes(e);
    else
        put_interleaved_planes(e);
    fputs("        }\n", e->out);
}

/* How far beyond an end of its rows the kernel reads an input, where it computes the ghosts; NULL: it does not. */
static const trli_ghosts *deepest(const trli_emitter *e, int input, int side)
{
    const trli_ghosts *found = NULL;
    for (int32_t k = 0; k < e->nghosts; ++k) {
        const trli_ghosts *g = &e->ghosts[k];
        if (g->input == input && g->axis == 0 && g->side == side && (!found || g->depth > found->depth)) found = g;
    }
    return found;
}

/* The points of a row that are computed in one go. Where there are ghosts at its ends, they count from where these
 * begin. */
static void put_part(trli_emitter *e)
{
    const int n = e->reads->nfields;
    bool ghosts = false;
    fprintf(e->out,
            "        trl_kernel_rows rows = {.x = x};\n"
            "        rows.part.n = trl_kernel_least(call->hi[%d] - x, TRL_KERNEL_ROW);\n",
            e->along);
    for (int i = 0; i < n; ++i)
        for (int side = 0; side < 2; ++side) {
            const trli_ghosts *g = deepest(e, i, side);
            if (!g) continue;
            fprintf(e->out, "        trl_kernel_part_%s(&rows.part, call->inside[%d].%s[0] - x, %d, %d);\n",
                    side ? "ends" : "begins", i, side ? "hi" : "lo", g->depth, g->further);
            ghosts = true;
        }
    if (ghosts) fputs("        trl_kernel_part_settle(&rows.part);\n", e->out);
    fputs("        n = rows.part.n;\n", e->out);
}

/* Before and after all rows: what they merge. */
static void put_begins(trli_emitter *e)
{
    if (!e->merge) return;
    fprintf(e->out,
            "    trl_kernel_total total[%d];\n"
            "    found.total = total;\n"
            "    for (int r = 0; r < %d; ++r) trl_kernel_begin(&total[r], call->merged ? &call->merged[r] : 0);\n",
            e->nroots, e->nroots);
}

static void put_ends(trli_emitter *e)
{
    if (!e->merge) return;
    fputs("    if (call->merged) {\n", e->out);
    for (int r = e->nstored; r < e->nroots; ++r)
        if (e->merge[r] == TRLI_MERGE_SUM)
            fprintf(e->out, "        trl_kernel_end_sum(&call->merged[%d], &total[%d]);\n", r, r);
        else
            fprintf(e->out, "        trl_kernel_end_extreme(&call->merged[%d], &total[%d], %d);\n", r, r,
                    e->merge[r] == TRLI_MERGE_MIN);
    fputs("    }\n", e->out);
}

static trl_err put_kernel(trli_emitter *e)
{
    trl_err err = TRL_OK;
    trli_put_definitions(e);
    TRL_TRY(trli_put_groups(e));
    fputs("void trl_kernel(trl_kernel_call *call)\n{\n"
          "    const trl_kernel_grid *const grid = call->grid;\n"
          "    trl_kernel_found found = {0};\n"
          "    (void)grid;\n",
          e->out);
    put_begins(e);
    trli_put_outer_scalars(e);
    trli_put_values(e, TRLI_IN_CALL, TRLI_ALL_GROUPS, 1);
    fprintf(e->out, "    for (long long x = call->lo[%d], n; x < call->hi[%d]; x += n) {\n", e->along, e->along);
    put_part(e);
    trli_put_row_buffers(e, TRLI_IN_ROW_X, 2);
    put_blocks(e);
    fputs("    }\n", e->out);
    put_ends(e);
    if (e->along == 0 && e->nstored == 0) fputs("    if (call->streaming) trl_kernel_fence();\n", e->out);
    if (e->check_finite)
        fputs("    call->nonfinite = found.excess < 0 || trl_lanes_any_negative(trl_lanes_excess(found.sums));\n",
              e->out);
    fputs("}\n", e->out);
done:
    return err;
}

const trli_dialect trli_dialect_cpu = {
    .put_kernel = put_kernel, .put_use = trli_put_use, .suffix = "_point", .index = {"x + i", "j", "k"}, .pairs = true};

/* The roots, then the ghosts that the kernel may compute; NULL: no memory. */
static trli_ir_value *list_roots(const trli_ir *ir, const trli_emit_request *request)
{
    trli_ir_value *root = trli_new(ir->ctx, (size_t)(request->nroots + request->nlayers), sizeof *root);
    if (!root) return NULL;
    memcpy(root, request->roots, (size_t)request->nroots * sizeof *root);
    for (int i = 0; i < request->nlayers; ++i) root[request->nroots + i] = request->layer[i].value;
    return root;
}

static trl_err walk_all(const trli_ir *ir, trli_walk *walk, const trli_emit_request *request)
{
    trli_ir_value *root = list_roots(ir, request);
    if (!root) return trli_no_memory(ir->ctx, NULL, "for the text of a kernel");
    const trl_err err = trli_ir_walk(ir, walk, request->nroots + request->nlayers, root);
    trli_free(root);
    return err;
}

static int place_of_field(const trli_reads *reads, int field)
{
    int i = 0;
    while (i < reads->nfields && reads->field[i] != field) ++i;
    return i;
}

int trli_emit_late(int n, const int *late, int scalar)
{
    int place = n - 1;
    while (place >= 0 && late[place] != scalar) --place;
    return place;
}

trl_err trli_emit_signature(const trli_ir *ir, trli_walk *walk, const trli_emit_request *request,
                            trli_signature *signature)
{
    /* How ranks exchange and help one another is no matter of kernels. */
    const unsigned between = TRL_PASS_OVERLAP | TRL_PASS_SHARED | TRL_PASS_HELPING;
    const unsigned disabled = request->disabled_passes & ~between;
    const int flags[] = {(int)disabled,          request->nroots, request->nlayers, request->reads->nfields,
                         request->check_finite,  request->edges,  request->thin,    request->merge != NULL,
                         (int)request->weighted, request->nstored};
    trli_ir_value *root = list_roots(ir, request);
    trl_err err = TRL_OK;
    if (!root) return trli_no_memory(ir->ctx, NULL, "for the signature of a kernel");
    TRL_TRY(trli_signature_find(ir, walk, request->reads, request->nroots + request->nlayers, root, signature));
    for (size_t i = 0; i < sizeof flags / sizeof *flags; ++i) TRL_TRY(trli_signature_add(ir, signature, flags[i]));
    for (int r = 0; request->merge && r < request->nroots; ++r)
        TRL_TRY(trli_signature_add(ir, signature, (int)request->merge[r]));
    TRL_TRY(trli_signature_add(ir, signature, request->wide));
    for (int i = 0; request->shape && i < request->reads->nfields + request->nroots; ++i)
        TRL_TRY(trli_signature_add(ir, signature, request->shape[i]));
    for (int i = 0; request->nlate > 0 && i < request->reads->nscalars; ++i)
        TRL_TRY(trli_signature_add(ir, signature,
                                   trli_emit_late(request->nlate, request->late, request->reads->scalar[i])));
    for (int i = 0; request->found && i < request->reads->nscalars; ++i)
        TRL_TRY(trli_signature_add(ir, signature, request->found[request->reads->scalar[i]]));
    for (int i = 0; i < request->nlayers; ++i) {
        const trli_emit_layer *l = &request->layer[i];
        const int words[] = {
            place_of_field(request->reads, l->field), l->axis, l->side, l->layer, l->further, l->image};
        for (size_t w = 0; w < sizeof words / sizeof *words; ++w) TRL_TRY(trli_signature_add(ir, signature, words[w]));
    }
done:
    trli_free(root);
    return err;
}

static trli_emitter emitter_of(const trli_dialect *dialect, const trli_ir *ir, trli_walk *walk,
                               const trli_emit_request *request)
{
    return (trli_emitter){.dialect = dialect,
                          .ir = ir,
                          .walk = walk,
                          .disabled_passes = request->disabled_passes,
                          .reads = request->reads,
                          .nroots = request->nroots,
                          .roots = request->roots,
                          .merge = request->merge,
                          .nstored = request->nstored,
                          .weighted = request->weighted,
                          .nlayers = request->nlayers,
                          .layer = request->layer,
                          .shape = request->shape,
                          .wide = request->wide,
                          .nlate = request->nlate,
                          .late = request->late,
                          .found = request->found,
                          .steps = request->steps,
                          .level = request->level,
                          .nnumbers = request->nnumbers,
                          .given_number = request->number,
                          .check_finite = request->check_finite,
                          .edges = request->edges,
                          .along = request->thin ? 1 : 0,
                          .across = request->thin ? 0 : 1,
                          .interleave = 1};
}

static trl_err plan(trli_emitter *e, trli_walk *walk, const trli_emit_request *request, const char **why)
{
    trl_err err = TRL_OK;
    TRL_TRY(walk_all(e->ir, walk, request));
    TRL_TRY(trli_emit_plan(e, why));
    if (!*why && e->dialect->points && e->nlayers > 0 && !e->choices_fit)
        *why = "ghosts that it reads have to be in memory";
done:
    return err;
}

trl_err trli_emit_check(const trli_dialect *dialect, const trli_ir *ir, trli_walk *walk,
                        const trli_emit_request *request, const char **why)
{
    trli_emitter e = emitter_of(dialect, ir, walk, request);
    *why = NULL;
    const trl_err err = plan(&e, walk, request, why);
    trli_emitter_free(&e);
    return err;
}

trl_err trli_emit_kernel(const trli_dialect *dialect, const trli_ir *ir, trli_walk *walk,
                         const trli_emit_request *request, trli_emitted *emitted)
{
    trli_emitter e = emitter_of(dialect, ir, walk, request);
    trli_memstream text = {0};
    trl_err err = TRL_OK;
    *emitted = (trli_emitted){.text = NULL};
    TRL_TRY(plan(&e, walk, request, &emitted->why));
    if (emitted->why) goto done;
    if (!trli_memstream_open(ir->ctx, &text)) TRL_TRY(trli_no_memory(ir->ctx, NULL, "for the text of a kernel"));
    e.out = text.out;
    TRL_TRY(dialect->put_kernel(&e));
    emitted->interleave = e.interleave;
    emitted->why = e.why;
    if (e.why) goto done;
    if (!trli_memstream_close(&text)) TRL_TRY(trli_no_memory(ir->ctx, NULL, "for the text of a kernel"));
    emitted->text = text.text;
    text.text = NULL;
done:
    trli_memstream_discard(&text);
    trli_emitter_free(&e);
    return err;
}
