/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* From the IR to C: one sweep over the box. A node is computed once for every offset at which it is needed (an instance), in the
 * innermost loop whose index it depends on; instances along a row that cost much are kept in a row buffer outside of the loops that
 * they do not depend on. Every operation is the interpreter's, in the same order, so the bits are the same. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <trl_limiter_body.h>

#include "emit_impl.h"

/* The loop that computes an instance: by the axes on which it varies. */
typedef enum place {
    IN_CALL,      /* none */
    IN_ROW_X,     /* x */
    IN_PLANE,     /* z */
    IN_PLANE_ROW, /* x and z */
    IN_ROW,       /* y, or y and z */
    IN_POINT      /* x and y, or all */
} place;

/* A node of the walk at an offset from the point that the kernel computes. */
typedef struct instance {
    int32_t node; /* place in the walk */
    int8_t offset[3];
    int32_t next; /* another one of the same node; -1: none */
    int32_t arg[3];
    place place;
    int cost;
    bool buffered;
    int32_t pointer; /* FIELD: which row pointer */
} instance;

/* A row of a field, `x` aside. */
typedef struct row_pointer {
    int32_t input;
    int8_t y, z;
} row_pointer;

enum {
    INSTANCES_MOST = 4000,
    BUFFERS_MOST = 32,
    BUFFER_COST = 8, /* worth a load and a store */
    COST_MOST = 1000
};

typedef struct emitter {
    const trli_ir *ir;
    const trli_walk *walk;
    const trli_kernel *kernel;
    int nroots;
    const trli_value *roots;
    bool look;
    FILE *out;
    int32_t *first;     /* by place in the walk: its instances, as a list */
    instance *instance; /* in the order found; users before operands */
    int32_t count, capacity;
    int32_t *order, *number; /* instances, operands first; the place of each therein: its name */
    bool *wanted;
    row_pointer *pointer;
    int32_t npointers, nbuffers;
} emitter;

static const trli_node *node_of(const emitter *e, int32_t i)
{
    return trli_ir_node(e->ir, e->walk->list[e->instance[i].node]);
}

/* ---- instances ---- */

static trl_err add_instance(emitter *e, trli_value v, const int8_t offset[3], int32_t *found)
{
    const trli_node *n = trli_ir_node(e->ir, v);
    instance in = {.node = e->walk->place[v], .arg = {-1, -1, -1}, .pointer = -1};
    for (int a = 0; a < 3; ++a) in.offset[a] = n->varies >> a & 1 ? offset[a] : 0;
    for (int32_t i = e->first[in.node]; i >= 0; i = e->instance[i].next) {
        *found = i;
        if (memcmp(e->instance[i].offset, in.offset, sizeof in.offset) == 0) return TRL_OK;
    }
    if (e->count == e->capacity) {
        int32_t more = e->capacity ? 2 * e->capacity : 256;
        instance *longer = realloc(e->instance, (size_t)more * sizeof *longer);
        if (!longer) return trl_fail(e->ir->ctx, TRL_ERR_MEMORY, NULL, "no memory to emit %d values", more);
        e->instance = longer;
        e->capacity = more;
    }
    in.next = e->first[in.node];
    e->first[in.node] = *found = e->count;
    e->instance[e->count++] = in;
    return TRL_OK;
}

/* The value behind shifts, and its offset. */
static trli_value see_through(const emitter *e, trli_value v, int8_t offset[3])
{
    for (const trli_node *n = trli_ir_node(e->ir, v); n->op == TRLI_OP_SHIFT; n = trli_ir_node(e->ir, v)) {
        for (int a = 0; a < 3; ++a) offset[a] = (int8_t)(offset[a] + n->shift[a]);
        v = n->arg[0];
    }
    return v;
}

/* Users come after their operands in the walk, so descending it meets every user of a node before the node. */
static trl_err find_instances(emitter *e, int32_t *root)
{
    trl_err err = TRL_OK;
    for (int32_t i = 0; i < e->walk->count; ++i) e->first[i] = -1;
    for (int r = 0; r < e->nroots; ++r) {
        int8_t offset[3] = {0, 0, 0};
        trli_value v = see_through(e, e->roots[r], offset);
        TRL_TRY(add_instance(e, v, offset, &root[r]));
    }
    for (int32_t at = e->walk->count - 1; at >= 0 && e->count <= INSTANCES_MOST; --at) {
        const trli_node *n = trli_ir_node(e->ir, e->walk->list[at]);
        for (int32_t i = e->first[at]; i >= 0; i = e->instance[i].next)
            for (int o = 0; o < trli_op_operands(n->op); ++o) {
                int8_t offset[3];
                int32_t arg;
                memcpy(offset, e->instance[i].offset, sizeof offset);
                trli_value v = see_through(e, n->arg[o], offset);
                TRL_TRY(add_instance(e, v, offset, &arg));
                e->instance[i].arg[o] = arg;
            }
    }
done:
    return err;
}

static void put_in_order(emitter *e)
{
    int32_t n = 0;
    for (int32_t at = 0; at < e->walk->count; ++at)
        for (int32_t i = e->first[at]; i >= 0; i = e->instance[i].next) {
            e->order[n] = i;
            e->number[i] = n++;
        }
}

/* ---- where and how ---- */

static place place_of(const emitter *e, const trli_node *n)
{
    unsigned all = (1u << e->ir->grid->dim) - 1, varies = n->varies;
    if (varies == all || (varies & 3) == 3) return IN_POINT;
    if (varies & 2) return IN_ROW;
    return varies == 5 ? IN_PLANE_ROW : varies == 4 ? IN_PLANE : varies == 1 ? IN_ROW_X : IN_CALL;
}

static int own_cost(const emitter *e, const trli_node *n)
{
    switch (n->op) {
    case TRLI_OP_CONSTANT:
    case TRLI_OP_SCALAR:
    case TRLI_OP_FIELD:
        return 0;
    case TRLI_OP_COORDINATE:
        return e->ir->grid->periodic[n->index] ? 20 : 3;
    case TRLI_OP_DIV:
    case TRLI_OP_SQRT:
        return 8;
    case TRLI_OP_POW:
    case TRLI_OP_FUNCTION1:
    case TRLI_OP_FUNCTION2:
    case TRLI_OP_RANDOM:
    case TRLI_OP_LIMIT:
        return 20;
    default:
        return 1;
    }
}

static bool is_row(place p)
{
    return p == IN_ROW_X || p == IN_PLANE_ROW;
}

/* A row that a loop inside of its own reads is worth a buffer if computing it is not cheap. */
static void buffer_operand(emitter *e, const instance *user, int32_t arg)
{
    instance *in = &e->instance[arg];
    if (!is_row(in->place) || in->place == user->place || in->cost < BUFFER_COST) return;
    if (in->buffered || e->nbuffers == BUFFERS_MOST) return;
    in->buffered = true;
    ++e->nbuffers;
}

static void find_places(emitter *e, const int32_t *root)
{
    static const instance storing = {.place = IN_POINT};
    for (int32_t o = 0; o < e->count; ++o) {
        instance *in = &e->instance[e->order[o]];
        const trli_node *n = node_of(e, e->order[o]);
        in->place = place_of(e, n);
        in->cost = own_cost(e, n);
        for (int a = 0; a < 3 && in->arg[a] >= 0; ++a) in->cost += e->instance[in->arg[a]].cost;
        if (in->cost > COST_MOST) in->cost = COST_MOST;
    }
    for (int32_t o = 0; o < e->count; ++o) {
        const instance *in = &e->instance[e->order[o]];
        for (int a = 0; a < 3 && in->arg[a] >= 0; ++a) buffer_operand(e, in, in->arg[a]);
    }
    for (int r = 0; r < e->nroots; ++r) buffer_operand(e, &storing, root[r]);
}

static int32_t input_of(const emitter *e, int field)
{
    const int *fields;
    int n = trli_kernel_inputs(e->kernel, &fields);
    for (int i = 0; i < n; ++i)
        if (fields[i] == field) return i;
    return -1;
}

static void find_pointers(emitter *e)
{
    for (int32_t o = 0; o < e->count; ++o) {
        instance *in = &e->instance[e->order[o]];
        const trli_node *n = node_of(e, e->order[o]);
        if (n->op != TRLI_OP_FIELD) continue;
        row_pointer p = {input_of(e, n->index), in->offset[1], in->offset[2]};
        int32_t i = 0;
        while (i < e->npointers && (e->pointer[i].input != p.input || e->pointer[i].y != p.y || e->pointer[i].z != p.z))
            ++i;
        if (i == e->npointers) e->pointer[e->npointers++] = p;
        in->pointer = i;
    }
}

/* ---- text ---- */

static void put_number(emitter *e, double number)
{
    uint64_t bits;
    memcpy(&bits, &number, sizeof bits);
    if (number - number == 0)
        fprintf(e->out, number < 0 || bits >> 63 ? "(%a)" : "%a", number);
    else
        fprintf(e->out, "trl_kernel_number(0x%llxull)", (unsigned long long)bits);
}

/* How an instance is read inside of a loop. */
static void put_use(emitter *e, place loop, int32_t i)
{
    const instance *in = &e->instance[i];
    const trli_node *n = node_of(e, i);
    if (n->op == TRLI_OP_CONSTANT)
        put_number(e, n->number);
    else if (n->op == TRLI_OP_SCALAR)
        fprintf(e->out, "s%d", n->index);
    else if (n->op == TRLI_OP_FIELD && in->offset[0] != 0)
        fprintf(e->out, "p%d[i %c %d]", in->pointer, in->offset[0] < 0 ? '-' : '+', abs(in->offset[0]));
    else if (n->op == TRLI_OP_FIELD)
        fprintf(e->out, "p%d[i]", in->pointer);
    else if (in->buffered && in->place != loop)
        fprintf(e->out, "b%d[i]", e->number[i]);
    else
        fprintf(e->out, "v%d", e->number[i]);
}

/* The global index of the point along an axis. */
static void put_index(emitter *e, const instance *in, int axis)
{
    static const char *const local[3] = {"x + i", "j", "k"};
    fprintf(e->out, "grid->first[%d] + %s + (%d)", axis, local[axis], in->offset[axis]);
}

static void put_point(emitter *e, int32_t i)
{
    const instance *in = &e->instance[i];
    const trli_node *n = node_of(e, i);
    uint64_t seed;
    switch (n->op) {
    case TRLI_OP_COORDINATE:
        fprintf(e->out, "trl_kernel_coordinate(grid, %d, %s, ", n->index, n->bit ? "0.0" : "0.5");
        put_index(e, in, n->index);
        fputs(")", e->out);
        break;
    case TRLI_OP_AT_SIDE:
        fputs("(", e->out);
        put_index(e, in, n->index / 2);
        fprintf(e->out, n->index % 2 ? " == grid->cells[%d] ? 1.0 : 0.0)" : " == 0 ? 1.0 : 0.0)", n->index / 2);
        break;
    default:
        memcpy(&seed, &n->number, sizeof seed);
        fprintf(e->out, "trl_kernel_random(0x%llxull", (unsigned long long)seed);
        for (int a = 0; a < 3; ++a) {
            fprintf(e->out, ", trl_kernel_wrap(grid, %d, ", a);
            put_index(e, in, a);
            fputs(")", e->out);
        }
        fputs(")", e->out);
    }
}

/* Operations as text: $0, $1, $2 are the operands. */
static const char *const forms[TRLI_OP_COUNT] = {
    [TRLI_OP_NEG] = "-$0",
    [TRLI_OP_NOT] = "$0 == 0 ? 1.0 : 0.0",
    [TRLI_OP_ABS] = "trl_fn_abs($0)",
    [TRLI_OP_SQRT] = "trl_fn_sqrt($0)",
    [TRLI_OP_ADD] = "$0 + $1",
    [TRLI_OP_SUB] = "$0 - $1",
    [TRLI_OP_MUL] = "$0 * $1",
    [TRLI_OP_DIV] = "$0 / $1",
    [TRLI_OP_MIN] = "trl_fn_min($0, $1)",
    [TRLI_OP_MAX] = "trl_fn_max($0, $1)",
    [TRLI_OP_LT] = "$0 < $1 ? 1.0 : 0.0",
    [TRLI_OP_LE] = "$0 <= $1 ? 1.0 : 0.0",
    [TRLI_OP_EQ] = "$0 == $1 ? 1.0 : 0.0",
    [TRLI_OP_NE] = "$0 != $1 ? 1.0 : 0.0",
    [TRLI_OP_AND] = "$0 != 0 && $1 != 0 ? 1.0 : 0.0",
    [TRLI_OP_OR] = "$0 != 0 || $1 != 0 ? 1.0 : 0.0",
    [TRLI_OP_POW] = "trl_fn_pow($0, $1)",
    [TRLI_OP_SELECT] = "$0 != 0 ? $1 : $2",
};

static const char *limiter_name(int limiter)
{
#define TRL_LIMITER_NAME(NAME, name, psi) [TRL_LIMITER_##NAME] = #name,
    static const char *const names[TRL_LIMITER_COUNT] = {TRL_LIMITER_LIST(TRL_LIMITER_NAME)};
#undef TRL_LIMITER_NAME
    return names[limiter];
}

static void put_operation(emitter *e, place loop, int32_t i)
{
    const instance *in = &e->instance[i];
    const trli_node *n = node_of(e, i);
    const char *form = forms[n->op];
    char call[80];
    if (trli_op_operands(n->op) == 0) {
        put_point(e, i);
        return;
    }
    if (n->op == TRLI_OP_LIMIT) {
        snprintf(call, sizeof call, "trl_limiter_face_%s($0, $1, $2)", limiter_name(n->index));
        form = call;
    }
    if (n->op == TRLI_OP_FUNCTION1 || n->op == TRLI_OP_FUNCTION2) {
        int count;
        const char *name = trl_functions(&count)[n->index].name;
        snprintf(call, sizeof call, n->op == TRLI_OP_FUNCTION1 ? "trl_fn_%s($0)" : "trl_fn_%s($0, $1)", name);
        form = call;
    }
    for (; *form; ++form) {
        if (*form == '$')
            put_use(e, loop, in->arg[*++form - '0']);
        else
            fputc(*form, e->out);
    }
}

static bool is_leaf(const trli_node *n)
{
    return n->op == TRLI_OP_CONSTANT || n->op == TRLI_OP_SCALAR || n->op == TRLI_OP_FIELD;
}

static bool has_row_of(const emitter *e, place loop)
{
    for (int32_t i = 0; i < e->count; ++i)
        if (e->instance[i].buffered && e->instance[i].place == loop) return true;
    return false;
}

/* Mark what a loop over x has to compute: everything its results need that no outer loop provides. */
static void mark_wanted(emitter *e, place loop, int nroots, const int32_t *root)
{
    memset(e->wanted, 0, (size_t)e->count * sizeof *e->wanted);
    for (int32_t i = 0; i < e->count; ++i)
        e->wanted[i] = loop != IN_POINT && e->instance[i].buffered && e->instance[i].place == loop;
    for (int r = 0; r < nroots; ++r) e->wanted[root[r]] = true;
    for (int32_t o = e->count - 1; o >= 0; --o) {
        int32_t i = e->order[o];
        const instance *in = &e->instance[i];
        bool given = !is_row(in->place) && in->place != IN_POINT;
        given |= in->buffered && in->place != loop;
        given |= is_leaf(node_of(e, i));
        if (given) e->wanted[i] = false;
        for (int a = 0; e->wanted[i] && a < 3 && in->arg[a] >= 0; ++a) e->wanted[in->arg[a]] = true;
    }
}

static void put_indent(emitter *e, int depth)
{
    fprintf(e->out, "%*s", 4 * depth, "");
}

static void put_wanted(emitter *e, place loop, int depth)
{
    for (int32_t o = 0; o < e->count; ++o) {
        int32_t i = e->order[o];
        if (!e->wanted[i]) continue;
        put_indent(e, depth);
        fprintf(e->out, "const double v%d = ", o);
        put_operation(e, loop, i);
        fputs(";\n", e->out);
    }
}

/* The values of a loop over y or z, or of the call. */
static void put_values(emitter *e, place loop, int depth)
{
    for (int32_t i = 0; i < e->count; ++i) e->wanted[i] = e->instance[i].place == loop && !is_leaf(node_of(e, i));
    put_wanted(e, loop, depth);
}

static void put_row_buffers(emitter *e, place loop, int depth)
{
    if (!has_row_of(e, loop)) return;
    for (int32_t o = 0; o < e->count; ++o) {
        const instance *in = &e->instance[e->order[o]];
        if (!in->buffered || in->place != loop) continue;
        put_indent(e, depth);
        fprintf(e->out, "double b%d[TRL_KERNEL_ROW];\n", o);
    }
    mark_wanted(e, loop, 0, NULL);
    put_indent(e, depth);
    fputs("TRL_KERNEL_INDEPENDENT\n", e->out);
    put_indent(e, depth);
    fputs("for (long long i = 0; i < n; ++i) {\n", e->out);
    put_wanted(e, loop, depth + 1);
    for (int32_t o = 0; o < e->count; ++o) {
        const instance *in = &e->instance[e->order[o]];
        if (!in->buffered || in->place != loop) continue;
        put_indent(e, depth + 1);
        fprintf(e->out, "b%d[i] = v%d;\n", o, o);
    }
    put_indent(e, depth);
    fputs("}\n", e->out);
}

static void put_pointers(emitter *e, int depth)
{
    for (int32_t p = 0; p < e->npointers; ++p) {
        const row_pointer *r = &e->pointer[p];
        put_indent(e, depth);
        fprintf(e->out, "const double *const p%d = in%d + x + (j + (%d)) * in%d_y + (k + (%d)) * in%d_z;\n", p,
                r->input, r->y, r->input, r->z, r->input);
    }
    for (int r = 0; r < e->nroots; ++r) {
        put_indent(e, depth);
        fprintf(e->out, "double *const q%d = call->stream ? row%d : out%d + x + j * out%d_y + k * out%d_z;\n", r, r, r,
                r, r);
    }
}

/* Of each input the plane ahead, some rows ahead of this one. */
static void put_fetches(emitter *e, int depth)
{
    const int *fields;
    int n = trli_kernel_inputs(e->kernel, &fields);
    put_indent(e, depth);
    fputs("if (call->ahead) {\n", e->out);
    for (int i = 0; i < n; ++i) {
        trl_footprint f = trli_kernel_footprint(e->kernel, i);
        trl_offsets hull = trl_footprint_hull(&f);
        put_indent(e, depth + 1);
        fprintf(e->out, "trl_kernel_fetch(in%d + x + (j + (%d) + call->ahead) * in%d_y + (k + (%d)) * in%d_z, n);\n", i,
                hull.hi[1], i, hull.hi[2], i);
    }
    put_indent(e, depth);
    fputs("}\n", e->out);
}

static void put_point_loop(emitter *e, const int32_t *root, int depth)
{
    put_indent(e, depth);
    fputs("TRL_KERNEL_INDEPENDENT\n", e->out);
    put_indent(e, depth);
    fputs("for (long long i = 0; i < n; ++i) {\n", e->out);
    mark_wanted(e, IN_POINT, e->nroots, root);
    put_wanted(e, IN_POINT, depth + 1);
    for (int r = 0; r < e->nroots; ++r) {
        put_indent(e, depth + 1);
        fprintf(e->out, "q%d[i] = ", r);
        put_use(e, IN_POINT, root[r]);
        fputs(";\n", e->out);
        if (!e->look) continue;
        put_indent(e, depth + 1);
        fprintf(e->out, "bad |= __builtin_fabs(q%d[i]) <= 0x1.fffffffffffffp+1023 ? 0 : 1;\n", r);
    }
    put_indent(e, depth);
    fputs("}\n", e->out);
    for (int r = 0; r < e->nroots; ++r) {
        put_indent(e, depth);
        fprintf(e->out, "if (call->stream) trl_kernel_stream(out%d + x + j * out%d_y + k * out%d_z, row%d, n);\n", r, r,
                r, r);
    }
}

static void put_arrays(emitter *e)
{
    const int *fields, *scalars;
    int ninputs = trli_kernel_inputs(e->kernel, &fields), nscalars = trli_kernel_scalars(e->kernel, &scalars);
    fputs("    const trl_kernel_grid *const grid = call->grid;\n    long long bad = 0;\n    (void)grid;\n", e->out);
    for (int i = 0; i < nscalars; ++i)
        fprintf(e->out, "    const double s%d = call->scalar[%d];\n", scalars[i], scalars[i]);
    for (int i = 0; i < ninputs; ++i)
        fprintf(e->out,
                "    const double *const in%d = call->input[%d].at;\n"
                "    const long long in%d_y = call->input[%d].stride[1], in%d_z = call->input[%d].stride[2];\n",
                i, i, i, i, i, i);
    for (int r = 0; r < e->nroots; ++r)
        fprintf(e->out,
                "    double *const out%d = call->output[%d].at;\n"
                "    const long long out%d_y = call->output[%d].stride[1], out%d_z = call->output[%d].stride[2];\n"
                "    double row%d[TRL_KERNEL_ROW];\n",
                r, r, r, r, r, r, r);
}

static void put_kernel(emitter *e, const int32_t *root)
{
    fputs("void trl_kernel(trl_kernel_call *call)\n{\n", e->out);
    put_arrays(e);
    put_values(e, IN_CALL, 1);
    fputs("    for (long long x = call->lo[0]; x < call->hi[0]; x += TRL_KERNEL_ROW) {\n"
          "        const long long n = call->hi[0] - x < TRL_KERNEL_ROW ? call->hi[0] - x : TRL_KERNEL_ROW;\n",
          e->out);
    put_row_buffers(e, IN_ROW_X, 2);
    fputs("        for (long long y = call->lo[1]; y < call->hi[1]; y += call->block) {\n"
          "            const long long end = call->hi[1] - y < call->block ? call->hi[1] : y + call->block;\n"
          "            for (long long k = call->lo[2]; k < call->hi[2]; ++k) {\n",
          e->out);
    put_values(e, IN_PLANE, 4);
    put_row_buffers(e, IN_PLANE_ROW, 4);
    fputs("                for (long long j = y; j < end; ++j) {\n", e->out);
    put_values(e, IN_ROW, 5);
    put_pointers(e, 5);
    put_fetches(e, 5);
    put_point_loop(e, root, 5);
    fputs("                }\n            }\n        }\n    }\n"
          "    if (call->stream) trl_kernel_fence();\n"
          "    if (bad) call->nonfinite = 1;\n}\n",
          e->out);
}

trl_err trli_emit_kernel(const trli_ir *ir, trli_walk *walk, const trli_kernel *kernel, int nroots,
                         const trli_value *roots, bool look, char **text, const char **why)
{
    emitter e = {.ir = ir, .walk = walk, .kernel = kernel, .nroots = nroots, .roots = roots, .look = look};
    int32_t *root = NULL;
    size_t bytes = 0;
    trl_err err = TRL_OK;
    *text = NULL;
    *why = NULL;
    TRL_TRY(trli_ir_walk(ir, walk, nroots, roots));
    root = malloc((size_t)nroots * sizeof *root);
    e.first = malloc((size_t)walk->count * sizeof *e.first);
    if (root && e.first) TRL_TRY(find_instances(&e, root));
    if (e.count > INSTANCES_MOST) *why = "it has too many operations";
    if (*why) goto done;
    e.order = malloc((size_t)e.count * sizeof *e.order);
    e.number = malloc((size_t)e.count * sizeof *e.number);
    e.wanted = malloc((size_t)e.count * sizeof *e.wanted);
    e.pointer = malloc((size_t)e.count * sizeof *e.pointer);
    e.out = open_memstream(text, &bytes);
    if (!root || !e.first || !e.order || !e.number || !e.wanted || !e.pointer || !e.out) {
        err = trl_fail(ir->ctx, TRL_ERR_MEMORY, NULL, "no memory to emit a kernel of %d values", e.count);
        goto done;
    }
    put_in_order(&e);
    find_places(&e, root);
    find_pointers(&e);
    put_kernel(&e, root);
done:
    if (e.out && (fclose(e.out) != 0 || err != TRL_OK)) {
        free(*text);
        *text = NULL;
        if (err == TRL_OK) err = trl_fail(ir->ctx, TRL_ERR_MEMORY, NULL, "no memory for the text of a kernel");
    }
    free(root);
    free(e.first);
    free(e.instance);
    free(e.order);
    free(e.number);
    free(e.wanted);
    free(e.pointer);
    return err;
}
