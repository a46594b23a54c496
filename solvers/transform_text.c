/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Transforms as text for GPUs: the calls of a plan one after the other, with all its numbers. */
#include "arithmetic_impl.h"
#include "slabs_gpu_impl.h"

enum {
    SHARED_FEW = 36 << 10,   /* bytes of a block, so that a multiprocessor has several */
    SHARED_MOST = 227 << 10, /* of a block, since compute capability 9.0 */
    VALUES_EACH = 16,        /* of a thread */
    THREADS_MOST = 512,      /* which may have 128 registers each */
    PLANE_VALUES_EACH = 8,   /* of a thread: a multiprocessor has no other block */
    PLANE_LANES = 16,        /* their number is a multiple: half a warp reads shared memory at once */
    PLANE_LANES_MOST = 128
};

static size_t shared_of(const trli_transform *t, int pitch)
{
    return 2 * (size_t)t->room * (size_t)pitch * sizeof(double);
}

bool trli_lines_shape_of(const trli_transform *t, bool of_rows, trli_lines_shape *s)
{
    int lanes = TRLI_LINES_MOST, workers = 1;
    while (lanes > 4 && shared_of(t, lanes + of_rows) > SHARED_FEW) lanes /= 2;
    while (lanes > 1 && shared_of(t, lanes + of_rows) > SHARED_MOST) lanes /= 2;
    while (2 * lanes * workers <= THREADS_MOST && VALUES_EACH * workers < t->room) workers *= 2;
    /* Rows are read along x and stored across: with an odd pitch threads seldom meet in a bank. */
    *s = (trli_lines_shape){.lanes = lanes, .workers = workers, .pitch = lanes + of_rows};
    s->shared = shared_of(t, s->pitch);
    return s->shared <= SHARED_MOST;
}

static size_t shared_of_plane(const trli_transform *x, const trli_transform *y, int lanes)
{
    const size_t room = (size_t)(x->room > y->room ? x->room : y->room), pitch = (size_t)(x->n | 1);
    return (pitch * (size_t)y->n + 2 * room * (size_t)lanes) * sizeof(double);
}

/* As few rounds of lines as may be, since all threads wait after each pass of a round; then as few lanes. */
bool trli_planes_shape_of(const trli_transform *x, const trli_transform *y, size_t most, trli_lines_shape *s)
{
    const int room = x->room > y->room ? x->room : y->room, needed = (int)trli_ceil_div(room, PLANE_VALUES_EACH);
    int64_t fewest = INT64_MAX;
    for (int lanes = PLANE_LANES_MOST; lanes > 0; lanes -= PLANE_LANES) {
        const int64_t rounds = trli_ceil_div(x->n, lanes) + trli_ceil_div(y->n, lanes);
        const int workers = THREADS_MOST / lanes;
        const size_t shared = shared_of_plane(x, y, lanes);
        if (shared > most || rounds > fewest) continue;
        fewest = rounds;
        *s = (trli_lines_shape){
            .lanes = lanes, .workers = workers < needed ? workers : needed, .pitch = lanes, .shared = shared};
    }
    return fewest < INT64_MAX;
}

static void write_numbers(const trli_transform *t, FILE *out)
{
    const trli_fourier *f = &t->fourier;
    (void)fprintf(out,
                  "        trli_transform t = {};\n"
                  "        t.kind = (trli_transform_kind)%d;\n"
                  "        t.n = %d;\n"
                  "        t.values = %d;\n"
                  "        t.index = const_cast<int *>(index);\n"
                  "        t.table = const_cast<double *>(table);\n"
                  "        t.sign = %zu;\n"
                  "        t.split = %zu;\n"
                  "        t.half = %g;\n"
                  "        t.turned = %d;\n"
                  "        t.turn = %zu;\n"
                  "        t.out = %zu;\n"
                  "        t.fourier.n = %d;\n"
                  "        t.fourier.real = %d;\n"
                  "        t.fourier.convolved = %d;\n"
                  "        t.fourier.chirp = %zu;\n"
                  "        t.fourier.filter = %zu;\n",
                  (int)t->kind, t->n, t->values, t->sign, t->split, t->half, t->turned, t->turn, t->out, f->n, f->real,
                  f->convolved, f->chirp, f->filter);
    for (int i = 0; i < f->npasses; ++i)
        (void)fprintf(out, "        constexpr trli_fourier_pass pass%d = {%d, %d, %d, %zu, %zu};\n", i,
                      f->pass[i].radix, f->pass[i].length, f->pass[i].batch, f->pass[i].twiddle, f->pass[i].root);
}

static void write_call(const trli_transform *t, const trli_transform_call *c, const char *from, const char *to,
                       const char *step, FILE *out)
{
#define NAME(NAME, function) #function,
    static const char *const first[] = {TRLI_FIRST_LIST(NAME)}, *const last[] = {TRLI_LAST_LIST(NAME)};
#undef NAME
    static const char *const of_complex[TRLI_PASS_ROLES] = {
        [TRLI_PASS_WITHIN] = "within",     [TRLI_PASS_FIRST] = "first", [TRLI_PASS_ENTER] = "enter",
        [TRLI_PASS_ENTER_BY] = "enter_by", [TRLI_PASS_LEAVE] = "leave", [TRLI_PASS_LEAVE_BY] = "leave_by"};
    static const char *const of_real[TRLI_PASS_ROLES] = {[TRLI_PASS_WITHIN] = "real",
                                                         [TRLI_PASS_FIRST] = "real",
                                                         [TRLI_PASS_ENTER] = "real_enter",
                                                         [TRLI_PASS_ENTER_BY] = "real_enter_by"};
    const bool real = t->fourier.real && !t->fourier.convolved;
    switch (c->kind) {
    case TRLI_CALL_FIRST:
        (void)fprintf(out, "        trl_line_%s(&t, %s, %s, %s);\n", first[c->which], from, step, to);
        return;
    case TRLI_CALL_PASS:
        (void)fprintf(out, "        trl_line_%s_any(&t, &pass%d, %s, %s, %s);\n",
                      (real ? of_real : of_complex)[c->role], c->which, from, to, step);
        return;
    case TRLI_CALL_ENTER:
        (void)fprintf(out, "        trl_line_enter_convolution(&t.fourier, table, %s, %s);\n", from, to);
        return;
    case TRLI_CALL_FILTER:
        (void)fprintf(out, "        trl_line_filter(&t.fourier, table, %s);\n", to);
        return;
    case TRLI_CALL_LEAVE:
        (void)fprintf(out, "        trl_line_leave_convolution(&t.fourier, table, %s, %s);\n", from, to);
        return;
    case TRLI_CALL_LAST:
        (void)fprintf(out, "        trl_line_%s(&t, %s, %s, %s);\n", last[c->which], from, to, step);
        return;
    }
}

/* A type with the numbers and the calls of a way. run: what comes out is written to `to`, or stays in one of the
 * buffers, and is returned; its last call reads the other one, a if ends_with_a is true. */
static void write_way(const trli_transform *t, bool back, const char *name, FILE *out)
{
    const trli_transform_way *way = &t->way[back];
    const char *at = "a", *spare = "b";
    (void)fprintf(out,
                  "struct trl_%s {\n"
                  "    static constexpr int n = %d, room = %d;\n"
                  "    template <bool out> static __device__ __forceinline__ double *run(const double *from, long long "
                  "step, double *to,\n"
                  "        long long to_step, double *a, double *b, const double *table, const int *index)\n"
                  "    {\n",
                  name, t->n, t->room);
    write_numbers(t, out);
    if (way->reversed_from) (void)fprintf(out, "        from += %d * step;\n        step = -step;\n", t->n - 1);
    write_call(t, &way->call[0], "from", at, "step", out);
    for (int i = 1; i < way->ncalls; ++i) {
        const bool filter = way->call[i].kind == TRLI_CALL_FILTER;
        (void)fprintf(out, "        __syncthreads();\n");
        if (i == way->ncalls - 1) break;
        write_call(t, &way->call[i], at, filter ? at : spare, "0", out);
        const char *kept = at;
        if (!filter) at = spare;
        if (!filter) spare = kept;
    }
    (void)fprintf(out, "        double *const have = out ? to : %s;\n        to = have;\n", spare);
    (void)fprintf(out, "        if (!out) to_step = TRLI_LANES;\n");
    if (way->reversed_to) (void)fprintf(out, "        to += %d * to_step;\n        to_step = -to_step;\n", t->n - 1);
    write_call(t, &way->call[way->ncalls - 1], at, "to", "to_step", out);
    (void)fprintf(out, "        return have;\n    }\n    static constexpr bool ends_with_a = %s;\n};\n",
                  at[0] == 'a' ? "true" : "false");
}

static void write_kernel(const char *what, int threads, FILE *out)
{
    (void)fprintf(out,
                  "extern \"C\" __global__ void __launch_bounds__(%d)\n"
                  "trl_kernel(const __grid_constant__ trl_kernel_launch call,\n"
                  "           const __grid_constant__ trl_kernel_arrays<%d> arrays,\n"
                  "           const __grid_constant__ trl_kernel_scalars<%d> scalars)\n"
                  "{\n    %s(call, arrays.array, scalars.value);\n}\n",
                  threads, TRLI_LINES_ARRAYS, TRLI_LINES_SCALARS, what);
}

static void write_shape(const trli_lines_shape *s, FILE *out)
{
    (void)fprintf(out, "#define TRL_LANES %d\n#define TRL_WORKERS %d\n#define TRLI_LANES %d\n%s", s->lanes, s->workers,
                  s->pitch, trli_lines_prelude);
}

void trli_lines_write(const trli_transform *t, const trli_lines_shape *s, bool of_rows, bool back, bool divided,
                      FILE *out)
{
    char what[100];
    (void)fprintf(out, "#define TRL_KERNEL_HAS_BARRIERS\n");
    write_shape(s, out);
    write_way(t, false, "there", out);
    write_way(t, true, "back", out);
    (void)snprintf(what, sizeof what, "trl_lines_transform<%s, %s, trl_%s, trl_back>", of_rows ? "true" : "false",
                   divided ? "true" : "false", back ? "back" : "there");
    write_kernel(what, s->lanes * s->workers, out);
}

void trli_planes_write(const trli_transform *x, const trli_transform *y, const trli_lines_shape *s, bool back,
                       FILE *out)
{
    char what[100];
    (void)fprintf(out, "#define TRL_KERNEL_HAS_BARRIERS\n");
    write_shape(s, out);
    write_way(x, back, "along_x", out);
    write_way(y, back, "along_y", out);
    (void)snprintf(what, sizeof what, "trl_planes_transform<%s, trl_along_x, trl_along_y>", back ? "true" : "false");
    write_kernel(what, s->lanes * s->workers, out);
}

void trli_lines_write_plain(const char *what, int threads, FILE *out)
{
    static const trli_lines_shape one = {1, 1, 1, 0};
    write_shape(&one, out);
    write_kernel(what, threads, out);
}
