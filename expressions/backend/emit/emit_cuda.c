/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The text of a kernel for GPUs. Threads lie along x, then y; each goes up z through the planes that are its own. What
 * does not change with z is computed before. A value that is needed at several points is computed at each: neighbours'
 * are in the caches, and nothing is shared between threads. Places in arrays are bytes from the lowest address: numbers
 * of 32 bits where they suffice, as a load adds one to an address that all threads have in common, without registers
 * and instructions for addresses of 64 bits. */
#include <stdlib.h>
#include <string.h>

#include "emit_cuda_impl.h"
#include "memory_impl.h"

int trli_cuda_shape_of(const trli_emitter *e, int array)
{
    return e->shape ? e->shape[array] : array;
}

int trli_cuda_array_of(const trli_emitter *e, const trli_sample *in)
{
    return e->pointer[in->pointer].input;
}

const char *trli_cuda_place(const trli_emitter *e)
{
    return e->wide ? "unsigned long long" : "unsigned";
}

static void put_stride(trli_emitter *e, int axis, int shape)
{
    if (axis > 0)
        fprintf(e->out, " * %c%d", "xyz"[axis], shape);
    else
        fputs(" * 8", e->out);
}

/* Of a kernel of several steps: which result of the level before a field is; -1: it lies in memory. */
static int stepped_as(const trli_emitter *e, const trli_sample *in)
{
    return e->steps ? e->level->number[trli_cuda_array_of(e, in)] : -1;
}

const char *trli_cuda_point(const trli_emitter *e)
{
    return e->narrow ? "int" : "long long";
}

/* Where ghosts begin along an axis. */
static const char *call_of(const trli_emitter *e)
{
    return e->narrow ? "" : "call.";
}

/* Of what a thread keeps of the planes that it goes through: the plane of a sample in the column is that below, its own
 * or that above (-1, 0, 1); false: it keeps none. */
static bool is_kept(const trli_emitter *e, const trli_sample *in)
{
    return e->kept && e->kept[trli_cuda_array_of(e, in)] && in->offset[0] == 0 && in->offset[1] == 0 &&
           abs(in->offset[2]) <= 1;
}

/* From a tile. */
static void put_in_star(const trli_emitter *e, const trli_sample *in)
{
    fprintf(e->out, "in[%d].", stepped_as(e, in));
    if (in->offset[2] == 0)
        fprintf(e->out, "template plane<%d, %d>()", in->offset[0], in->offset[1]);
    else
        fputs(in->offset[2] < 0 ? "below" : "above", e->out);
}

bool trli_cuda_goes_round(const trli_emitter *e, int32_t i, int a)
{
    int layers = 0;
    for (int32_t c = 0; c < e->nchoices && !e->raw; ++c) {
        if (e->choice[c].sample != i) continue;
        if (e->choice[c].ghost >= 0) return false;
        layers += e->choice[c].axis == a;
    }
    return layers > 0 && layers == abs(e->sample[i].offset[a]);
}

/* The first sample that goes as far round an axis as this one does: it names the distance. */
static int32_t first_round(const trli_emitter *e, int32_t i, int a)
{
    const trli_sample *in = &e->sample[i];
    for (int32_t k = 0; k < i; ++k) {
        const trli_sample *other = &e->sample[k];
        if (trli_sample_node(e, k)->op != TRLI_OP_FIELD || other->offset[a] != in->offset[a]) continue;
        if (stepped_as(e, other) >= 0) continue;
        if (a > 0 &&
            trli_cuda_shape_of(e, trli_cuda_array_of(e, other)) != trli_cuda_shape_of(e, trli_cuda_array_of(e, in)))
            continue;
        if (trli_cuda_goes_round(e, k, a)) return k;
    }
    return i;
}

/* A point of a field, from that of the thread. */
static void put_place(trli_emitter *e, int32_t i)
{
    const trli_sample *in = &e->sample[i];
    if (stepped_as(e, in) >= 0) {
        put_in_star(e, in);
        return;
    }
    if (is_kept(e, in) && (in->offset[2] == 0 || !e->raw)) {
        fprintf(e->out, "%s%d", in->offset[2] < 0 ? "below" : "here", trli_cuda_array_of(e, in));
        return;
    }
    const int shape = trli_cuda_shape_of(e, trli_cuda_array_of(e, in));
    fprintf(e->out, "trl_kernel_load(in%d, at%d", trli_cuda_array_of(e, in), shape);
    for (int a = 2; a >= 0; --a) {
        const int by = abs(in->offset[a]);
        if (by == 0) continue;
        if (trli_cuda_goes_round(e, i, a)) {
            fprintf(e->out, " + n%c%d", "xyz"[a], first_round(e, i, a));
            continue;
        }
        fputs(in->offset[a] < 0 ? " - " : " + ", e->out);
        if (a == 0)
            fprintf(e->out, "%d", 8 * by);
        else if (by > 1)
            fprintf(e->out, "%d * ", by);
        if (a > 0) fprintf(e->out, "%c%d", "xyz"[a], shape);
    }
    fputs(")", e->out);
}

void trli_cuda_put_round(trli_emitter *e, int32_t i, int a)
{
    const int by = e->sample[i].offset[a];
    const char *const call = call_of(e);
    fprintf(e->out, "(%s)(%c %c %d %s %s%s[%d] ? %d : %d %c (%sto[%d] - %sfrom[%d]))", trli_cuda_place(e), "ijk"[a],
            by < 0 ? '-' : '+', abs(by), by < 0 ? ">=" : "<", call, by < 0 ? "from" : "to", a, by, by,
            by < 0 ? '+' : '-', call, a, call, a);
    put_stride(e, a, trli_cuda_shape_of(e, trli_cuda_array_of(e, &e->sample[i])));
}

void trli_cuda_put_rounds(trli_emitter *e, bool along_z, int depth)
{
    for (int32_t i = 0; i < e->count; ++i) {
        if (trli_sample_node(e, i)->op != TRLI_OP_FIELD || stepped_as(e, &e->sample[i]) >= 0) continue;
        for (int a = along_z ? 2 : 0; a < (along_z ? 3 : 2); ++a) {
            if (!trli_cuda_goes_round(e, i, a) || first_round(e, i, a) != i) continue;
            trli_put_indent(e, depth);
            fprintf(e->out, "const %s n%c%d = ", trli_cuda_place(e), "xyz"[a], i);
            trli_cuda_put_round(e, i, a);
            fputs(";\n", e->out);
        }
    }
}

/* The same, of a value that a ghost may need: where it does; elsewhere there may be no such point. */
static void put_guarded(trli_emitter *e, int32_t i)
{
    bool any = false;
    for (int32_t g = 0; g < e->nguards; ++g) {
        const trli_choice *choice = &e->choice[e->guard[g].choice];
        if (e->guard[g].sample != i) continue;
        fputs(any ? " || " : "(", e->out);
        trli_cuda_put_condition(e, &e->sample[choice->sample], choice);
        any = true;
    }
    if (any) fputs(" ? ", e->out);
    put_place(e, i);
    if (any) fputs(" : 0)", e->out);
}

/* A field at the other side. */
static void put_image(trli_emitter *e, const trli_sample *in, const trli_choice *choice)
{
    const int a = choice->axis, shape = trli_cuda_shape_of(e, trli_cuda_array_of(e, in)), by = in->offset[a];
    fprintf(e->out, "trl_kernel_load(in%d, at%d + (%s)(%d %c (%sto[%d] - %sfrom[%d]))", trli_cuda_array_of(e, in),
            shape, trli_cuda_place(e), by, choice->side ? '-' : '+', call_of(e), a, call_of(e), a);
    put_stride(e, a, shape);
    fputs(")", e->out);
}

void trli_cuda_put_condition(trli_emitter *e, const trli_sample *in, const trli_choice *choice)
{
    const int a = choice->axis;
    fprintf(e->out, "%c %c %d == %s%s[%d] %c %d", "ijk"[a], in -> offset[a] < 0 ? '-' : '+', abs(in->offset[a]),
            call_of(e), choice->side ? "to" : "from", a, choice->side ? '+' : '-',
            choice->side ? choice->layer - 1 : choice->layer);
}

void trli_cuda_put_field(trli_emitter *e, trli_loop_level loop, int32_t i)
{
    const trli_sample *in = &e->sample[i];
    const bool stepped = stepped_as(e, in) >= 0; /* a tile goes on at the other side */
    int open = 0;
    if (is_kept(e, in) && in->offset[2] > 0 && !e->raw) {
        fprintf(e->out, "above%d", trli_cuda_array_of(e, in));
        return;
    }
    for (int32_t c = 0; c < e->nchoices && !e->raw; ++c) {
        const trli_choice *choice = &e->choice[c];
        const bool there = stepped || is_kept(e, in) || trli_cuda_goes_round(e, i, choice->axis);
        if (choice->sample != i || (choice->ghost < 0 && there)) continue;
        fputs("(", e->out);
        trli_cuda_put_condition(e, in, choice);
        fputs(" ? ", e->out);
        e->raw = true;
        if (choice->ghost < 0)
            put_image(e, in, choice);
        else
            trli_cuda_put_use(e, loop, choice->ghost);
        e->raw = false;
        fputs(" : ", e->out);
        ++open;
    }
    if (e->guarded && !stepped)
        put_guarded(e, i);
    else
        put_place(e, i);
    while (open-- > 0) fputc(')', e->out);
}

void trli_cuda_put_use(trli_emitter *e, trli_loop_level loop, int32_t i)
{
    const trli_node *n = trli_sample_node(e, i);
    const int given = n->op == TRLI_OP_CONSTANT ? trli_given_as(e, &n->number) : -1;
    if (given >= 0)
        fprintf(e->out, "scalars.value[%d]", e->reads->nscalars + given);
    else if (n->op == TRLI_OP_CONSTANT)
        trli_put_number(e, n->number);
    else if (n->op == TRLI_OP_SCALAR)
        fprintf(e->out, "s%d", n->index);
    else if (n->op == TRLI_OP_FIELD)
        trli_cuda_put_field(e, loop, i);
    else
        fprintf(e->out, "%c%d", e->raw ? 'g' : 'v', e->number[i]);
}

/* What changes with z, or what does not; where there is no z, all is taken to change. */
static void put_wanted(trli_emitter *e, const trli_cuda_values *done, bool along_z, int depth)
{
    bool *const there = e->raw ? done->ghost : done->other;
    for (int32_t o = 0; o < e->count; ++o) {
        const int32_t i = e->order[o];
        const trli_node *n = trli_sample_node(e, i);
        const bool changes = e->ir->grid->dim < 3 || n->varies >> 2 & 1;
        if (!e->wanted[i] || there[i] || trli_is_leaf(n) || changes != along_z) continue;
        trli_put_indent(e, depth);
        fprintf(e->out, "const double %c%d = ", e->raw ? 'g' : 'v', o);
        trli_put_operation(e, e->sample[i].place, i);
        fputs(";\n", e->out);
        there[i] = true;
    }
}

static void want_results(trli_emitter *e)
{
    for (int32_t i = 0; i < e->count; ++i) e->wanted[i] = false;
    for (int r = 0; r < e->nroots; ++r) e->wanted[e->root[r]] = true;
    trli_emit_mark_operands(e, TRLI_ALL_GROUPS);
}

void trli_cuda_put_ghosts(trli_emitter *e, const trli_cuda_values *done, bool along_z, int depth)
{
    want_results(e);
    memcpy(e->also, e->wanted, (size_t)e->count * sizeof *e->also);
    for (int32_t i = 0; i < e->count; ++i) e->wanted[i] = false;
    for (int32_t c = 0; c < e->nchoices; ++c)
        if (e->choice[c].ghost >= 0 && e->also[e->choice[c].sample]) e->wanted[e->choice[c].ghost] = true;
    trli_emit_mark_operands(e, TRLI_ALL_GROUPS);
    e->raw = e->guarded = true;
    put_wanted(e, done, along_z, depth);
    e->raw = e->guarded = false;
}

void trli_cuda_put_wanted(trli_emitter *e, const trli_cuda_values *done, bool along_z, int depth)
{
    want_results(e);
    put_wanted(e, done, along_z, depth);
}

void trli_cuda_put_values(trli_emitter *e, const trli_cuda_values *done, bool along_z, int depth)
{
    trli_cuda_put_ghosts(e, done, along_z, depth);
    trli_cuda_put_wanted(e, done, along_z, depth);
}

static int nstored_of(const trli_emitter *e)
{
    return e->merge ? e->nstored : e->nroots;
}

void trli_cuda_put_arrays(trli_emitter *e, int depth)
{
    const int ninputs = e->reads->nfields, all = ninputs + nstored_of(e);
    const char *const type = trli_cuda_place(e);
    for (int i = 0; i < all; ++i) {
        if (trli_cuda_shape_of(e, i) == i) {
            trli_put_indent(e, depth);
            fprintf(e->out,
                    "const %s y%d = 8 * (%s)arrays.array[%d].stride[1], z%d = 8 * (%s)arrays.array[%d].stride[2];\n",
                    type, i, type, i, i, type, i);
            trli_put_indent(e, depth);
            fprintf(e->out,
                    "%s at%d = 8 * (%s)(i - call.low[0]) + (%s)(j - call.low[1]) * y%d + (%s)(first - call.low[2]) * "
                    "z%d;\n",
                    type, i, type, type, i, type, i);
        }
        trli_put_indent(e, depth);
        fprintf(e->out, "%schar *__restrict__ const %s%d = trl_kernel_lowest(&arrays.array[%d], call.low);\n",
                i < ninputs ? "const " : "", i < ninputs ? "in" : "out", i < ninputs ? i : i - ninputs, i);
    }
}

void trli_cuda_put_head(trli_emitter *e, const char *bounds)
{
    const int narrays = e->reads->nfields + nstored_of(e), nscalars = e->reads->nscalars;
    fprintf(e->out,
            "extern \"C\" __global__ void __launch_bounds__(TRL_KERNEL_THREADS%s)\n"
            "trl_kernel(const __grid_constant__ trl_kernel_launch call, const __grid_constant__ trl_kernel_arrays<%d> "
            "arrays,\n           const __grid_constant__ trl_kernel_scalars<%d> scalars)\n"
            "{\n"
            "    const trl_kernel_grid *const grid = &call.grid;\n"
            "    (void)grid;\n",
            bounds, narrays > 0 ? narrays : 1, nscalars + e->nnumbers > 0 ? nscalars + e->nnumbers : 1);
    for (int i = 0; i < nscalars; ++i) {
        const int scalar = e->reads->scalar[i], late = trli_emit_late(e->nlate, e->late, scalar);
        fprintf(e->out, "    const double s%d = ", scalar);
        if (late >= 0) fprintf(e->out, "call.late ? call.late[%d] : ", late);
        if (e->found && e->found[scalar])
            fprintf(e->out, "call.found[%d];\n", scalar);
        else
            fprintf(e->out, "scalars.value[%d];\n", i);
    }
}

/* ---- several steps ---- */

/* Whether all that is read of what is stepped is in a tile, or in a thread's column. */
static bool fits_tile(const trli_emitter *e)
{
    for (int32_t i = 0; i < e->count; ++i) {
        const int8_t *by = e->sample[i].offset;
        if (trli_sample_node(e, i)->op != TRLI_OP_FIELD || stepped_as(e, &e->sample[i]) < 0) continue;
        if (abs(by[0]) > 1 || abs(by[1]) > 1 || abs(by[2]) > 1 || (by[2] != 0 && (by[0] != 0 || by[1] != 0)))
            return false;
    }
    return true;
}

/* Axes along which fields go on at the other side, a bit each. */
static unsigned find_wraps(const trli_emitter *e)
{
    unsigned wraps = 0;
    for (int l = 0; l < e->nlayers; ++l)
        if (e->layer[l].image) wraps |= 1u << e->layer[l].axis;
    return wraps;
}

/* Fields that lie in memory, and where the point is in them. */
static void put_lasting(trli_emitter *e)
{
    const char *const type = trli_cuda_place(e);
    const int below = e->level->narrays;
    for (int i = 0; i < e->reads->nfields; ++i) {
        const int s = trli_cuda_shape_of(e, i), array = e->level->array[i];
        bool placed = false;
        if (e->level->number[i] >= 0) continue;
        for (int k = 0; k < i; ++k) placed |= e->level->number[k] < 0 && trli_cuda_shape_of(e, k) == s;
        if (e->level->cut)
            fprintf(e->out,
                    "    const int of%d = k < call.lo[2] ? %d : k < call.hi[2] ? %d : %d;\n"
                    "    const char *const in%d = trl_kernel_lowest(&arrays.array[of%d], call.low);\n",
                    i, below + array, array, below + e->level->nreads + array, i, i);
        else
            fprintf(e->out, "    const char *const in%d = trl_kernel_lowest(&arrays.array[%d], call.low);\n", i, array);
        if (placed) continue;
        fprintf(e->out,
                "    const %s y%d = 8 * (%s)arrays.array[%d].stride[1], z%d = 8 * (%s)arrays.array[%d].stride[2];\n"
                "    const %s at%d = ",
                type, s, type, array, s, type, array, type, s);
        if (e->level->alike[i])
            fprintf(e->out, "8 * (%s)row - (8 * (%s)call.low[0] + (%s)call.low[1] * y%d)", type, type, type, s);
        else
            fprintf(e->out, "8 * (%s)(i - call.low[0]) + (%s)(j - call.low[1]) * y%d", type, type, s);
        fprintf(e->out, " + (%s)(k - call.low[2]) * z%d;\n", type, s);
    }
}

/* A point of the next level. */
static void put_next(trli_emitter *e, const trli_cuda_values *done)
{
    fprintf(
        e->out,
        "template <class list, class star, int n>\n"
        "TRL_BODY void trl_next_%d(const trl_kernel_launch &call, const list &arrays, const double *all, int level, "
        "unsigned row,\n                         int i, int j, int k, const star (&in)[n], double (&result)[n])\n"
        "{\n"
        "    const trl_kernel_grid *const grid = &call.grid;\n"
        "    (void)grid, (void)row, (void)i, (void)j, (void)k, (void)level;\n",
        e->level->stage);
    for (int i = 0; i < e->reads->nscalars; ++i)
        fprintf(e->out, "    const double s%d = all[level * %d + %d];\n", e->reads->scalar[i], e->level->each, i);
    put_lasting(e);
    trli_cuda_put_rounds(e, false, 1);
    trli_cuda_put_values(e, done, false, 1);
    trli_cuda_put_rounds(e, true, 1);
    trli_cuda_put_values(e, done, true, 1);
    for (int r = 0; r < e->nroots; ++r) {
        fprintf(e->out, "    result[%d] = ", r);
        trli_cuda_put_use(e, TRLI_IN_RESULT, e->root[r]);
        fputs(";\n", e->out);
    }
    fputs("}\n", e->out);
}

static int arrays_of_launch(const trli_emitter *e)
{
    return e->level->narrays + (e->level->cut ? 2 * e->level->nreads : 0);
}

/* A point of any level. */
static void put_point_of_level(const trli_emitter *e)
{
    const int n = e->level->nstages;
    fprintf(e->out,
            "struct trl_point {\n"
            "    const trl_kernel_launch &call;\n"
            "    const trl_kernel_arrays<%d> &arrays;\n"
            "    const double *const all;\n"
            "    template <class star>\n"
            "    __device__ __forceinline__ void operator()(int level, unsigned row, int i, int j, int k, const star "
            "(&in)[%d],\n                                               double (&result)[%d]) const\n"
            "    {\n",
            arrays_of_launch(e), e->nroots, e->nroots);
    for (int g = 0; g < n; ++g) {
        fputs("        ", e->out);
        if (g < n - 1) fprintf(e->out, "if (level %% %d == %d) return ", n, g);
        fprintf(e->out, "trl_next_%d(call, arrays, all, level, row, i, j, k, in, result);\n", g);
    }
    fputs("    }\n};\n", e->out);
}

static void put_stepped(const trli_emitter *e)
{
    const int before = e->level->nreads, below = e->level->narrays;
    fprintf(e->out, "    const trl_kernel_stepped<%d> stepped = {{", e->nroots);
    for (int r = 0; r < e->nroots; ++r) fprintf(e->out, "%sarrays.array[%d].at", r > 0 ? ", " : "", r);
    fputs("}, {", e->out);
    for (int r = 0; r < e->nroots; ++r) fprintf(e->out, "%sarrays.array[%d].at", r > 0 ? ", " : "", before + r);
    fputs("}, arrays.array[0].stride[1], arrays.array[0].stride[2], ", e->out);
    if (e->level->cut)
        fprintf(e->out, "&arrays.array[%d], &arrays.array[%d]};\n", below, below + e->level->nreads);
    else
        fputs("nullptr, nullptr};\n", e->out);
}

/* What takes all steps of all points. */
static void put_launch(const trli_emitter *e)
{
    const trli_emit_steps *s = e->steps;
    fprintf(e->out,
            "typedef trl_kernel_steps_tile<%d, %d, %d, %d, %d, %d> trl_tile;\n"
            "extern \"C\" __global__ void __launch_bounds__(trl_tile::threads, trl_tile::blocks)\n"
            "trl_kernel(const __grid_constant__ trl_kernel_launch call, const __grid_constant__ trl_kernel_arrays<%d> "
            "arrays,\n           const __grid_constant__ trl_kernel_scalars<%d> scalars)\n"
            "{\n",
            s->fields, s->steps, s->wide, s->high, s->rows, s->at_once, arrays_of_launch(e), e->level->each * s->steps);
    put_stepped(e);
    fprintf(e->out,
            "    trl_kernel_take%s_steps<trl_tile, %u%s, %d>(call, stepped, trl_point{call, arrays, scalars.value});\n"
            "}\n"
            "#define TRL_KERNEL_HAS_BARRIERS\n",
            s->flat ? "_flat" : "", find_wraps(e), e->level->cut ? " | TRL_KERNEL_CUT" : "",
            e->check_finite ? e->level->nstages : 0);
}

void trli_cuda_put_steps(trli_emitter *e, const trli_cuda_values *done)
{
    if (!fits_tile(e)) {
        e->why = "it reads more than a field's nearest neighbours";
        return;
    }
    put_next(e, done);
    if (e->level->stage < e->level->nstages - 1) return;
    put_point_of_level(e);
    put_launch(e);
}
