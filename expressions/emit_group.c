/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Functions of a kernel for CPUs: one for the rows of each group of results. It counts what it reads and computes by itself, from 0, so that groups
 * which do the same with other arrays have the same text and share one function: the kernel of many like equations is short to compile, and its
 * code stays in the first-level cache. */
#include <stdlib.h>
#include <string.h>

#include "emit_impl.h"

/* What group's samples the function of one computes: where pairs of planes go in turn with single ones, those of both. */
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

/* Name things as the function of a group does, what it is given first: others' order among the rest may differ; what it needs is marked as wanted. */
static void name_for_group(trli_emitter *e, int32_t group)
{
    const int *fields;
    const int ninputs = trli_kernel_inputs(e->kernel, &fields);
    int32_t samples = 0, inputs = 0, rows = 0, ghosts = 0;
    mark_needed(e, group);
    for (int given = 1; given >= 0; --given)
        for (int32_t o = 0; o < e->count; ++o) {
            const int32_t i = e->order[o];
            if (has_name(e, i) && given == (is_given_value(e, i) || is_given_row(e, i))) e->number[i] = samples++;
        }
    for (int i = 0; i < ninputs; ++i) e->input_name[i] = trli_reads(e, i) ? inputs++ : -1;
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
    const int *fields;
    const int ninputs = trli_kernel_inputs(e->kernel, &fields);
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
    if (e->look) fputs("    long long excess = 0;\n    trl_kernel_lanes sums = {0};\n", e->out);
    put_scalars(e);
    put_inputs(e);
    for (int r = 0; r < outputs_of(e, group); ++r) put_array(e, "double", "out", r);
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

/* Some planes' rows in turn: what a row reads of the planes beside it is then in the first-level cache. */
static void put_rows_in_turn(trli_emitter *e, int32_t group)
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
    return trl_fail(e->ir->ctx, TRL_ERR_MEMORY, NULL, "no memory for the text of a kernel");
}

/* The body of a group's function, the caller's to free; NULL: no memory. */
static char *body_of(trli_emitter *e, int32_t group)
{
    FILE *const out = e->out;
    char *body = NULL;
    size_t bytes;
    e->out = open_memstream(&body, &bytes);
    if (e->out) {
        name_for_group(e, group);
        put_arguments(e, group);
        if (e->by_planes)
            put_rows(e, group);
        else
            put_rows_in_turn(e, group);
        if (e->look) fputs("    found->excess |= excess;\n    found->sums += sums;\n", e->out);
        name_for_kernel(e);
        if (fclose(e->out) != 0) {
            free(body);
            body = NULL;
        }
    }
    e->out = out;
    return body;
}

/* Where the function of a group is noted. */
static int32_t place_of(const trli_emitter *e, int32_t group)
{
    return group == TRLI_SHARED ? e->ngroups + 1 : group;
}

/* The function of a group, unless one before has the same body. */
static trl_err put_function(trli_emitter *e, int32_t group)
{
    char *const body = body_of(e, group);
    if (!body) return no_memory(e);
    int32_t f = 0;
    while (f < e->nfunctions && strcmp(e->body[f], body) != 0) ++f;
    e->function[place_of(e, group)] = f;
    if (f < e->nfunctions) {
        free(body);
        return TRL_OK;
    }
    e->body[e->nfunctions++] = body;
    fprintf(e->out,
            "%s void group%d(const trl_kernel_call *call, const trl_kernel_rows *rows, const int *input,\n"
            "    const int *output, const double *value, double *const *row, trl_kernel_found *found)\n{\n%s}\n\n",
            e->ngroups > 1 ? "TRL_KERNEL_GROUP" : "TRL_BODY", f, body);
    return TRL_OK;
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

trl_err trli_put_groups(trli_emitter *e)
{
    trl_err err = TRL_OK;
    e->by_planes = goes_by_planes(e);
    e->function = calloc((size_t)e->ngroups + 2, sizeof *e->function);
    e->body = calloc((size_t)e->ngroups + 2, sizeof *e->body);
    if (!e->function || !e->body) return no_memory(e);
    if (e->by_planes && trli_goes_by_pairs(e)) TRL_TRY(put_function(e, e->ngroups));
    if (e->nshared > 0) TRL_TRY(put_function(e, TRLI_SHARED));
    for (int32_t g = 0; g < e->ngroups; ++g) TRL_TRY(put_function(e, g));
done:
    return err;
}

void trli_free_groups(trli_emitter *e)
{
    for (int32_t f = 0; f < e->nfunctions; ++f) free(e->body[f]);
    free(e->body);
    free(e->function);
    e->body = NULL;
    e->function = NULL;
    e->nfunctions = 0;
}

/* One of a list: `all` are the elements so far. */
static void put_element(trli_emitter *e, const char *type, const char *name, int32_t number, int *all)
{
    if (*all == 0)
        fprintf(e->out, ", (%s[]){%s%d", type, name, number);
    else
        fprintf(e->out, ", %s%d", name, number);
    ++*all;
}

static void put_list_end(trli_emitter *e, int *all)
{
    fputs(*all ? "}" : ", 0", e->out);
    *all = 0;
}

void trli_put_group_call(trli_emitter *e, int32_t group, int depth)
{
    const int *fields;
    const int ninputs = trli_kernel_inputs(e->kernel, &fields);
    int all = 0;
    trli_put_indent(e, depth);
    fprintf(e->out, "group%d(call, &rows", e->function[place_of(e, group)]);
    mark_needed(e, group);
    for (int i = 0; i < ninputs; ++i)
        if (trli_reads(e, i)) put_element(e, "const int", "", i, &all);
    put_list_end(e, &all);
    for (int r = 0; r < outputs_of(e, group); ++r) put_element(e, "const int", "", e->group[group].first + r, &all);
    put_list_end(e, &all);
    for (int32_t o = 0; o < e->count; ++o)
        if (is_given_value(e, e->order[o])) put_element(e, "const double", "v", o, &all);
    put_list_end(e, &all);
    for (int32_t o = 0; o < e->count; ++o)
        if (is_given_row(e, e->order[o]))
            put_element(e, "double *const", trli_is_outer(e, e->order[o]) ? "b" : "shared", o, &all);
    put_list_end(e, &all);
    fputs(", &found);\n", e->out);
}
