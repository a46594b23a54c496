// ctest: np=1 labels=gpu emulated=1 timeout=600
/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Transforms of lines by a GPU: the bits of the host, for each kind, lengths of all kinds of factors, and lines along
 * x and across, and of planes along both axes; and NVRTC compiles their texts where there is no GPU. */
#include <stdlib.h>
#include <string.h>

#include "trl_test.h"

#include "executor_impl.h"
#include "gpu_kernel_impl.h"
#include "memory_impl.h"
#include "memstream_impl.h"
#include "native_impl.h"
#include "rtc_impl.h"
#include "slabs_gpu_impl.h"

/* 103 and 206 are convolved; lines of 1000 points leave room for few in a block. */
static const int lengths[] = {24, 35, 206, 2, 1000, 103, 30, 3, 128, 9, 14, 97};
enum { LENGTHS = sizeof lengths / sizeof *lengths, ACROSS = 19, REST = 2, ROOM = ACROSS + TRLI_LINES_MOST };

typedef struct sample {
    trli_transform *transform;
    trli_lines_shape shape;
    bool rows;
    int n;
    trli_gpu_kernel *kernel;
} sample;

static sample make_sample(trli_transform_kind kind, int n, bool rows)
{
    sample s = {.rows = rows, .n = n};
    ck_ok(trli_transform_create(test_ctx, kind, n, &s.transform));
    ck_assert(trli_lines_shape_of(s.transform, rows, &s.shape));
    return s;
}

static char *text_of(const sample *s)
{
    trli_memstream text;
    ck_assert(trli_memstream_open(test_ctx, &text));
    trli_lines_write(s->transform, &s->shape, s->rows, false, true, text.out);
    ck_assert(trli_memstream_close(&text));
    return text.text;
}

static char *plain_text_of(const char *what)
{
    trli_memstream text;
    ck_assert(trli_memstream_open(test_ctx, &text));
    trli_lines_write_plain(what, TRLI_SLAB_THREADS, text.out);
    ck_assert(trli_memstream_close(&text));
    return text.text;
}

/* Each kind with some lengths, one of them in the short form. */
static int make_samples(sample *s)
{
    int n = 0;
    for (int kind = 0; kind < TRLI_TRANSFORMS; ++kind)
        for (int i = 0; i < LENGTHS; ++i)
            if (test_has(i + kind, 4)) s[n++] = make_sample((trli_transform_kind)kind, lengths[i], (i + kind) % 8 < 4);
    return n;
}

/* Planes with transforms of any two kinds; the bytes that a block has at most say how many lanes there are. */
enum { PLANES = 3, PITCH = 131 /* of rows in memory */, X = 0, Y = 1 };
typedef struct plane_sample {
    trli_transform_kind kind[2];
    int n[2];
    size_t most;
    trli_transform *transform[2];
    trli_lines_shape shape;
    trli_gpu_kernel *kernel[2]; /* there, back */
} plane_sample;

/* Each kind once along each axis, rounds that are full and not, more lines along x or y, few lanes and many. */
#define PLANE_SAMPLES(X)                                                  \
    X(PERIODIC, 128, PERIODIC, 128, 227)                                  \
    X(PERIODIC, 35, POINT_ODD_EVEN, 24, 227)                              \
    X(EVEN, 24, ODD, 35, 20)                                              \
    X(ODD, 97, EVEN, 9, 227)                                              \
    X(EVEN_ODD, 30, ODD_EVEN, 14, 18)                                     \
    X(ODD_EVEN, 9, EVEN_ODD, 35, 227)                                     \
    X(POINT_EVEN, 9, POINT_EVEN_ODD, 14, 227)                             \
    X(POINT_ODD, 14, POINT_EVEN, 35, 227)                                 \
    X(POINT_EVEN_ODD, 24, POINT_ODD, 30, 227)                             \
    X(POINT_ODD_EVEN, 103, PERIODIC, 3, 227) /* convolved along x, and */ \
    X(EVEN, 3, PERIODIC, 103, 227)           /* along y */                \
    X(PERIODIC, 2, EVEN, 2, 227)
#define PLANE_SAMPLE(x, nx, y, ny, kb) \
    {.kind = {TRLI_TRANSFORM_##x, TRLI_TRANSFORM_##y}, .n = {nx, ny}, .most = (size_t)(kb) << 10},
static const plane_sample plane_samples[] = {PLANE_SAMPLES(PLANE_SAMPLE)};
enum { NPLANE_SAMPLES = sizeof plane_samples / sizeof *plane_samples };

static int make_plane_samples(plane_sample *s)
{
    int n = 0;
    for (int i = 0; i < NPLANE_SAMPLES; ++i) {
        if (!test_has(i, 4)) continue;
        s[n] = plane_samples[i];
        for (int a = X; a <= Y; ++a)
            ck_ok(trli_transform_create(test_ctx, s[n].kind[a], s[n].n[a], &s[n].transform[a]));
        ck_assert(trli_planes_shape_of(s[n].transform[X], s[n].transform[Y], s[n].most, &s[n].shape));
        ++n;
    }
    return n;
}

static void destroy_planes(plane_sample *s)
{
    trli_transform_destroy(&s->transform[X]);
    trli_transform_destroy(&s->transform[Y]);
}

static char *plane_text_of(const plane_sample *s, bool back)
{
    trli_memstream text;
    ck_assert(trli_memstream_open(test_ctx, &text));
    trli_planes_write(s->transform[X], s->transform[Y], &s->shape, back, text.out);
    ck_assert(trli_memstream_close(&text));
    return text.text;
}

/* ---- the host ---- */

static double draw(void)
{
    static unsigned long state = 99;
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (double)(state >> 33 & 0xffffff) / 0x800000 - 1;
}

/* Where value i of line `across`, `rest` is. */
static size_t place(const sample *s, int i, int across, int rest)
{
    const size_t n = (size_t)s->n;
    return s->rows ? (size_t)i + n * (size_t)(across + ROOM * rest)
                   : (size_t)across + ROOM * ((size_t)i + n * (size_t)rest);
}

static void on_host(const sample *s, double *at, double scale)
{
    void *memory = NULL;
    ck_ok(trl_memory_alloc(test_ctx,
                           ((size_t)s->n * TRLI_LANES + trli_transform_scratch(s->transform)) * sizeof(double), "test",
                           &memory));
    double *line = memory, *scratch = line + (size_t)s->n * TRLI_LANES;
    for (int rest = 0; rest < REST; ++rest)
        for (int across = 0; across < ACROSS; ++across) {
            for (int i = 0; i < s->n; ++i)
                for (int l = 0; l < TRLI_LANES; ++l) line[i * TRLI_LANES + l] = at[place(s, i, across, rest)];
            trli_transform_lines(s->transform, false, line, TRLI_LANES, line, TRLI_LANES, scratch);
            for (int i = 0; i < s->n * TRLI_LANES; ++i) line[i] = line[i] * scale / (1.5 + 0.0 + (0.0 + 0.0));
            trli_transform_lines(s->transform, true, line, TRLI_LANES, line, TRLI_LANES, scratch);
            for (int i = 0; i < s->n; ++i) at[place(s, i, across, rest)] = line[i * TRLI_LANES];
        }
    trl_memory_free(test_ctx, &memory);
}

/* ---- a GPU ---- */

typedef struct calling {
    const trli_gpu_kernels *kernels;
    const sample *s;
    double *lines, *table, *index;
    double scale;
} calling;

static trl_err call(void *data, const trl_task_args *args, bool *done)
{
    const calling *c = data;
    const sample *s = c->s;
    trl_kernel_array array[TRLI_LINES_ARRAYS] = {{0}};
    double scalar[TRLI_LINES_SCALARS] = {0, c->scale, 1.5, 0, 0};
    const trli_gpu_layout layout = {.blocks = {(unsigned)((ACROSS + s->shape.lanes - 1) / s->shape.lanes), REST, 1},
                                    .threads = (unsigned)(s->shape.lanes * s->shape.workers),
                                    .shared = s->shape.shared};
    trli_gpu_call launch = {
        .label = "lines", .array = array, .scalar = scalar, .shape = TRLI_GPU_GIVEN, .layout = &layout};
    (void)done;
    launch.launch.hi[0] = s->n;
    launch.launch.hi[1] = ACROSS;
    launch.launch.hi[2] = REST;
    array[0].at = c->lines;
    array[0].stride[0] = (long long)place(s, 1, 0, 0);
    array[0].stride[1] = (long long)place(s, 0, 1, 0);
    array[0].stride[2] = (long long)place(s, 0, 0, 1);
    array[1] = array[0];
    array[2].at = c->table;
    array[3].at = c->index;
    return trli_gpu_launch(c->kernels, s->kernel, &launch, args->space, args->stream);
}

static void move(trl_device *device, void *to, const void *from, size_t bytes, bool out)
{
    const trli_box_copy copy = {.to = to,
                                .from = from,
                                .to_space = out ? 0 : device->space,
                                .from_space = out ? device->space : 0,
                                .row = bytes,
                                .rows = 1,
                                .planes = 1};
    ck_ok(trli_device_copy_now(device, 1, &copy));
}

/* NULL if there is nothing. */
static void *send(trl_device *device, const void *from, size_t bytes)
{
    void *memory = NULL;
    if (bytes == 0) return NULL;
    ck_ok(device->ops->allocate(device, bytes, &memory));
    move(device, memory, from, bytes, false);
    return memory;
}

static void release(trl_device *device, void *memory)
{
    if (memory) device->ops->release(device, memory);
}

static void check_sample(const trli_gpu_kernels *kernels, trl_device *device, const sample *s)
{
    const size_t values = (size_t)s->n * ROOM * REST, bytes = values * sizeof(double);
    const trl_task_args args = {.chunks = 1, .space = device->space};
    const char *why;
    double *host = calloc(values, sizeof *host), *there = calloc(values, sizeof *there);
    ck_assert(host && there);
    ck_assert_msg(s->kernel->function != NULL, "%s", s->kernel->why);
    trli_gpu_kernels_share(kernels, s->kernel, s->shape.shared, &why);
    ck_assert_msg(!why, "%s", why);
    for (int rest = 0; rest < REST; ++rest)
        for (int across = 0; across < ACROSS; ++across)
            for (int i = 0; i < s->n; ++i) host[place(s, i, across, rest)] = draw();
    calling c = {.kernels = kernels,
                 .s = s,
                 .lines = send(device, host, bytes),
                 .table = send(device, s->transform->table, s->transform->ntable * sizeof(double)),
                 .index = send(device, s->transform->index, s->transform->nindex * sizeof(int)),
                 .scale = 1 / trli_transform_norm(s->transform)};
    ck_ok(trli_device_call_now(device, call, &c, &args));
    move(device, there, c.lines, bytes, true);
    on_host(s, host, c.scale);
    for (int rest = 0; rest < REST; ++rest)
        for (int across = 0; across < ACROSS; ++across)
            for (int i = 0; i < s->n; ++i) {
                const size_t at = place(s, i, across, rest);
                if (memcmp(&host[at], &there[at], sizeof *host) != 0)
                    ck_abort_msg("kind %d of %d points, %s: point %d of line %d, %d is %.17g, not %.17g",
                                 (int)s->transform->kind, s->n, s->rows ? "rows" : "lines", i, across, rest, there[at],
                                 host[at]);
            }
    release(device, c.lines);
    release(device, c.table);
    release(device, c.index);
    free(host);
    free(there);
}

/* ---- planes ---- */

/* Lines along an axis of one plane. */
static void planes_on_host(const plane_sample *s, int axis, bool back, double *at)
{
    const int n = s->n[axis], step = axis == X ? 1 : PITCH, across = axis == X ? PITCH : 1;
    void *memory = NULL;
    ck_ok(trl_memory_alloc(test_ctx,
                           ((size_t)n * TRLI_LANES + trli_transform_scratch(s->transform[axis])) * sizeof(double),
                           "test", &memory));
    double *line = memory, *scratch = line + (size_t)n * TRLI_LANES;
    for (int k = 0; k < s->n[!axis]; ++k) {
        for (int i = 0; i < n * TRLI_LANES; ++i) line[i] = at[i / TRLI_LANES * step + k * across];
        trli_transform_lines(s->transform[axis], back, line, TRLI_LANES, line, TRLI_LANES, scratch);
        for (int i = 0; i < n; ++i) at[i * step + k * across] = line[i * TRLI_LANES];
    }
    trl_memory_free(test_ctx, &memory);
}

typedef struct plane_calling {
    const trli_gpu_kernels *kernels;
    const plane_sample *s;
    double *from, *to, *table[2], *index[2];
    bool back, add;
} plane_calling;

static trl_err call_planes(void *data, const trl_task_args *args, bool *done)
{
    const plane_calling *c = data;
    const plane_sample *s = c->s;
    trl_kernel_array array[TRLI_LINES_ARRAYS] = {{0}};
    double scalar[TRLI_LINES_SCALARS] = {c->add};
    const trli_gpu_layout layout = {
        .blocks = {PLANES, 1, 1}, .threads = (unsigned)(s->shape.lanes * s->shape.workers), .shared = s->shape.shared};
    trli_gpu_call launch = {
        .label = "planes", .array = array, .scalar = scalar, .shape = TRLI_GPU_GIVEN, .layout = &layout};
    (void)done;
    launch.launch.hi[0] = s->n[X];
    launch.launch.hi[1] = s->n[Y];
    launch.launch.hi[2] = PLANES;
    array[0] = (trl_kernel_array){.at = c->from, .stride = {1, PITCH, (long long)PITCH * s->n[Y]}};
    array[1] = array[0];
    array[1].at = c->to;
    for (int a = X; a <= Y; ++a) {
        array[2 + 2 * a].at = c->table[a];
        array[3 + 2 * a].at = c->index[a];
    }
    return trli_gpu_launch(c->kernels, s->kernel[c->back], &launch, args->space, args->stream);
}

/* All values are compared: those beside the planes stay. */
static void check_planes(const trli_gpu_kernels *kernels, trl_device *device, const plane_sample *s, bool back,
                         bool add)
{
    const int plane = PITCH * s->n[Y], values = PLANES * plane;
    const size_t bytes = (size_t)values * sizeof(double);
    const trl_task_args args = {.chunks = 1, .space = device->space};
    const char *why;
    double *host = malloc(bytes), *before = malloc(bytes), *there = malloc(bytes);
    ck_assert(host && before && there);
    ck_assert_msg(s->kernel[back]->function != NULL, "%s", s->kernel[back]->why);
    trli_gpu_kernels_share(kernels, s->kernel[back], s->shape.shared, &why);
    ck_assert_msg(!why, "%s", why);
    for (int i = 0; i < values; ++i) {
        host[i] = draw();
        before[i] = draw();
    }
    plane_calling c = {.kernels = kernels,
                       .s = s,
                       .from = send(device, host, bytes),
                       .to = send(device, before, bytes),
                       .back = back,
                       .add = add};
    for (int a = X; a <= Y; ++a) {
        c.table[a] = send(device, s->transform[a]->table, s->transform[a]->ntable * sizeof(double));
        c.index[a] = send(device, s->transform[a]->index, s->transform[a]->nindex * sizeof(int));
    }
    ck_ok(trli_device_call_now(device, call_planes, &c, &args));
    move(device, there, c.to, bytes, true);
    for (int k = 0; k < PLANES; ++k) {
        planes_on_host(s, back ? Y : X, back, host + k * plane);
        planes_on_host(s, back ? X : Y, back, host + k * plane);
    }
    for (int p = 0; p < values; ++p) {
        const int i = p % PITCH;
        const double wanted = i >= s->n[X] ? before[p] : add ? before[p] + host[p] : host[p];
        if (memcmp(&wanted, &there[p], sizeof wanted) != 0)
            ck_abort_msg("kinds %d, %d of %d x %d points, %s%s: point %d of row %d is %.17g, not %.17g",
                         (int)s->kind[X], (int)s->kind[Y], s->n[X], s->n[Y], back ? "back" : "there",
                         add ? ", added" : "", i, p / PITCH, there[p], wanted);
    }
    double *const sent[] = {c.from, c.to, c.table[X], c.table[Y], c.index[X], c.index[Y]};
    for (size_t i = 0; i < sizeof sent / sizeof *sent; ++i) release(device, sent[i]);
    free(host);
    free(before);
    free(there);
}

static bool has_gpu(void)
{
    const char *required = getenv("TRL_REQUIRE_GPU");
    trl_devices *devices = NULL;
    if (trl_devices_open(test_ctx, "gpu", &devices) == TRL_OK) {
        trl_devices_close(&devices);
        return true;
    }
    ck_assert_msg(!required || strcmp(required, "1") != 0, "there is no GPU");
    test_clear();
    return false;
}

START_TEST(lines_have_the_bits_of_the_host)
{
    static sample s[TRLI_TRANSFORMS * LENGTHS];
    const int n = make_samples(s);
    trl_devices *devices;
    trli_gpu_kernels *kernels;
    if (has_gpu()) {
        ck_ok(trl_devices_open(test_ctx, "gpu", &devices));
        ck_ok(trli_gpu_kernels_create(test_ctx, devices, &kernels));
        for (int i = 0; i < n; ++i) {
            char *text = text_of(&s[i]);
            ck_ok(trli_gpu_kernels_add(kernels, text, TRLI_LINES_ARRAYS, TRLI_LINES_SCALARS, &s[i].kernel));
            trli_free(text);
        }
        trli_gpu_kernels_compile(kernels);
        for (int i = 0; i < n; ++i) check_sample(kernels, devices->device[0], &s[i]);
        trli_gpu_kernels_destroy(&kernels);
        trl_devices_close(&devices);
    }
    for (int i = 0; i < n; ++i) trli_transform_destroy(&s[i].transform);
}
END_TEST

START_TEST(planes_have_the_bits_of_the_host)
{
    static plane_sample s[NPLANE_SAMPLES];
    const int n = make_plane_samples(s);
    trl_devices *devices;
    trli_gpu_kernels *kernels;
    if (has_gpu()) {
        ck_ok(trl_devices_open(test_ctx, "gpu", &devices));
        ck_ok(trli_gpu_kernels_create(test_ctx, devices, &kernels));
        for (int i = 0; i < 2 * n; ++i) {
            char *text = plane_text_of(&s[i / 2], i % 2);
            ck_ok(trli_gpu_kernels_add(kernels, text, TRLI_LINES_ARRAYS, TRLI_LINES_SCALARS, &s[i / 2].kernel[i % 2]));
            trli_free(text);
        }
        trli_gpu_kernels_compile(kernels);
        for (int i = 0; i < n; ++i) {
            check_planes(kernels, devices->device[0], &s[i], false, false);
            check_planes(kernels, devices->device[0], &s[i], true, i % 2);
            check_planes(kernels, devices->device[0], &s[i], true, i % 2 == 0);
        }
        trli_gpu_kernels_destroy(&kernels);
        trl_devices_close(&devices);
    }
    for (int i = 0; i < n; ++i) destroy_planes(&s[i]);
}
END_TEST

START_TEST(planes_fit_in_the_memory_of_a_block)
{
    static const struct {
        int n[2], kb, lanes; /* 0: they do not fit */
    } cases[] = {{{128, 128}, 227, 48}, {{128, 128}, 163, 16}, {{160, 160}, 227, 0}, {{64, 64}, 227, 64},
                 {{9, 20}, 227, 32},    {{256, 64}, 227, 16},  {{256, 128}, 227, 0}, {{3, 2}, 227, 16}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        trli_transform *t[2];
        trli_lines_shape s;
        for (int a = X; a <= Y; ++a)
            ck_ok(trli_transform_create(test_ctx, TRLI_TRANSFORM_PERIODIC, cases[i].n[a], &t[a]));
        const bool fits = trli_planes_shape_of(t[X], t[Y], (size_t)cases[i].kb << 10, &s);
        ck_assert_msg(fits == (cases[i].lanes > 0) && (!fits || s.lanes == cases[i].lanes),
                      "%d x %d points in %d kB: %d lanes, %zu bytes", cases[i].n[X], cases[i].n[Y], cases[i].kb,
                      s.lanes, s.shared);
        ck_assert_int_le(s.lanes * s.workers, 512);
        trli_transform_destroy(&t[X]);
        trli_transform_destroy(&t[Y]);
    }
}
END_TEST

/* text: released. */
static void compile(const trli_rtc *rtc, const char *what, char *text)
{
    char why[TRLI_RTC_WHY_ROOM], *all = malloc(strlen(trli_kernel_prelude) + strlen(text) + 1);
    size_t bytes;
    ck_assert_ptr_nonnull(all);
    strcat(strcpy(all, trli_kernel_prelude), text);
    void *image = trli_rtc_compile(rtc, test_ctx, all, 90, &bytes, why);
    ck_assert_msg(image != NULL, "%s: %s", what, why);
    trli_free(image);
    trli_free(text);
    free(all);
}

START_TEST(texts_are_compiled)
{
    trli_rtc rtc;
    char why[TRLI_RTC_WHY_ROOM];
    static sample s[TRLI_TRANSFORMS * LENGTHS];
    if (!trli_rtc_open(&rtc, why)) {
        printf("skipped: %s\n", why);
        return;
    }
    const int n = make_samples(s);
    for (int i = 0; i < n; ++i) {
        char what[64];
        (void)snprintf(what, sizeof what, "kind %d of %d points", (int)s[i].transform->kind, s[i].n);
        if (test_has(i, 3)) compile(&rtc, what, text_of(&s[i]));
        trli_transform_destroy(&s[i].transform);
    }
    static plane_sample planes[NPLANE_SAMPLES];
    const int nplanes = make_plane_samples(planes);
    for (int i = 0; i < nplanes; ++i) {
        char what[64];
        (void)snprintf(what, sizeof what, "planes of %d x %d points", planes[i].n[X], planes[i].n[Y]);
        if (test_has(i, 3)) compile(&rtc, what, plane_text_of(&planes[i], i % 2));
        destroy_planes(&planes[i]);
    }
    compile(&rtc, "what moves values", plain_text_of("trl_lines_move"));
    compile(&rtc, "what eliminates", plain_text_of("trl_lines_eliminate"));
    trli_rtc_close(&rtc);
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, lines_have_the_bits_of_the_host);
    tcase_add_test(tc, planes_have_the_bits_of_the_host);
    tcase_add_test(tc, planes_fit_in_the_memory_of_a_block);
    tcase_add_test(tc, texts_are_compiled);
}

TRL_TEST_MAIN("lines on GPUs", add_tests)
