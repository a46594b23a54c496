/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The text of one row: what it reads, its ghosts, and the loops over its points. */
#include <string.h>

#include "emit_writer_impl.h"

static bool has_row_of(const trli_emitter *e, trli_loop_level loop)
{
    for (int32_t i = 0; i < e->count; ++i)
        if (e->sample[i].buffered && e->sample[i].place == loop) return true;
    return false;
}

static void put_wanted(trli_emitter *e, trli_loop_level loop, int depth)
{
    for (int32_t o = 0; o < e->count; ++o) {
        int32_t i = e->order[o];
        if (!e->wanted[i]) continue;
        trli_put_indent(e, depth);
        fprintf(e->out, "const double v%d = ", e->number[i]);
        trli_put_operation(e, loop, i);
        fputs(";\n", e->out);
    }
}

/* The values of a loop over y or z, or of the call, that a group needs. */
void trli_put_values(trli_emitter *e, trli_loop_level loop, int32_t group, int depth)
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
    trli_emit_mark_operands(e, TRLI_ALL_GROUPS);
    for (int32_t i = 0; i < e->count; ++i)
        e->wanted[i] &= i >= e->sides && e->sample[i].place == TRLI_IN_ROW && !trli_is_leaf(trli_sample_node(e, i));
}

/* Store the row buffers that a loop fills. */
static void put_buffer_stores(trli_emitter *e, trli_loop_level loop, int depth)
{
    for (int32_t o = 0; o < e->count; ++o) {
        const trli_sample *in = &e->sample[e->order[o]];
        if (!in->buffered || in->place != loop) continue;
        trli_put_indent(e, depth);
        fprintf(e->out, "b%d[i] = v%d;\n", e->number[e->order[o]], e->number[e->order[o]]);
    }
}

/* Merge the points of a row shorter than lanes. */
static void put_result_merges(trli_emitter *e, int32_t first, int32_t end, int depth)
{
    trli_put_indent(e, depth);
    fputs(e->nstored == 0 ? "if (merges) {\n" : "{\n", e->out);
    for (int32_t r = first; r < end; ++r) {
        if (!trli_is_merged(e, r)) continue;
        const bool sum = e->merge[r] == TRLI_MERGE_SUM;
        trli_put_indent(e, depth + 1);
        fprintf(e->out, "const double r%d = ", r - first);
        trli_put_use(e, TRLI_IN_RESULT, e->root[r]);
        fputs(";\n", e->out);
        trli_put_indent(e, depth + 1);
        if (sum)
            fprintf(e->out, "trl_kernel_merge_sum(&t%d, trl_kernel_single(r%d));\n", r - first, r - first);
        else
            fprintf(e->out,
                    "trl_kernel_merge_extreme(&t%d, trl_lanes_of(r%d), %d);\n"
                    "%*strl_kernel_merge_check(&t%d, trl_kernel_single(r%d));\n",
                    r - first, r - first, e->merge[r] == TRLI_MERGE_MIN, 4 * depth + 4, "", r - first, r - first);
    }
    if (e->nstored == 0) {
        trli_put_indent(e, depth);
        fputs("    continue;\n", e->out);
    }
    trli_put_indent(e, depth);
    fputs("}\n", e->out);
}

static void put_result_stores(trli_emitter *e, int32_t first, int32_t end, int depth)
{
    if (e->merge) put_result_merges(e, first, end, depth);
    for (int32_t r = first; r < end; ++r) {
        if (!trli_is_stored(e, r)) continue;
        char point[32] = "i";
        if (e->along != 0) snprintf(point, sizeof point, "i * out%d_y", r - first);
        trli_put_indent(e, depth);
        fprintf(e->out, "q%d[%s] = ", r - first, point);
        trli_put_use(e, TRLI_IN_RESULT, e->root[r]);
        fputs(";\n", e->out);
        if (!e->check_finite) continue;
        trli_put_indent(e, depth);
        fprintf(e->out, "excess |= trl_kernel_excess(q%d[%s]);\n", r - first, point);
    }
}

/* Begin the loop over the points of a row shorter than lanes: what is wanted there. */
static void put_short_loop(trli_emitter *e, trli_loop_level loop, int depth)
{
    trli_put_indent(e, depth);
    fputs("TRL_KERNEL_SHORT\n", e->out);
    trli_put_indent(e, depth);
    fputs("for (long long i = 0; i < n; ++i) {\n", e->out);
    put_wanted(e, loop, depth + 1);
}

/* The loop over the points of a row: of lanes, or where it is shorter of points. It fills row buffers, or stores the
 * results of a group. */
static void put_row_loop(trli_emitter *e, trli_loop_level loop, int32_t group, int depth)
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

void trli_put_row_buffers(trli_emitter *e, trli_loop_level loop, int depth)
{
    if (!has_row_of(e, loop)) return;
    for (int32_t o = 0; o < e->count; ++o) {
        const trli_sample *in = &e->sample[e->order[o]];
        if (!in->buffered || in->place != loop || loop == TRLI_IN_POINT) continue;
        trli_put_indent(e, depth);
        fprintf(e->out, "double b%d[TRL_KERNEL_ROW];\n", e->number[e->order[o]]);
    }
    put_row_loop(e, loop, TRLI_SHARED, depth);
}

/* The row in hand of an array: its first point. */
static void put_row_in_hand(trli_emitter *e, const char *array, int32_t name, int depth)
{
    const char *in_row = e->along == 0 ? "x + j" : "j + x";
    trli_put_indent(e, depth);
    fprintf(e->out, "%sdouble *const %s%d_row = trl_kernel_row(%s%d + %s * %s%d_y + k * %s%d_z);\n",
            array[0] == 'i' ? "const " : "", array, name, array, name, in_row, array, name, array, name);
}

/* The first point of a row of an array, some rows and planes away from that in hand. */
static void put_row_address(trli_emitter *e, const char *array, int32_t name, int y, int z)
{
    fprintf(e->out, "%s%d_row", array, name);
    if (y != 0 && e->along != 0) fprintf(e->out, " + (%d)", y);
    if (y != 0 && e->along == 0) fprintf(e->out, " + (%d) * %s%d_y", y, array, name);
    if (z != 0) fprintf(e->out, " + (%d) * %s%d_z", z, array, name);
    fputs(";\n", e->out);
}

static void put_pointers(trli_emitter *e, int32_t group, int depth)
{
    const int ninputs = e->reads->nfields;
    trli_emit_mark_needed(e, group);
    for (int i = 0; i < ninputs; ++i)
        if (trli_reads_input(e, i)) put_row_in_hand(e, "in", e->input_name[i], depth);
    for (int32_t p = 0; p < e->npointers; ++p) {
        const trli_row_pointer *r = &e->pointer[p];
        if (!trli_wants_row(e, p)) continue;
        trli_put_indent(e, depth);
        fprintf(e->out, "const double *%sp%d = ", r->beyond < 0 ? "const " : "", r->name);
        put_row_address(e, "in", e->input_name[r->input], r->y, r->z);
    }
    for (int32_t o = 0; o < e->count; ++o) {
        const trli_sample *in = &e->sample[e->order[o]];
        if (!e->wanted[e->order[o]] || !in->buffered || in->place != TRLI_IN_POINT) continue;
        trli_put_indent(e, depth);
        const int32_t number = e->number[e->order[o]];
        fprintf(e->out, "double *const b%d = shared%d + (j - y) * n;\n", number, number);
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
    fprintf(e->out, "const double g%d[] = {", e->ghosts[g].name);
    for (int d = 0; d < e->ghosts[g].depth; ++d) {
        fputs(d ? ", " : "", e->out);
        trli_put_use(e, TRLI_IN_ROW, e->ghosts[g].sample[d]);
    }
    fputs("};\n", e->out);
}

/* Whether the row beside is beyond the side. */
static void put_if_beyond(trli_emitter *e, const trli_ghosts *ghosts, int depth)
{
    const int row = ghosts->axis == 1 ? ghosts->y : ghosts->z;
    trli_put_indent(e, depth);
    fprintf(e->out, "if (%c + (%d) ", ghosts->axis == 1 ? 'j' : 'k', row);
    fprintf(e->out, ghosts->side ? ">= inside%d.hi[%d]) " : "< inside%d.lo[%d]) ", e->input_name[ghosts->input],
            ghosts->axis);
}

/* In place of the row beside, that at the other side. */
static void put_image_of_side(trli_emitter *e, const trli_ghosts *ghosts, int32_t pointer, int depth)
{
    const int a = ghosts->axis, i = e->input_name[ghosts->input];
    put_if_beyond(e, ghosts, depth);
    fprintf(e->out, "p%d %c= (inside%d.hi[%d] - inside%d.lo[%d]) * in%d_%c;\n", e->pointer[pointer].name,
            "+-"[ghosts->side], i, a, i, a, i, "xyz"[a]);
}

/* The row beside, of ghosts: in place of that of the array. What is the same as a row is that row. */
static void put_ghosts_of_side(trli_emitter *e, int32_t g, int32_t pointer, int depth)
{
    const int32_t root = e->ghosts[g].sample[0], name = e->ghosts[g].name;
    if (trli_sample_node(e, root)->op == TRLI_OP_FIELD) {
        put_if_beyond(e, &e->ghosts[g], depth);
        fprintf(e->out, "p%d = p%d + (%d);\n", e->pointer[pointer].name, e->pointer[e->sample[root].pointer].name,
                e->sample[root].offset[0]);
        return;
    }
    trli_put_indent(e, depth);
    fprintf(e->out, "double g%d[TRL_KERNEL_ROW];\n", name);
    put_if_beyond(e, &e->ghosts[g], depth);
    fputs("{\n", e->out);
    mark_row_of_ghosts(e, root);
    put_wanted(e, TRLI_IN_ROW, depth + 1);
    trli_put_lanes_fill(e, root, name, depth + 1);
    trli_mark_computed(e, TRLI_IN_RESULT, 1, &root);
    put_short_loop(e, TRLI_IN_RESULT, depth + 2);
    trli_put_indent(e, depth + 3);
    fprintf(e->out, "g%d[i] = ", name);
    trli_put_use(e, TRLI_IN_RESULT, root);
    fprintf(e->out, ";\n%*s}\n%*sp%d = g%d;\n%*s}\n", 4 * depth + 8, "", 4 * depth + 4, "", e->pointer[pointer].name,
            name, 4 * depth, "");
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
    const trli_group g = e->group[group];
    for (int32_t q = 0; q < g.end - g.first; ++q) {
        const int plane = (g.first + q) / e->nroots, to = q - plane * e->nroots;
        if (plane == 0) put_row_in_hand(e, "out", to, depth);
        trli_put_indent(e, depth);
        fprintf(e->out, "double *const q%d = ", q);
        put_row_address(e, "out", to, 0, plane);
    }
}

/* Of each input the row that is prefetched: some rows ahead on the plane that is read last, of the lower plane of
 * two. A kernel that merges prefetches some points ahead: it goes through few rows, or a part of one. */
static void put_rows_ahead(trli_emitter *e, int32_t group, int depth)
{
    const int n = e->reads->nfields;
    for (int i = 0; i < n; ++i) {
        if (!trli_reads_first(e, group, i)) continue;
        const trl_offsets hull = trl_footprint_hull(&e->reads->footprint[i]);
        const int32_t name = e->input_name[i];
        trli_put_indent(e, depth);
        fprintf(e->out,
                e->merge ? "const double *const a%d = in%d_row + (%d) * in%d_y + (%d) * in%d_z + ahead;\n"
                         : "const double *const a%d = in%d_row + (%d + ahead) * in%d_y + (%d) * in%d_z;\n",
                name, name, hull.hi[1], name, hull.hi[2], name);
    }
}

void trli_put_row(trli_emitter *e, int32_t group, int depth)
{
    put_pointers(e, group, depth);
    trli_put_values(e, TRLI_IN_ROW, group, depth);
    put_ghosts(e, group, depth);
    if (group == TRLI_SHARED) {
        trli_put_row_buffers(e, TRLI_IN_POINT, depth);
        return;
    }
    put_result_pointers(e, group, depth);
    put_rows_ahead(e, group, depth);
    put_row_loop(e, TRLI_IN_RESULT, group, depth);
}
