/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Functions of a kernel for CPUs: one for the rows of each group of results. It counts what it reads and computes by
 * itself, from 0, and has names for numbers, so that groups which do the same with other arrays and other numbers have
 * the same body and share one function: the kernel of many like equations is short to compile, and its code stays in
 * the first-level cache. */
#include <string.h>

#include "emit_writer_impl.h"
#include "memstream_impl.h"

/* Mark what the function of a group needs: where it takes pairs of planes and single planes, too, pairs need more. */
static void mark_needed(trli_emitter *e, int32_t group)
{
    trli_emit_mark_needed(e, !e->by_planes && trli_goes_by_pairs(e) ? e->ngroups : group);
}

/* Whether the function is given it as a number. */
static bool is_given_value(const trli_emitter *e, int32_t i)
{
    return e->wanted[i] && trli_is_outer(e, i) && !e->sample[i].buffered;
}

/* As a row, or as rows that it or another one fills. */
static bool is_given_row(const trli_emitter *e, int32_t i)
{
    return e->wanted[i] && e->sample[i].buffered;
}

static bool has_name(const trli_emitter *e, int32_t i)
{
    const int op = trli_sample_node(e, i)->op;
    return e->wanted[i] && op != TRLI_OP_CONSTANT && op != TRLI_OP_SCALAR;
}

/* Name things as the function of a group does, what it is given first: others' order among the rest may differ; what it
 * needs is marked as wanted. */
static void name_for_group(trli_emitter *e, int32_t group)
{
    const int ninputs = e->reads->nfields;
    int32_t samples = 0, inputs = 0, rows = 0, ghosts = 0;
    mark_needed(e, group);
    for (int32_t i = 0; i < e->count; ++i) e->number[i] = -1;
    for (int given = 1; given >= 0; --given)
        for (int32_t o = 0; o < e->count; ++o) {
            const int32_t i = e->order[o];
            if (has_name(e, i) && given == (is_given_value(e, i) || is_given_row(e, i))) e->number[i] = samples++;
        }
    for (int i = 0; i < ninputs; ++i) e->input_name[i] = trli_reads_input(e, i) ? inputs++ : -1;
    for (int32_t p = 0; p < e->npointers; ++p) e->pointer[p].name = trli_wants_row(e, p) ? rows++ : -1;
    for (int32_t g = 0; g < e->nghosts; ++g) e->ghosts[g].name = e->input_name[e->ghosts[g].input] >= 0 ? ghosts++ : -1;
}

/* Name samples by their place in the order, as the text around the functions does. */
static void name_for_kernel(trli_emitter *e)
{
    for (int32_t o = 0; o < e->count; ++o) e->number[e->order[o]] = o;
}

/* Of the samples marked as wanted. */
static void put_scalars(trli_emitter *e)
{
    for (int32_t o = 0; o < e->count; ++o) {
        const trli_node *n = trli_sample_node(e, e->order[o]);
        if (n->op == TRLI_OP_SCALAR && e->wanted[e->order[o]])
            fprintf(e->out, "    const double s%d = call->scalar[%d];\n", n->index, n->index);
    }
}

void trli_put_outer_scalars(trli_emitter *e)
{
    trli_emit_mark_needed(e, TRLI_ALL_GROUPS);
    for (int32_t i = 0; i < e->count; ++i) e->wanted[i] &= trli_is_outer(e, i);
    trli_emit_mark_operands(e, TRLI_ALL_GROUPS);
    put_scalars(e);
}

/* Whether the kernel computes ghosts of an input beyond sides of one of these axes. */
static bool has_ghosts(const trli_emitter *e, int input, int first, int last)
{
    for (int32_t g = 0; g < e->nghosts; ++g)
        if (e->ghosts[g].input == input && e->ghosts[g].axis >= first && e->ghosts[g].axis <= last) return true;
    return false;
}

static void put_array(trli_emitter *e, const char *type, const char *name, int n)
{
    fprintf(
        e->out,
        "    %s *const %s%d = call->%sput[%sput[%d]].at;\n"
        "    const long long %s%d_y = call->%sput[%sput[%d]].stride[1], %s%d_z = call->%sput[%sput[%d]].stride[2];\n",
        type, name, n, name, name, n, name, n, name, name, n, name, n, name, name, n);
}

static void put_inputs(trli_emitter *e)
{
    const int ninputs = e->reads->nfields;
    for (int i = 0; i < ninputs; ++i) {
        const int32_t name = e->input_name[i];
        if (name < 0) continue;
        put_array(e, "const double", "in", name);
        if (has_ghosts(e, i, 0, 2))
            fprintf(e->out, "    const trl_kernel_inside inside%d = call->inside[input[%d]];\n", name, name);
        if (has_ghosts(e, i, 0, 0))
            fprintf(e->out,
                    "    const long long lo%d = inside%d.lo[0] - x, hi%d = inside%d.hi[0] - x;\n"
                    "    (void)lo%d, (void)hi%d;\n",
                    name, name, name, name, name, name);
    }
}

/* Results of the group, on one plane. */
static int32_t outputs_of(const trli_emitter *e, int32_t group)
{
    if (group == TRLI_SHARED) return 0;
    return group == e->ngroups ? e->nroots : e->group[group].end - e->group[group].first;
}

/* What the function is given. */
static void put_arguments(trli_emitter *e, int32_t group)
{
    int values = 0, rows = 0;
    fputs("    const trl_kernel_grid *const grid = call->grid;\n"
          "    const int ahead = call->ahead;\n"
          "    const trl_kernel_part part = rows->part;\n"
          "    const long long x = rows->x, n = part.n, y = rows->y, end = rows->end;\n"
          "    (void)grid, (void)ahead;\n",
          e->out);
    fputs(e->by_planes ? "    const long long k = rows->z;\n" : "    const long long z = rows->z, stop = rows->stop;\n",
          e->out);
    if (e->check_finite) fputs("    long long excess = 0;\n    trl_kernel_lanes sums = {0};\n", e->out);
    put_scalars(e);
    put_inputs(e);
    for (int r = 0; r < outputs_of(e, group); ++r) put_array(e, "double", "out", r);
    if (e->merge) fputs("    const int merges = call->merged != 0;\n    (void)merges;\n", e->out);
    for (int r = 0; e->merge && r < outputs_of(e, group); ++r)
        fprintf(e->out, "    trl_kernel_total t%d = found->total[output[%d]];\n", r, r);
    for (int32_t o = 0; o < e->count; ++o) {
        const int32_t i = e->order[o];
        if (is_given_value(e, i)) fprintf(e->out, "    const double v%d = value[%d];\n", e->number[i], values++);
        if (!is_given_row(e, i)) continue;
        fprintf(e->out, "    double *const %s%d = row[%d];\n", trli_is_outer(e, i) ? "b" : "shared", e->number[i],
                rows++);
    }
}

/* The rows of one plane. */
static void put_rows(trli_emitter *e, int32_t group)
{
    if (group != TRLI_SHARED) trli_put_kept(e, group, 1);
    fputs("    for (long long j = y; j < end; ++j) {\n", e->out);
    trli_put_row(e, group, 2);
    fputs("    }\n", e->out);
}

/* Rows of some planes, interleaved: what a row reads of the neighbouring planes is then in the first-level cache. */
static void put_interleaved_rows(trli_emitter *e, int32_t group)
{
    fputs("    for (long long j = y; j < end; ++j) {\n"
          "        for (long long k = z; k < stop; ++k) {\n",
          e->out);
    if (trli_goes_by_pairs(e)) {
        fputs("            if (k + 1 < stop) {\n", e->out);
        trli_put_row(e, e->ngroups, 4);
        fputs("                ++k;\n                continue;\n            }\n", e->out);
    }
    trli_put_row(e, group, 3);
    fputs("        }\n    }\n", e->out);
}

static trl_err no_memory(const trli_emitter *e)
{
    return trli_no_memory(e->ir->ctx, NULL, "for the text of a kernel");
}

/* Where the function of a group is noted. */
static trli_group_function *function_of(const trli_emitter *e, int32_t group)
{
    return &e->function[group == TRLI_SHARED ? e->ngroups + 1 : group];
}

/* The body of a group's function but for the numbers. */
static trl_err put_body(trli_emitter *e, int32_t group)
{
    FILE *const out = e->out;
    trli_memstream body;
    if (!trli_memstream_open(e->ir->ctx, &body)) return no_memory(e);
    trli_group_function *const f = e->at_hand = function_of(e, group);
    e->out = body.out;
    name_for_group(e, group);
    put_arguments(e, group);
    if (e->by_planes)
        put_rows(e, group);
    else
        put_interleaved_rows(e, group);
    if (e->check_finite) fputs("    found->excess |= excess;\n    found->sums += sums;\n", e->out);
    for (int r = 0; e->merge && r < outputs_of(e, group); ++r)
        fprintf(e->out, "    found->total[output[%d]] = t%d;\n", r, r);
    name_for_kernel(e);
    e->out = out;
    e->at_hand = NULL;
    if (!trli_memstream_close(&body)) return no_memory(e);
    f->body = body.text;
    return TRL_OK;
}

static bool have_same_body(const trli_group_function *f, const trli_group_function *g)
{
    return f->body && g->body && f->nconstants == g->nconstants && strcmp(f->body, g->body) == 0;
}

/* Whether a constant of two functions is the same, also where the kernel is given the numbers. */
static bool are_same_number(const trli_emitter *e, const double *a, const double *b)
{
    return a == b || (memcmp(a, b, sizeof *a) == 0 && trli_given_as(e, a) < 0 && trli_given_as(e, b) < 0);
}

/* Whether all that share the function have the same number. */
static bool is_common(const trli_emitter *e, const trli_group_function *f, int32_t constant)
{
    for (const trli_group_function *g = e->function; g < e->function + e->ngroups + 2; ++g)
        if (g->body && g->number == f->number && !are_same_number(e, g->constant[constant], f->constant[constant]))
            return false;
    return true;
}

/* Samples that the function is given as numbers; they are marked as wanted. */
static int given_values(const trli_emitter *e)
{
    int values = 0;
    for (int32_t i = 0; i < e->count; ++i) values += is_given_value(e, i);
    return values;
}

static void put_function(trli_emitter *e, int32_t group)
{
    const trli_group_function *const f = function_of(e, group);
    mark_needed(e, group);
    int values = given_values(e);
    fprintf(e->out,
            "%s void TRL_OWN(group%d)(const trl_kernel_call *call, const trl_kernel_rows *rows, const int *input,\n"
            "    const int *output, const double *value, double *const *row, trl_kernel_found *found)\n{\n",
            e->ngroups > 1 ? "TRL_KERNEL_GROUP" : "TRL_BODY", f->number);
    for (int32_t c = 0; c < f->nconstants; ++c) {
        fprintf(e->out, "    const double number%d = ", c);
        if (is_common(e, f, c))
            trli_put_number_of(e, f->constant[c]);
        else
            fprintf(e->out, "value[%d]", values++);
        fputs(";\n", e->out);
    }
    fprintf(e->out, "%s}\n\n", f->body);
}

/* Whether the loop over planes is outside of that over rows: something is computed once for a plane, kept from row to
 * row, or shared. */
static bool goes_by_planes(trli_emitter *e)
{
    if (e->nshared > 0) return true;
    for (int32_t g = 0; g < e->ngroups + trli_goes_by_pairs(e); ++g)
        if (trli_keeps_rows(e, g)) return true;
    for (int32_t i = 0; i < e->count; ++i) {
        const trli_loop_level p = e->sample[i].place;
        if ((p == TRLI_IN_PLANE || p == TRLI_IN_PLANE_ROW) && !trli_is_leaf(trli_sample_node(e, i))) return true;
    }
    return false;
}

/* The groups that have a function, by number: those of pairs of planes and of what groups share are not always among
 * them. Returns how many. */
static int32_t list_groups(const trli_emitter *e, int32_t *list)
{
    int32_t n = 0;
    if (e->by_planes && trli_goes_by_pairs(e)) list[n++] = e->ngroups;
    if (e->nshared > 0) list[n++] = TRLI_SHARED;
    for (int32_t g = 0; g < e->ngroups; ++g) list[n++] = g;
    return n;
}

trl_err trli_put_groups(trli_emitter *e)
{
    int32_t *const list = trli_new(e->ir->ctx, (size_t)e->ngroups + 2, sizeof *list), functions = 0;
    trl_err err = TRL_OK;
    e->by_planes = goes_by_planes(e);
    e->function = trli_new(e->ir->ctx, (size_t)e->ngroups + 2, sizeof *e->function);
    if (!list || !e->function) {
        err = no_memory(e);
        goto done;
    }
    const int32_t n = list_groups(e, list);
    for (int32_t at = 0; at < n; ++at) {
        TRL_TRY(put_body(e, list[at]));
        trli_group_function *const f = function_of(e, list[at]);
        int32_t same = 0;
        while (!have_same_body(f, function_of(e, list[same]))) ++same;
        f->number = same < at ? function_of(e, list[same])->number : functions++;
    }
    for (int32_t at = 0, put = 0; at < n; ++at)
        if (function_of(e, list[at])->number == put) {
            put_function(e, list[at]);
            ++put;
        }
done:
    trli_free(list);
    return err;
}

/* Before an element of a list of arguments; `n` are those so far. */
static void put_separator(trli_emitter *e, const char *type, int *n)
{
    if (*n == 0)
        fprintf(e->out, ", (%s[]){", type);
    else
        fputs(", ", e->out);
    ++*n;
}

static void put_list_end(trli_emitter *e, int *n)
{
    fputs(*n ? "}" : ", 0", e->out);
    *n = 0;
}

static void put_element(trli_emitter *e, const char *type, const char *name, int32_t number, int *n)
{
    put_separator(e, type, n);
    fprintf(e->out, "%s%d", name, number);
}

/* Values, and the numbers that others which share the function have others for. */
static void put_values(trli_emitter *e, const trli_group_function *f, int *n)
{
    for (int32_t o = 0; o < e->count; ++o)
        if (is_given_value(e, e->order[o])) put_element(e, "const double", "v", o, n);
    for (int32_t c = 0; c < f->nconstants; ++c) {
        if (is_common(e, f, c)) continue;
        put_separator(e, "const double", n);
        trli_put_number_of(e, f->constant[c]);
    }
    put_list_end(e, n);
}

void trli_put_group_call(trli_emitter *e, int32_t group, int depth)
{
    const trli_group_function *const f = function_of(e, group);
    const int ninputs = e->reads->nfields;
    int n = 0;
    trli_put_indent(e, depth);
    fprintf(e->out, "TRL_OWN(group%d)(call, &rows", f->number);
    mark_needed(e, group);
    for (int i = 0; i < ninputs; ++i)
        if (trli_reads_input(e, i)) put_element(e, "const int", "", i, &n);
    put_list_end(e, &n);
    for (int r = 0; r < outputs_of(e, group); ++r) put_element(e, "const int", "", e->group[group].first + r, &n);
    put_list_end(e, &n);
    put_values(e, f, &n);
    for (int32_t o = 0; o < e->count; ++o)
        if (is_given_row(e, e->order[o]))
            put_element(e, "double *const", trli_is_outer(e, e->order[o]) ? "b" : "shared", o, &n);
    put_list_end(e, &n);
    fputs(", &found);\n", e->out);
}
