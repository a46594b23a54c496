/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* CUDA text as C++ without a GPU, with a stand-in for what CUDA adds to the language. */
#ifndef GPU_TEXT_FIXTURE_H
#define GPU_TEXT_FIXTURE_H

#include "problem_fixture.h"

#include "native_impl.h"
#include "signature_impl.h"

/* Before each kernel; several may be compiled as one text. Behind it a kernel has another name, so that trl_kernel can
 * be the function that calls it. */
static const char stand_in[] = "#ifndef __global__\n"
                               "#define __global__\n"
                               "#define __launch_bounds__(...)\n"
                               "#define __grid_constant__\n"
                               "struct triple { unsigned x, y, z; };\n"
                               "static thread_local triple threadIdx, blockIdx, blockDim;\n"
                               "#define TRL_KERNEL_PLANES\n"
                               "#define TRL_KERNEL_TOGETHER\n"
                               "#define blocks TRL_OWN(blocks)\n"
                               "#define gpu_kernel TRL_OWN(gpu_kernel)\n"
                               "#define trl_point TRL_OWN(trl_point)\n"
                               "#define trl_tile TRL_OWN(trl_tile)\n"
                               "#endif\n"
                               "#undef trl_kernel\n"
                               "#define trl_kernel gpu_kernel\n";
#define BEHIND_KERNEL "#undef trl_kernel\n#define trl_kernel TRL_OWN(trl_kernel)\n"

static inline char *print_text(const char *format, ...) TRL_PRINTF(1, 2);
static inline char *print_text(const char *format, ...)
{
    va_list args;
    char *made;
    va_start(args, format);
    ck_assert_int_ge(vasprintf(&made, format, args), 0);
    va_end(args);
    return made;
}

/* The scalars that a kernel reads, as a list in C; "0" if there are none. */
static inline void list_scalars(const trli_reads *reads, char *list, size_t room)
{
    snprintf(list, room, "0");
    for (int i = 0, at = 0; i < reads->nscalars; ++i)
        at += snprintf(list + at, room - (size_t)at, "%s%d", i ? ", " : "", reads->scalar[i]);
}

/* Of the CUDA text it is the meaning that is tested, not what a compiler for processors makes of it. */
static inline void create_cpp_compiler(trli_compiler **compiler)
{
    const char *before = getenv("TRELLIS_CC");
    char *own = before ? strdup(before) : NULL;
    setenv("TRELLIS_CC", TRL_TEST_SOURCE_DIR "/quick_cxx.sh", 1);
    ck_ok(trli_compiler_create(test_ctx, false, compiler));
    if (own)
        setenv("TRELLIS_CC", own, 1);
    else
        unsetenv("TRELLIS_CC");
    free(own);
}

static inline void say_equation(int dim, const char *location, const char *ddt)
{
    say("  e: {location: %s, initial: \"0.2 + 0.1*sin(3*x) + 0.2*random(7)\", ddt: \"%s\", boundary: {", location, ddt);
    for (int a = 0; a < dim; ++a)
        if (a != 1) /* y is periodic */
            say("%s%c-: {dirichlet: \"0.1 + t\"}, %c+: {neumann: 0.5}", a ? ", " : "", "xyz"[a], "xyz"[a]);
    say("}}\n");
}

static inline void say_grid(int dim)
{
    static const int cells[3] = {11, 6, 7};
    new_deck();
    say("grid: {cells: %s, periodic: [false%s%s]}\nequations:\n", list_of(dim, cells), dim > 1 ? ", true" : "",
        dim > 2 ? ", false" : "");
}

#endif
