/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Loops over lanes, the values that the processor computes at once. Scalar replacement: a value that costs much and is
 * the same at the point or in the row before is taken from there. Results of fields that outgrow the caches are written
 * by streaming stores. */
#include <stdlib.h>
#include <string.h>

#include "emit_writer_impl.h"

enum {
    CARRY_COST = 8,        /* worth a shuffle of lanes, or a load and a store */
    LOOP_INSIDE_MOST = 128 /* values that a second loop may compute */
};

/* Whether a sample is several values in a loop over lanes: it varies along the row. */
static bool is_lanes(const trli_emitter *e, int32_t i)
{
    const trli_sample *in = &e->sample[i];
    const trli_node *n = trli_sample_node(e, i);
    if (trli_is_leaf(n)) return n->op == TRLI_OP_FIELD;
    return in->place == TRLI_IN_POINT || trli_is_row(in->place);
}

/* How a sample is read by a loop over lanes. */
static void put_lanes(trli_emitter *e, trli_loop_level loop, int32_t i)
{
    const trli_sample *in = &e->sample[i];
    if (!is_lanes(e, i)) {
        fputs("trl_lanes_of(", e->out);
        e->dialect->put_use(e, TRLI_IN_RESULT, i);
        fputs(")", e->out);
    } else if (trli_sample_node(e, i)->op == TRLI_OP_FIELD && e->along != 0) {
        fputs("trl_kernel_gather(&", e->out);
        e->dialect->put_use(e, loop, i);
        fprintf(e->out, ", in%d_y)", e->input_name[e->pointer[in->pointer].input]);
    } else if (trli_sample_node(e, i)->op == TRLI_OP_FIELD && in->beyond < 0)
        fprintf(e->out, "trl_kernel_load(p%d + i + (%d))", e->pointer[in->pointer].name, in->offset[0]);
    else if (in->buffered && in->place != loop)
        fprintf(e->out, "trl_kernel_load(b%d + i)", e->number[i]);
    else
        fprintf(e->out, "v%d", e->number[i]);
}

static bool is_comparison(int op)
{
    return trli_op_find(op)->kind == TRLI_OP_IS_TEST;
}

/* The expression of an operation in terms of lanes; that of a comparison gives bits. */
static void put_lanes_form(trli_emitter *e, trli_loop_level loop, int32_t i)
{
    trli_put_form(e, loop, i, trli_op_find(trli_sample_node(e, i)->op)->of_vectors, put_lanes);
}

static void put_lanes_operation(trli_emitter *e, trli_loop_level loop, int32_t i)
{
    const trli_sample *in = &e->sample[i];
    const int op = trli_sample_node(e, i)->op;
    if (op == TRLI_OP_FIELD) {
        trli_put_beyond(e, true, in);
        return;
    }
    const trli_sample *condition = op == TRLI_OP_SELECT ? &e->sample[in->arg[0]] : NULL;
    if (trli_op_operands(op) == 0)
        trli_put_point(e, true, i);
    else if (trli_is_function(trli_sample_node(e, i)))
        trli_put_call(e, loop, i, "_lanes", put_lanes);
    else if (is_comparison(op)) {
        fputs("trl_lanes_truth(", e->out);
        put_lanes_form(e, loop, i);
        fputs(")", e->out);
    } else if (condition && (!condition->buffered || condition->place == loop) && is_lanes(e, in->arg[0]) &&
               condition->ahead < 0 && is_comparison(trli_sample_node(e, in->arg[0])->op)) {
        fputs("trl_lanes_choose(", e->out);
        put_lanes_form(e, loop, in->arg[0]);
        trli_put_form(e, loop, i, ", y, z)", put_lanes);
    } else
        put_lanes_form(e, loop, i);
}

/* ---- values of the iteration before ---- */

/* What a loop over lanes computes itself. */
static bool is_computed(const trli_emitter *e, int32_t i)
{
    const trli_sample *in = &e->sample[i];
    return (in->place == TRLI_IN_POINT || trli_is_row(in->place)) && !in->buffered &&
           (in->beyond >= 0 || !trli_is_leaf(trli_sample_node(e, i)));
}

/* Of the values wanted, that of the same node one point or row ahead; -1: none, or it is no gain. */
static int32_t find_ahead(const trli_emitter *e, int32_t i, int axis)
{
    const trli_sample *in = &e->sample[i];
    if (e->disabled_passes & TRL_PASS_CARRYING) return -1;
    if (in->place != TRLI_IN_POINT || in->cost < CARRY_COST || e->along != 0) return -1;
    for (int32_t k = e->first[in->node]; k >= 0; k = e->sample[k].next) {
        const int8_t *at = e->sample[k].offset;
        if (e->wanted[k] && at[axis] == in->offset[axis] + 1 && at[1 - axis] == in->offset[1 - axis] &&
            at[2] == in->offset[2])
            return k;
    }
    return -1;
}

/* Mark as wanted what the loop over the lanes of a group computes, and find what of it the iteration before knew. */
static void find_computed(trli_emitter *e, int32_t group)
{
    memset(e->wanted, 0, (size_t)e->count * sizeof *e->wanted);
    for (int32_t i = 0; i < e->count; ++i) e->sample[i].ahead = -1;
    for (int32_t r = e->group[group].first; r < e->group[group].end; ++r) e->wanted[e->root[r]] = true;
    for (int32_t at = e->walk->count - 1; at >= 0; --at) {
        for (int32_t i = e->first[at]; i >= 0; i = e->sample[i].next) e->wanted[i] &= is_computed(e, i);
        for (int32_t i = e->first[at]; i >= 0; i = e->sample[i].next) {
            trli_sample *in = &e->sample[i];
            for (int axis = 0; axis < 2 && e->wanted[i] && in->ahead < 0; ++axis) {
                in->ahead = find_ahead(e, i, axis);
                in->axis = axis;
            }
            for (int a = 0; e->wanted[i] && in->ahead < 0 && a < 3 && in->arg[a] >= 0; ++a)
                e->wanted[in->arg[a]] = true;
        }
    }
}

/* Whether it is taken from the point (axis 0) or row (1) before. */
static bool is_taken(const trli_emitter *e, int32_t i, int axis)
{
    return e->wanted[i] && e->sample[i].ahead >= 0 && e->sample[i].axis == axis;
}

static bool takes(const trli_emitter *e, int axis)
{
    for (int32_t i = 0; i < e->count; ++i)
        if (is_taken(e, i, axis)) return true;
    return false;
}

bool trli_keeps_rows(trli_emitter *e, int32_t group)
{
    find_computed(e, group);
    return takes(e, 1);
}

void trli_put_kept(trli_emitter *e, int32_t group, int depth)
{
    if (!trli_keeps_rows(e, group)) return;
    for (int32_t o = 0; o < e->count; ++o) {
        if (!is_taken(e, e->order[o], 1)) continue;
        trli_put_indent(e, depth);
        fprintf(e->out, "double kept%d[2][TRL_KERNEL_ROW];\n", e->number[e->order[o]]);
    }
}

static void put_lanes_value(trli_emitter *e, trli_loop_level loop, int32_t i, int depth)
{
    trli_put_indent(e, depth);
    fprintf(e->out, "const trl_kernel_lanes v%d = ", e->number[i]);
    put_lanes_operation(e, loop, i);
    fputs(";\n", e->out);
}

/* Compute what is otherwise taken from the point or row before. */
static void put_anew(trli_emitter *e, int axis, int depth)
{
    for (int32_t i = 0; i < e->count; ++i) e->also[i] = is_taken(e, i, axis);
    for (int32_t o = e->count - 1; o >= 0; --o) {
        const trli_sample *in = &e->sample[e->order[o]];
        e->also[e->order[o]] &= is_computed(e, e->order[o]);
        for (int a = 0; e->also[e->order[o]] && a < 3 && in->arg[a] >= 0; ++a) e->also[in->arg[a]] = true;
    }
    for (int32_t o = 0; o < e->count; ++o)
        if (e->also[e->order[o]]) put_lanes_value(e, TRLI_IN_RESULT, e->order[o], depth);
    for (int32_t o = 0; o < e->count; ++o) {
        const int32_t i = e->order[o];
        if (!is_taken(e, i, axis)) continue;
        trli_put_indent(e, depth);
        const int32_t name = e->number[i];
        if (axis == 0)
            fprintf(e->out, "c%d = trl_lanes_of(v%d[0]);\n", name, name);
        else
            fprintf(e->out, "trl_kernel_put(k%d + i, 0, v%d);\n", name, name);
    }
}

static const char to_last_lanes[] = "if (i > n - TRL_KERNEL_LANES) i = n - TRL_KERNEL_LANES;\n";

/* Begin the loop over lanes. */
static void put_each_lanes(trli_emitter *e, int depth)
{
    trli_put_indent(e, depth);
    fputs("for (long long i = 0; i < n; i += TRL_KERNEL_LANES) {\n", e->out);
    trli_put_indent(e, depth + 1);
    fputs(to_last_lanes, e->out);
}

/* ---- what may lie beyond an end of a row ---- */

/* Whether the loop over lanes reads it, and it may. */
static bool may_be_beyond(const trli_emitter *e, int32_t i)
{
    return e->wanted[i] && trli_sample_node(e, i)->op == TRLI_OP_FIELD;
}

static bool reads_beyond(const trli_emitter *e)
{
    for (int32_t i = 0; i < e->count; ++i)
        if (may_be_beyond(e, i)) return true;
    return false;
}

/* Whether one before it in the order may be beyond the same end by as much. */
static bool repeats_beyond(const trli_emitter *e, int32_t place)
{
    const trli_sample *in = &e->sample[e->order[place]];
    for (int32_t o = 0; o < place; ++o) {
        const trli_sample *other = &e->sample[e->order[o]];
        if (may_be_beyond(e, e->order[o]) && other->offset[0] == in->offset[0] &&
            e->ghosts[other->beyond].input == e->ghosts[in->beyond].input &&
            e->ghosts[other->beyond].side == e->ghosts[in->beyond].side)
            return true;
    }
    return false;
}

/* Whether whole lanes that read nothing beyond an end get a loop of their own, without a branch: where there is little
 * to compute, one tells. */
static bool has_loop_inside(const trli_emitter *e)
{
    int values = 0;
    for (int32_t i = 0; i < e->count; ++i) {
        if (e->wanted[i] && trli_is_function(trli_sample_node(e, i))) return false;
        values += e->wanted[i];
    }
    return values <= LOOP_INSIDE_MOST && e->along == 0 && !takes(e, 0);
}

/* Before the loop over lanes: those that begin at points from `first` to `last` read nothing beyond an end. */
static void put_inside(trli_emitter *e, int depth)
{
    if (!reads_beyond(e)) return;
    trli_put_indent(e, depth);
    fputs("long long first = 0, last = n - TRL_KERNEL_LANES;\n", e->out);
    for (int32_t o = 0; o < e->count; ++o) {
        const trli_sample *in = &e->sample[e->order[o]];
        if (!may_be_beyond(e, e->order[o]) || repeats_beyond(e, o)) continue;
        const trli_ghosts *g = &e->ghosts[in->beyond];
        const char *form = g->side ? "last = trl_kernel_least(last, hi%d - (%d) - TRL_KERNEL_LANES);\n"
                                   : "first = trl_kernel_most(first, lo%d - (%d));\n";
        trli_put_indent(e, depth);
        fprintf(e->out, form, e->input_name[g->input], in->offset[0]);
    }
}

/* What lanes may have beyond an end of the row: nothing; at the begin or at the end of it, as much as the lanes there;
 * as much as it turns out. */
typedef enum beyond { NOTHING, FIRST, LAST, ANY } beyond;

/* All that may be beyond. */
static void put_reads(trli_emitter *e, const char *type, beyond what, int depth)
{
    for (int32_t o = 0; o < e->count; ++o) {
        const trli_sample *in = &e->sample[e->order[o]];
        if (!may_be_beyond(e, e->order[o])) continue;
        trli_put_indent(e, depth);
        fprintf(e->out, "%sv%d = ", type, e->number[e->order[o]]);
        const trli_ghosts *g = &e->ghosts[in->beyond];
        const int ghosts = abs(in->offset[0]) + g->further, row = e->pointer[in->pointer].name;
        if (what == ANY)
            trli_put_beyond(e, true, in);
        else if (ghosts > 0 && what == FIRST && !g->side)
            fprintf(e->out, "trl_kernel_load_first(p%d + (%d), g%d, %d)", row, in->offset[0], g->name, ghosts);
        else if (ghosts > 0 && what == LAST && g->side)
            fprintf(e->out, "trl_kernel_load_last(p%d + i + (%d), part.end > 0, g%d, %d)", row, in->offset[0], g->name,
                    ghosts);
        else
            fprintf(e->out, "trl_kernel_load(p%d + i + (%d))", row, in->offset[0]);
        fputs(";\n", e->out);
    }
}

/* In that loop: all of it behind one branch. */
static void put_read_either(trli_emitter *e, int depth)
{
    if (!reads_beyond(e)) return;
    for (int32_t o = 0; o < e->count; ++o) {
        if (!may_be_beyond(e, e->order[o])) continue;
        trli_put_indent(e, depth);
        fprintf(e->out, "trl_kernel_lanes v%d;\n", e->number[e->order[o]]);
    }
    trli_put_indent(e, depth);
    fputs("if (i >= first && i <= last) {\n", e->out);
    put_reads(e, "", NOTHING, depth + 1);
    trli_put_indent(e, depth);
    fputs("} else {\n", e->out);
    put_reads(e, "", ANY, depth + 1);
    trli_put_indent(e, depth);
    fputs("}\n", e->out);
}

/* ---- the loop ---- */

/* Before the loop over lanes: what it takes along x, and the row before of the first one. */
static void put_before(trli_emitter *e, int depth)
{
    for (int32_t o = 0; o < e->count; ++o) {
        const int32_t i = e->order[o];
        const int32_t name = e->number[i];
        if (!is_taken(e, i, 0) && !is_taken(e, i, 1)) continue;
        trli_put_indent(e, depth);
        if (e->sample[i].axis == 0)
            fprintf(e->out, "trl_kernel_lanes c%d;\n", name);
        else
            fprintf(e->out, "double *const k%d = kept%d[j & 1], *const n%d = kept%d[~j & 1];\n", name, name, name,
                    name);
    }
    if (!takes(e, 1)) return;
    trli_put_indent(e, depth);
    fputs("if (j == y)\n", e->out);
    put_each_lanes(e, depth + 1);
    put_anew(e, 1, depth + 2);
    trli_put_indent(e, depth + 1);
    fputs("}\n", e->out);
}

/* The loops around points. What is taken along x is first computed anew: at the begin of a row, and where the last
 * lanes overlap others, which then go by themselves. Returns the depth within. */
static int put_heads(trli_emitter *e, int depth)
{
    if (!takes(e, 0)) {
        put_each_lanes(e, depth);
        return depth + 1;
    }
    trli_put_indent(e, depth);
    fputs("for (long long i = 0, stop = n - n % TRL_KERNEL_LANES; i < n; stop = n) {\n", e->out);
    trli_put_indent(e, depth + 1);
    fputs(to_last_lanes, e->out);
    put_anew(e, 0, depth + 1);
    trli_put_indent(e, depth + 1);
    fputs("for (; i < stop; i += TRL_KERNEL_LANES) {\n", e->out);
    return depth + 2;
}

/* The value that is this one of the point or row before; -1: none. */
static int32_t find_follower(const trli_emitter *e, int32_t i, int axis)
{
    for (int32_t k = e->first[e->sample[i].node]; k >= 0; k = e->sample[k].next)
        if (is_taken(e, k, axis) && e->sample[k].ahead == i) return k;
    return -1;
}

/* Values that are this one of the point and the row before. */
static void put_followers(trli_emitter *e, int32_t i, int depth)
{
    const int from = e->number[i];
    for (int axis = 0; axis < 2; ++axis) {
        const int32_t k = find_follower(e, i, axis);
        if (k < 0) continue;
        const int to = e->number[k];
        trli_put_indent(e, depth);
        if (axis == 0)
            fprintf(e->out, "const trl_kernel_lanes v%d = trl_lanes_follow(c%d, v%d);\n%*sc%d = v%d;\n", to, to, from,
                    4 * depth, "", to, from);
        else
            fprintf(e->out,
                    "const trl_kernel_lanes v%d = trl_kernel_load(k%d + i);\n%*strl_kernel_put(n%d + i, 0, v%d);\n", to,
                    to, 4 * depth, "", to, from);
        put_followers(e, k, depth);
    }
}

/* Whether the values of a result are noted to be finite with those of one before it, or as the terms of a sum. */
static bool is_checked(const trli_emitter *e, trli_group g, int32_t result)
{
    for (int32_t r = g.first; r < result; ++r)
        if (e->root[r] == e->root[result]) return true;
    return e->merge[result] == TRLI_MERGE_SUM;
}

/* Merge the lanes of a result. aligned: no lanes before had any of them. */
static void put_merge(trli_emitter *e, trli_group g, int32_t result, bool aligned, int depth)
{
    const bool sum = e->merge[result] == TRLI_MERGE_SUM;
    trli_put_indent(e, depth);
    fprintf(e->out, "trl_kernel_merge_%s(&t%d, %s", sum ? "sum" : "extreme", result - g.first,
            sum && !aligned ? "trl_kernel_fresh(" : "");
    put_lanes(e, TRLI_IN_RESULT, e->root[result]);
    fprintf(e->out, "%s%s);\n", sum && !aligned ? ", i, n)" : "",
            sum                                  ? ""
            : e->merge[result] == TRLI_MERGE_MIN ? ", 1"
                                                 : ", 0");
    if (is_checked(e, g, result)) return;
    trli_put_indent(e, depth);
    fprintf(e->out, "trl_kernel_merge_check(&t%d, ", result - g.first);
    put_lanes(e, TRLI_IN_RESULT, e->root[result]);
    fputs(");\n", e->out);
}

static void put_merges(trli_emitter *e, trli_group g, bool aligned, int depth)
{
    const bool either = e->nstored == 0;
    trli_put_indent(e, depth);
    fputs(either ? "if (merges) {\n" : "{\n", e->out);
    for (int32_t r = g.first; r < g.end; ++r)
        if (trli_is_merged(e, r)) put_merge(e, g, r, aligned, depth + 1);
    trli_put_indent(e, depth);
    fputs(either ? "} else {\n" : "}\n", e->out);
}

/* aligned: i is a multiple of the lanes. A sum of results is finite if all of them are, unless they come near the
 * largest number: then a search for the value that is not finite follows, and finds none. */
static void put_lanes_results(trli_emitter *e, trli_group g, bool aligned, int depth)
{
    const bool either = e->merge && e->nstored == 0;
    if (e->merge) put_merges(e, g, aligned, depth);
    for (int32_t r = g.first; r < g.end; ++r) {
        if (!trli_is_stored(e, r)) continue;
        trli_put_indent(e, depth + either);
        if (e->along != 0)
            fprintf(e->out, "trl_kernel_scatter(q%d + i * out%d_y, out%d_y, ", r - g.first, r - g.first, r - g.first);
        else
            fprintf(e->out, "%s(q%d%s, streaming, ", aligned ? "trl_kernel_put" : "trl_kernel_put_any", r - g.first,
                    aligned ? " + i" : ", i, n");
        put_lanes(e, TRLI_IN_RESULT, e->root[r]);
        fputs(");\n", e->out);
    }
    if (either) {
        trli_put_indent(e, depth);
        fputs("}\n", e->out);
    }
    if (!e->check_finite) return;
    trli_put_indent(e, depth);
    for (int32_t r = g.first; r < g.end; ++r) {
        fputs(r == g.first ? "sums += " : " + ", e->out);
        put_lanes(e, TRLI_IN_RESULT, e->root[r]);
    }
    fputs(";\n", e->out);
}

static void put_lanes_buffers(trli_emitter *e, trli_loop_level loop, int depth)
{
    for (int32_t o = 0; o < e->count; ++o) {
        const trli_sample *in = &e->sample[e->order[o]];
        if (!in->buffered || in->place != loop) continue;
        trli_put_indent(e, depth);
        fprintf(e->out, "trl_kernel_put(b%d + i, 0, v%d);\n", e->number[e->order[o]], e->number[e->order[o]]);
    }
}

static void put_alignment(trli_emitter *e, trli_group g, int depth)
{
    trli_put_indent(e, depth);
    fputs("int streaming = call->streaming", e->out);
    for (int32_t q = 0; q < g.end - g.first; ++q)
        if (trli_is_stored(e, g.first + q)) fprintf(e->out, " && trl_kernel_is_aligned(q%d)", q);
    fputs(";\n", e->out);
}

/* Mark what a loop fills rows with; nothing of it is taken from the iteration before. */
static void find_filled(trli_emitter *e, trli_loop_level loop, int nroots, const int32_t *root)
{
    trli_mark_computed(e, loop, nroots, root);
    for (int32_t i = 0; i < e->count; ++i) {
        trli_sample *in = &e->sample[i];
        in->ahead = -1;
        for (int a = 0; e->wanted[i] && a < 3 && in->arg[a] >= 0; ++a)
            e->wanted[in->arg[a]] |= e->sample[in->arg[a]].beyond >= 0;
    }
}

/* What the lanes of one place compute of what they have read. */
static void put_lanes_point(trli_emitter *e, trli_loop_level loop, int32_t group, bool aligned, int depth)
{
    for (int32_t o = 0; o < e->count; ++o) {
        const int32_t i = e->order[o];
        if (!e->wanted[i] || e->sample[i].ahead >= 0) continue;
        if (!may_be_beyond(e, i)) put_lanes_value(e, loop, i, depth);
        put_followers(e, i, depth);
    }
    if (loop == TRLI_IN_RESULT)
        put_lanes_results(e, e->group[group], aligned, depth);
    else
        put_lanes_buffers(e, loop, depth);
}

/* Lanes at one place of a row. */
static void put_lanes_at(trli_emitter *e, trli_loop_level loop, int32_t group, beyond what, int depth)
{
    if (loop == TRLI_IN_RESULT && e->along == 0) trli_put_fetches(e, group, depth);
    put_reads(e, "const trl_kernel_lanes ", what, depth);
    put_lanes_point(e, loop, group, what != LAST, depth);
}

/* Whether lanes may neither be the last ones of a row nor read nothing beyond its end. */
static bool may_near_end(const trli_emitter *e)
{
    for (int32_t g = 0; g < e->nghosts; ++g)
        if (e->ghosts[g].axis == 0 && e->ghosts[g].side && e->ghosts[g].depth > 1) return true;
    return false;
}

/* The loop over lanes, without a branch; those that may read beyond an end of the row go by themselves before and after
 * it. */
static void put_loop_inside(trli_emitter *e, trli_loop_level loop, int32_t group, int depth)
{
    const bool ends = reads_beyond(e), again = ends && may_near_end(e);
    trli_put_indent(e, depth);
    fprintf(e->out, "const long long last = n - TRL_KERNEL_LANES%s;\n%*slong long i = 0;\n", ends ? " - part.end" : "",
            4 * depth, "");
    if (ends) {
        trli_put_indent(e, depth);
        fputs("if (part.begin > 0) {\n", e->out);
        put_lanes_at(e, loop, group, FIRST, depth + 1);
        fprintf(e->out, "%*si = TRL_KERNEL_LANES;\n%*s}\n", 4 * depth + 4, "", 4 * depth, "");
    }
    if (again) {
        trli_put_indent(e, depth);
        fprintf(e->out, "for (;; i = last%s) {\n", loop == TRLI_IN_RESULT ? ", streaming = 0" : "");
    }
    trli_put_indent(e, depth + again);
    fputs("for (; i <= last; i += TRL_KERNEL_LANES) {\n", e->out);
    put_lanes_at(e, loop, group, NOTHING, depth + again + 1);
    if (again)
        fprintf(e->out, "%*s}\n%*sif (i >= n - TRL_KERNEL_LANES) break;\n", 4 * depth + 4, "", 4 * depth + 4, "");
    trli_put_indent(e, depth);
    fprintf(e->out, "}\n%*sif (i < n) {\n%*si = n - TRL_KERNEL_LANES;\n", 4 * depth, "", 4 * depth + 4, "");
    put_lanes_at(e, loop, group, LAST, depth + 1);
    trli_put_indent(e, depth);
    fputs("}\n", e->out);
}

/* The last lanes of a row overlap those before; shorter rows go point by point. */
void trli_put_lanes_loop(trli_emitter *e, trli_loop_level loop, int32_t group, int depth)
{
    const bool stores = loop == TRLI_IN_RESULT, streaming = stores && e->along == 0;
    if (stores)
        find_computed(e, group);
    else
        find_filled(e, loop, 0, NULL);
    const bool inside = has_loop_inside(e);
    trli_put_indent(e, depth);
    fputs(inside && reads_beyond(e) ? "if (part.lanes) {\n" : "if (n >= TRL_KERNEL_LANES) {\n", e->out);
    if (streaming) put_alignment(e, e->group[group], depth + 1);
    put_before(e, depth + 1);
    if (inside) {
        put_loop_inside(e, loop, group, depth + 1);
    } else {
        put_inside(e, depth + 1);
        const int within = put_heads(e, depth + 1);
        if (streaming) trli_put_fetches(e, group, within);
        put_read_either(e, within);
        put_lanes_point(e, loop, group, false, within);
        for (int d = within - 1; d > depth; --d) {
            trli_put_indent(e, d);
            fputs("}\n", e->out);
        }
    }
    trli_put_indent(e, depth);
    fputs("} else\n", e->out);
}

void trli_put_lanes_fill(trli_emitter *e, int32_t root, int32_t name, int depth)
{
    trli_put_indent(e, depth);
    fputs("if (n >= TRL_KERNEL_LANES) {\n", e->out);
    put_each_lanes(e, depth + 1);
    find_filled(e, TRLI_IN_RESULT, 1, &root);
    for (int32_t o = 0; o < e->count; ++o)
        if (e->wanted[e->order[o]]) put_lanes_value(e, TRLI_IN_RESULT, e->order[o], depth + 2);
    trli_put_indent(e, depth + 2);
    fprintf(e->out, "trl_kernel_put(g%d + i, 0, ", name);
    put_lanes(e, TRLI_IN_RESULT, root);
    fprintf(e->out, ");\n%*s}\n%*s} else\n", 4 * depth + 4, "", 4 * depth, "");
}
