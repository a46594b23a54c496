/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The text of a kernel for CPUs: C, one sweep over the box. */
#include <stdlib.h>
#include <string.h>

#include "emit_impl.h"

enum {
    SHARED_ROWS = 64, /* of buffers of one call, of the longest rows */
    TURNS_MOST = 4    /* planes: what a row reads of more is not in the first-level cache */
};

/* How a sample is read inside of a loop over the points of a row, or outside of those. */
static void put_use(trli_emitter *e, trli_place loop, int32_t i)
{
    const trli_sample *in = &e->sample[i];
    const trli_node *n = trli_sample_node(e, i);
    if (n->op == TRLI_OP_CONSTANT)
        trli_put_number(e, n->number);
    else if (n->op == TRLI_OP_SCALAR)
        fprintf(e->out, "s%d", n->index);
    else if (n->op == TRLI_OP_FIELD && e->along != 0)
        fprintf(e->out, "p%d[(i + (%d)) * in%d_y]", in->pointer, in->offset[e->along], e->pointer[in->pointer].input);
    else if (n->op == TRLI_OP_FIELD && in->end != 0)
        fprintf(e->out, "p%d[%s%d + (%d)]", in->pointer, trli_end_name(in), trli_end_input(in), in->offset[0]);
    else if (n->op == TRLI_OP_FIELD && in->beyond >= 0)
        trli_put_beyond(e, false, in);
    else if (n->op == TRLI_OP_FIELD && in->offset[0] != 0)
        fprintf(e->out, "p%d[i %c %d]", in->pointer, in->offset[0] < 0 ? '-' : '+', abs(in->offset[0]));
    else if (n->op == TRLI_OP_FIELD)
        fprintf(e->out, "p%d[i]", in->pointer);
    else if (in->buffered && in->place != loop)
        fprintf(e->out, "b%d[i]", e->number[i]);
    else
        fprintf(e->out, "v%d", e->number[i]);
}

void trli_put_beyond(trli_emitter *e, bool lanes, const trli_sample *in)
{
    const trli_ghosts *g = &e->ghosts[in->beyond];
    const char *side = g->side ? "hi" : "lo";
    fprintf(e->out, "trl_kernel_%s_%s(p%d, i + (%d), %s%d, g%d", lanes ? "load" : "at", side, in->pointer,
            in->offset[0], side, g->input, in->beyond);
    if (lanes) fprintf(e->out, ", %d", g->depth);
    fputs(")", e->out);
}

static bool has_row_of(const trli_emitter *e, trli_place loop)
{
    for (int32_t i = 0; i < e->count; ++i)
        if (e->sample[i].buffered && e->sample[i].place == loop) return true;
    return false;
}

void trli_mark_computed(trli_emitter *e, trli_place loop, int nroots, const int32_t *root)
{
    memset(e->wanted, 0, (size_t)e->count * sizeof *e->wanted);
    for (int32_t i = 0; i < e->count; ++i) e->wanted[i] = e->sample[i].buffered && e->sample[i].place == loop;
    for (int r = 0; r < nroots; ++r) e->wanted[root[r]] = true;
    for (int32_t o = e->count - 1; o >= 0; --o) {
        int32_t i = e->order[o];
        const trli_sample *in = &e->sample[i];
        bool given = !trli_is_row(in->place) && in->place != TRLI_IN_POINT;
        given |= in->buffered && in->place != loop;
        given |= trli_is_leaf(trli_sample_node(e, i));
        if (given) e->wanted[i] = false;
        for (int a = 0; e->wanted[i] && a < 3 && in->arg[a] >= 0; ++a) e->wanted[in->arg[a]] = true;
    }
}

static void put_wanted(trli_emitter *e, trli_place loop, int depth)
{
    for (int32_t o = 0; o < e->count; ++o) {
        int32_t i = e->order[o];
        if (!e->wanted[i]) continue;
        trli_put_indent(e, depth);
        fprintf(e->out, "const double v%d = ", o);
        trli_put_operation(e, loop, i);
        fputs(";\n", e->out);
    }
}

/* The values of a loop over y or z, or of the call, that a group needs. */
static void put_values(trli_emitter *e, trli_place loop, int32_t group, int depth)
{
    trli_emit_mark_needed(e, group);
    for (int32_t i = 0; i < e->count; ++i)
        e->wanted[i] &= e->sample[i].place == loop && !trli_is_leaf(trli_sample_node(e, i));
    for (int32_t i = e->sides; i < e->count && loop == TRLI_IN_ROW; ++i) e->wanted[i] = false;
    put_wanted(e, loop, depth);
}

/* Mark the values of a row that only the ghosts beside it need. */
static void mark_row_of_ghosts(trli_emitter *e, int32_t root)
{
    memset(e->wanted, 0, (size_t)e->count * sizeof *e->wanted);
    e->wanted[root] = true;
    trli_emit_mark_operands(e, true);
    for (int32_t i = 0; i < e->count; ++i)
        e->wanted[i] &= i >= e->sides && e->sample[i].place == TRLI_IN_ROW && !trli_is_leaf(trli_sample_node(e, i));
}

/* Store the row buffers that a loop fills. */
static void put_buffer_stores(trli_emitter *e, trli_place loop, int depth)
{
    for (int32_t o = 0; o < e->count; ++o) {
        const trli_sample *in = &e->sample[e->order[o]];
        if (!in->buffered || in->place != loop) continue;
        trli_put_indent(e, depth);
        fprintf(e->out, "b%d[i] = v%d;\n", o, o);
    }
}

static void put_result_stores(trli_emitter *e, int32_t first, int32_t end, int depth)
{
    for (int32_t r = first; r < end; ++r) {
        char point[32] = "i";
        if (e->along != 0) snprintf(point, sizeof point, "i * out%d_y", r);
        trli_put_indent(e, depth);
        fprintf(e->out, "q%d[%s] = ", r, point);
        put_use(e, TRLI_IN_RESULT, e->root[r]);
        fputs(";\n", e->out);
        if (!e->look) continue;
        trli_put_indent(e, depth);
        fprintf(e->out, "excess |= trl_kernel_excess(q%d[%s]);\n", r, point);
    }
}

/* Begin the loop over the points of a row shorter than lanes: what is wanted there. */
static void put_short_loop(trli_emitter *e, trli_place loop, int depth)
{
    trli_put_indent(e, depth);
    fputs("TRL_KERNEL_SHORT\n", e->out);
    trli_put_indent(e, depth);
    fputs("for (long long i = 0; i < n; ++i) {\n", e->out);
    put_wanted(e, loop, depth + 1);
}

/* The loop over the points of a row: of lanes, or where it is shorter of points. It fills row buffers, or stores the results of a group. */
static void put_row_loop(trli_emitter *e, trli_place loop, int32_t group, int depth)
{
    const bool stores = loop == TRLI_IN_RESULT;
    const trli_group g = stores ? e->group[group] : (trli_group){.end = 0};
    trli_put_lanes_loop(e, loop, group, depth);
    trli_mark_computed(e, loop, g.end - g.first, e->root + g.first);
    put_short_loop(e, loop, depth + 1);
    if (stores)
        put_result_stores(e, g.first, g.end, depth + 2);
    else
        put_buffer_stores(e, loop, depth + 2);
    trli_put_indent(e, depth + 1);
    fputs("}\n", e->out);
}

static void put_row_buffers(trli_emitter *e, trli_place loop, int depth)
{
    if (!has_row_of(e, loop)) return;
    for (int32_t o = 0; o < e->count; ++o) {
        const trli_sample *in = &e->sample[e->order[o]];
        if (!in->buffered || in->place != loop || loop == TRLI_IN_POINT) continue;
        trli_put_indent(e, depth);
        fprintf(e->out, "double b%d[TRL_KERNEL_ROW];\n", o);
    }
    put_row_loop(e, loop, TRLI_SHARED, depth);
}

/* Whether what is wanted reads a row. */
static bool wants_row(const trli_emitter *e, int32_t pointer)
{
    for (int32_t i = 0; i < e->count; ++i)
        if (e->wanted[i] && e->sample[i].pointer == pointer) return true;
    return false;
}

/* The row in hand of an array: its first point. */
static void put_row_in_hand(trli_emitter *e, const char *array, int32_t i, int depth)
{
    const char *in_row = e->along == 0 ? "x + j" : "j + x";
    trli_put_indent(e, depth);
    fprintf(e->out, "%sdouble *const %s%d_row = trl_kernel_row(%s%d + %s * %s%d_y + k * %s%d_z);\n",
            array[0] == 'i' ? "const " : "", array, i, array, i, in_row, array, i, array, i);
}

/* The first point of a row of an array, some rows and planes away from that in hand. */
static void put_row_address(trli_emitter *e, const char *array, int32_t i, int y, int z)
{
    fprintf(e->out, "%s%d_row", array, i);
    if (y != 0 && e->along != 0) fprintf(e->out, " + (%d)", y);
    if (y != 0 && e->along == 0) fprintf(e->out, " + (%d) * %s%d_y", y, array, i);
    if (z != 0) fprintf(e->out, " + (%d) * %s%d_z", z, array, i);
    fputs(";\n", e->out);
}

static bool reads_first(const trli_emitter *e, int32_t group, int32_t input)
{
    return e->along == 0 && e->reader[input] >= 0 && (group == e->ngroups || group == e->reader[input]);
}

/* Whether a group reads a row of an input, or asks for it early. */
static bool reads(const trli_emitter *e, int32_t group, int32_t input)
{
    for (int32_t p = 0; p < e->npointers; ++p)
        if (e->pointer[p].input == input && wants_row(e, p)) return true;
    return group != TRLI_SHARED && reads_first(e, group, input);
}

static void put_pointers(trli_emitter *e, int32_t group, int depth)
{
    const int *fields;
    const int ninputs = trli_kernel_inputs(e->kernel, &fields);
    trli_emit_mark_needed(e, group);
    for (int i = 0; i < ninputs; ++i)
        if (reads(e, group, i)) put_row_in_hand(e, "in", i, depth);
    for (int32_t p = 0; p < e->npointers; ++p) {
        const trli_row_pointer *r = &e->pointer[p];
        if (!wants_row(e, p)) continue;
        trli_put_indent(e, depth);
        fprintf(e->out, "const double *%sp%d = ", r->beyond < 0 ? "const " : "", p);
        put_row_address(e, "in", r->input, r->y, r->z);
    }
    for (int32_t o = 0; o < e->count; ++o) {
        const trli_sample *in = &e->sample[e->order[o]];
        if (!e->wanted[e->order[o]] || !in->buffered || in->place != TRLI_IN_POINT) continue;
        trli_put_indent(e, depth);
        fprintf(e->out, "double *const b%d = shared%d + (j - y) * n;\n", o, o);
    }
}

/* Note which ghosts a group reads. */
static void find_ghosts_read(trli_emitter *e, int32_t group)
{
    trli_emit_mark_needed(e, group);
    for (int32_t g = 0; g < e->nghosts; ++g) e->ghosts[g].read = false;
    for (int32_t i = 0; i < e->ends; ++i) {
        const trli_sample *in = &e->sample[i];
        if (!e->wanted[i] || in->pointer < 0) continue;
        if (in->beyond >= 0) e->ghosts[in->beyond].read = true;
        if (e->pointer[in->pointer].beyond >= 0) e->ghosts[e->pointer[in->pointer].beyond].read = true;
    }
    if (group < e->ngroups) return;
    for (int32_t g = 0; g < e->nghosts; ++g) /* the upper one of two planes is no ghost of the lower */
        if (e->ghosts[g].axis == 2 && e->ghosts[g].side && e->ghosts[g].z < 2) e->ghosts[g].read = false;
}

static void put_ghosts_of_end(trli_emitter *e, int32_t g, int depth)
{
    trli_put_indent(e, depth);
    fprintf(e->out, "const double g%d[] = {", g);
    for (int d = 0; d < e->ghosts[g].depth; ++d) {
        fputs(d ? ", " : "", e->out);
        put_use(e, TRLI_IN_ROW, e->ghosts[g].sample[d]);
    }
    fputs("};\n", e->out);
}

/* Whether the row beside is beyond the side. */
static void put_if_beyond(trli_emitter *e, const trli_ghosts *ghosts, int depth)
{
    const int row = ghosts->axis == 1 ? ghosts->y : ghosts->z;
    trli_put_indent(e, depth);
    fprintf(e->out, "if (%c + (%d) ", ghosts->axis == 1 ? 'j' : 'k', row);
    fprintf(e->out, ghosts->side ? ">= inside%d.hi[%d]) " : "< inside%d.lo[%d]) ", ghosts->input, ghosts->axis);
}

/* In place of the row beside, that at the other side. */
static void put_image_of_side(trli_emitter *e, const trli_ghosts *ghosts, int32_t pointer, int depth)
{
    const int a = ghosts->axis, i = ghosts->input;
    put_if_beyond(e, ghosts, depth);
    fprintf(e->out, "p%d %c= (inside%d.hi[%d] - inside%d.lo[%d]) * in%d_%c;\n", pointer, "+-"[ghosts->side], i, a, i, a,
            i, "xyz"[a]);
}

/* The row beside, of ghosts: in place of that of the array. What is the same as a row is that row. */
static void put_ghosts_of_side(trli_emitter *e, int32_t g, int32_t pointer, int depth)
{
    const int32_t root = e->ghosts[g].sample[0];
    if (trli_sample_node(e, root)->op == TRLI_OP_FIELD) {
        put_if_beyond(e, &e->ghosts[g], depth);
        fprintf(e->out, "p%d = p%d + (%d);\n", pointer, e->sample[root].pointer, e->sample[root].offset[0]);
        return;
    }
    trli_put_indent(e, depth);
    fprintf(e->out, "double g%d[TRL_KERNEL_ROW];\n", g);
    put_if_beyond(e, &e->ghosts[g], depth);
    fputs("{\n", e->out);
    mark_row_of_ghosts(e, root);
    put_wanted(e, TRLI_IN_ROW, depth + 1);
    trli_put_lanes_fill(e, root, g, depth + 1);
    trli_mark_computed(e, TRLI_IN_RESULT, 1, &root);
    put_short_loop(e, TRLI_IN_RESULT, depth + 2);
    trli_put_indent(e, depth + 3);
    fprintf(e->out, "g%d[i] = ", g);
    put_use(e, TRLI_IN_RESULT, root);
    fprintf(e->out, ";\n%*s}\n%*sp%d = g%d;\n%*s}\n", 4 * depth + 8, "", 4 * depth + 4, "", pointer, g, 4 * depth, "");
}

static void put_ghosts(trli_emitter *e, int32_t group, int depth)
{
    find_ghosts_read(e, group);
    for (int32_t g = 0; g < e->nghosts; ++g)
        if (e->ghosts[g].axis == 0 && e->ghosts[g].read) put_ghosts_of_end(e, g, depth);
    for (int32_t p = 0; p < e->npointers; ++p) {
        const int32_t g = e->pointer[p].beyond;
        if (g < 0 || !e->ghosts[g].read) continue;
        if (e->ghosts[g].image)
            put_image_of_side(e, &e->ghosts[g], p, depth);
        else
            put_ghosts_of_side(e, g, p, depth);
    }
}

static void put_result_pointers(trli_emitter *e, int32_t group, int depth)
{
    for (int32_t r = e->group[group].first; r < e->group[group].end; ++r) {
        const int to = r % e->nroots;
        if (r == to) put_row_in_hand(e, "out", to, depth);
        trli_put_indent(e, depth);
        fprintf(e->out, "double *const q%d = ", r);
        put_row_address(e, "out", to, 0, r == to ? 0 : 1);
    }
}

/* Of each input the row that is asked for early: some rows ahead on the plane that is read last, of the lower plane of two. */
static void put_rows_ahead(trli_emitter *e, int32_t group, int depth)
{
    const int *fields;
    const int n = trli_kernel_inputs(e->kernel, &fields);
    for (int i = 0; i < n; ++i) {
        if (!reads_first(e, group, i)) continue;
        const trl_footprint f = trli_kernel_footprint(e->kernel, i);
        const trl_offsets hull = trl_footprint_hull(&f);
        trli_put_indent(e, depth);
        fprintf(e->out, "const double *const a%d = in%d_row + (%d + ahead) * in%d_y + (%d) * in%d_z;\n", i, i,
                hull.hi[1], i, hull.hi[2], i);
    }
}

void trli_put_fetches(trli_emitter *e, int32_t group, int depth)
{
    const int *fields;
    const int n = trli_kernel_inputs(e->kernel, &fields);
    trli_put_indent(e, depth);
    fputs("if (ahead) {\n", e->out);
    for (int i = 0; i < n; ++i) {
        if (!reads_first(e, group, i)) continue;
        for (int plane = 0; plane < (group < e->ngroups ? 1 : 2); ++plane) {
            trli_put_indent(e, depth + 1);
            fprintf(e->out, plane ? "trl_kernel_fetch(a%d + i + in%d_z);\n" : "trl_kernel_fetch(a%d + i);\n", i, i);
        }
    }
    trli_put_indent(e, depth);
    fputs("}\n", e->out);
}

/* Whether the kernel computes ghosts of an input beyond sides of one of these axes. */
static bool has_ghosts(const trli_emitter *e, int input, int first, int last)
{
    for (int32_t g = 0; g < e->nghosts; ++g)
        if (e->ghosts[g].input == input && e->ghosts[g].axis >= first && e->ghosts[g].axis <= last) return true;
    return false;
}

static void put_arrays(trli_emitter *e)
{
    const int *fields;
    const int ninputs = trli_kernel_inputs(e->kernel, &fields);
    fputs("    const trl_kernel_grid *const grid = call->grid;\n"
          "    const int ahead = call->ahead;\n"
          "    (void)grid, (void)ahead;\n",
          e->out);
    if (e->look) fputs("    long long excess = 0;\n    trl_kernel_lanes sums = {0};\n", e->out);
    for (int32_t o = 0; o < e->count; ++o) {
        const trli_node *n = trli_sample_node(e, e->order[o]);
        if (n->op == TRLI_OP_SCALAR) fprintf(e->out, "    const double s%d = call->scalar[%d];\n", n->index, n->index);
    }
    for (int i = 0; i < ninputs; ++i)
        fprintf(e->out,
                "    const double *const in%d = call->input[%d].at;\n"
                "    const long long in%d_y = call->input[%d].stride[1], in%d_z = call->input[%d].stride[2];\n",
                i, i, i, i, i, i);
    for (int i = 0; i < ninputs; ++i)
        if (has_ghosts(e, i, 0, 2)) fprintf(e->out, "    const trl_kernel_inside inside%d = call->inside[%d];\n", i, i);
    for (int r = 0; r < e->nroots; ++r)
        fprintf(e->out,
                "    double *const out%d = call->output[%d].at;\n"
                "    const long long out%d_y = call->output[%d].stride[1], out%d_z = call->output[%d].stride[2];\n",
                r, r, r, r, r, r);
}

/* Whether the loop over planes is outside of that over rows: something is computed once for a plane, kept from row to row, or shared. */
static bool goes_by_planes(trli_emitter *e)
{
    if (e->nshared > 0) return true;
    for (int32_t g = 0; g < e->ngroups + trli_goes_by_pairs(e); ++g)
        if (trli_keeps_rows(e, g)) return true;
    for (int32_t i = 0; i < e->count; ++i) {
        const trli_place p = e->sample[i].place;
        if ((p == TRLI_IN_PLANE || p == TRLI_IN_PLANE_ROW) && !trli_is_leaf(trli_sample_node(e, i))) return true;
    }
    return false;
}

static void put_row(trli_emitter *e, int32_t group, int depth)
{
    put_pointers(e, group, depth);
    put_values(e, TRLI_IN_ROW, group, depth);
    put_ghosts(e, group, depth);
    if (group == TRLI_SHARED) {
        put_row_buffers(e, TRLI_IN_POINT, depth);
        return;
    }
    put_result_pointers(e, group, depth);
    put_rows_ahead(e, group, depth);
    put_row_loop(e, TRLI_IN_RESULT, group, depth);
}

static void put_rows(trli_emitter *e, int32_t group, int depth)
{
    if (group != TRLI_SHARED) trli_put_kept(e, group, depth);
    trli_put_indent(e, depth);
    fputs("for (long long j = y; j < end; ++j) {\n", e->out);
    put_row(e, group, depth + 1);
    trli_put_indent(e, depth);
    fputs("}\n", e->out);
}

/* The end of a branch for two planes at once. */
static void put_pair_end(trli_emitter *e, int depth)
{
    trli_put_indent(e, depth + 1);
    fputs("++k;\n", e->out);
    trli_put_indent(e, depth + 1);
    fputs("continue;\n", e->out);
    trli_put_indent(e, depth);
    fputs("}\n", e->out);
}

/* Some planes' rows in turn: what a row reads of the planes beside it is then in the first-level cache. */

static void put_rows_in_turn(trli_emitter *e, int32_t group)
{
    fputs("                for (long long j = y; j < end; ++j) {\n"
          "                    for (long long k = z; k < stop; ++k) {\n",
          e->out);
    if (trli_goes_by_pairs(e)) {
        fputs("                        if (k + 1 < stop) {\n", e->out);
        put_row(e, e->ngroups, 7);
        put_pair_end(e, 6);
    }
    put_row(e, group, 6);
    fputs("                    }\n                }\n", e->out);
}

/* Groups go through the rows one after the other: each keeps few streams of memory busy. */
static void put_planes(trli_emitter *e)
{
    fputs("            for (long long k = call->lo[2]; k < call->hi[2]; ++k) {\n", e->out);
    if (e->edges)
        fprintf(e->out, "                trl_kernel_set_edges(call, x, y, end, k, %s);\n",
                trli_goes_by_pairs(e) ? "call->turn > 1 && k + 1 < call->hi[2] ? k + 2 : k + 1" : "k + 1");
    put_values(e, TRLI_IN_PLANE, TRLI_ALL_GROUPS, 4);
    put_row_buffers(e, TRLI_IN_PLANE_ROW, 4);
    if (trli_goes_by_pairs(e)) {
        fputs("                if (call->turn > 1 && k + 1 < call->hi[2]) {\n", e->out);
        put_rows(e, e->ngroups, 5);
        put_pair_end(e, 4);
    }
    if (e->nshared > 0) put_rows(e, TRLI_SHARED, 4);
    for (int32_t g = 0; g < e->ngroups; ++g) put_rows(e, g, 4);
    fputs("            }\n", e->out);
}

static void put_planes_in_turn(trli_emitter *e)
{
    fputs("            for (long long z = call->lo[2]; z < call->hi[2]; z += call->turn) {\n"
          "                const long long stop = call->hi[2] - z < call->turn ? call->hi[2] : z + call->turn;\n",
          e->out);
    if (e->edges) fputs("                trl_kernel_set_edges(call, x, y, end, z, stop);\n", e->out);
    for (int32_t g = 0; g < e->ngroups; ++g) put_rows_in_turn(e, g);
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
            "            const long long end = call->hi[%d] - y < block ? call->hi[%d] : y + block;\n",
            e->across, e->across, e->across, e->across);
    const bool by_planes = goes_by_planes(e);
    e->turns = !by_planes ? TURNS_MOST : trli_goes_by_pairs(e) ? 2 : 1;
    if (by_planes)
        put_planes(e);
    else
        put_planes_in_turn(e);
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

/* The points of a row that are computed in one go. Where there are ghosts at its ends, they count from where these begin. */
static void put_part(trli_emitter *e)
{
    static const char points[] = "trl_kernel_least(call->hi[%d] - x, TRL_KERNEL_ROW);\n";
    const int *fields;
    const int n = trli_kernel_inputs(e->kernel, &fields);
    bool ghosts = false;
    for (int i = 0; i < n; ++i) ghosts |= has_ghosts(e, i, 0, 0);
    fputs(ghosts ? "        trl_kernel_part part = {0};\n        part.n = " : "        n = ", e->out);
    fprintf(e->out, points, e->along);
    for (int i = 0; i < n; ++i) {
        const trli_ghosts *lo = deepest(e, i, 0), *hi = deepest(e, i, 1);
        if (lo || hi)
            fprintf(e->out,
                    "        const long long lo%d = inside%d.lo[0] - x, hi%d = inside%d.hi[0] - x;\n"
                    "        (void)lo%d, (void)hi%d;\n",
                    i, i, i, i, i, i);
        if (lo) fprintf(e->out, "        trl_kernel_part_begins(&part, lo%d, %d, %d);\n", i, lo->depth, lo->further);
        if (hi) fprintf(e->out, "        trl_kernel_part_ends(&part, hi%d, %d, %d);\n", i, hi->depth, hi->further);
    }
    if (ghosts) fputs("        trl_kernel_part_settle(&part);\n        n = part.n;\n", e->out);
}

static void put_kernel(trli_emitter *e)
{
    trli_put_definitions(e);
    fputs("void trl_kernel(trl_kernel_call *call)\n{\n", e->out);
    put_arrays(e);
    put_values(e, TRLI_IN_CALL, TRLI_ALL_GROUPS, 1);
    fprintf(e->out, "    for (long long x = call->lo[%d], n; x < call->hi[%d]; x += n) {\n", e->along, e->along);
    put_part(e);
    put_row_buffers(e, TRLI_IN_ROW_X, 2);
    put_blocks(e);
    fputs("    }\n", e->out);
    if (e->along == 0) fputs("    if (call->stream) trl_kernel_fence();\n", e->out);
    if (e->look) fputs("    call->nonfinite = excess < 0 || trl_lanes_any_negative(trl_lanes_excess(sums));\n", e->out);
    fputs("}\n", e->out);
}

const trli_dialect trli_dialect_cpu = {
    .put_kernel = put_kernel, .put_use = put_use, .suffix = "_point", .index = {"x + i", "j", "k"}, .pairs = true};
