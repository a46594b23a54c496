/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* In NVRTC's place: CUDA's text becomes a library for the processor, with a stand-in for what CUDA adds to C++.
 * Threads run one after the other, in warps of one; where a kernel has barriers (TRL_KERNEL_HAS_BARRIERS, and sums of
 * blocks), each up to the next one, as fibers of fibers.h. gpu.c loads it, and gives it these. */
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char before[] =
    "#pragma GCC diagnostic ignored \"-Wunknown-pragmas\"\n"
    "#define fabs __builtin_fabs\n"
    "#include <stddef.h>\n"
    "#define __CUDACC__\n"
    "#define TRL_BODY static inline\n"
    "#define TRL_KERNEL_WARP 1\n"
    "#define TRL_KERNEL_APART static\n"
    "#define __global__\n"
    "#define __forceinline__ inline\n"
    "#define TRL_KERNEL_SHARED(name) double *const name = trl_shared\n"
    "#define __device__\n"
    "#define __shared__ static thread_local\n"
    "#define __launch_bounds__(...)\n"
    "#define __grid_constant__\n"
    "struct triple { unsigned x, y, z; };\n"
    "static thread_local triple threadIdx, blockIdx, blockDim, gridDim;\n"
    "static thread_local double trl_shared[(227 << 10) / 8];\n"
    "static void (*trl_run)(unsigned, void (*)(void *, unsigned), void *);\n"
    "static void (*trl_wait)();\n"
    "static void __syncthreads() { const triple own = threadIdx; trl_wait(); threadIdx = own; }\n"
    "static long long __double_as_longlong(double x) { long long b; __builtin_memcpy(&b, &x, 8); return b; }\n"
    "static double __longlong_as_double(long long b) { double x; __builtin_memcpy(&x, &b, 8); return x; }\n"
    "static int __double2hiint(double x) { return (int)(__double_as_longlong(x) >> 32); }\n"
    "template <class T> static T __shfl_xor_sync(unsigned, T x, int) { return x; }\n"
    "static unsigned __ballot_sync(unsigned, bool where) { return where; }\n"
    "static bool __any_sync(unsigned, bool where) { return where; }\n"
    "static void __threadfence() {}\n"
    "template <class T> static T atomicExch(T *to, T x) { T was = *to; *to = x; return was; }\n"
    "static int __popc(unsigned lanes) { return __builtin_popcount(lanes); }\n"
    "template <class T> static T atomicAdd(T *to, T x) { T was = *to; *to += x; return was; }\n"
    "template <class T> static T atomicMin(T *to, T x) { T was = *to; if (x < was) *to = x; return was; }\n"
    "template <class T> static T atomicMax(T *to, T x) { T was = *to; if (x > was) *to = x; return was; }\n";

/* Blocks and threads in descending order, which nothing may depend on. All is static: a library with a symbol that is
 * unique in the process would stay, and be taken for the next one of the same file number. */
static const char after[] =
    "\n"
    "template <class A, class B, class C> static void find_sizes(void (*)(A, B, C), size_t size[3])\n"
    "{\n"
    "    size[0] = sizeof(A);\n"
    "    size[1] = sizeof(B);\n"
    "    size[2] = sizeof(C);\n"
    "}\n"
    "#ifdef TRL_KERNEL_HAS_BARRIERS\n"
    "template <class A, class B, class C> struct called { void (*kernel)(A, B, C); const A &a; const B &b; const C &c; "
    "};\n"
    "template <class A, class B, class C> static void do_thread(void *of, unsigned t)\n"
    "{\n"
    "    const called<A, B, C> *in = (const called<A, B, C> *)of;\n"
    "    threadIdx = triple{t % blockDim.x, t / blockDim.x, 0};\n"
    "    in->kernel(in->a, in->b, in->c);\n"
    "}\n"
    "template <class A, class B, class C> static void do_block(void (*kernel)(A, B, C), const A &a, const B &b, const "
    "C &c)\n"
    "{\n"
    "    called<A, B, C> all = {kernel, a, b, c};\n"
    "    for (double &x : trl_shared) x = __builtin_nan(\"\");\n"
    "    trl_run(blockDim.x * blockDim.y, do_thread<A, B, C>, &all);\n"
    "}\n"
    "#endif\n"
    "template <class A, class B, class C> static void do_all(void (*kernel)(A, B, C), void **argument, const unsigned "
    "*blocks)\n"
    "{\n"
    "    const A a = *(const A *)argument[0];\n"
    "    const B b = *(const B *)argument[1];\n"
    "    const C c = *(const C *)argument[2];\n"
    "    gridDim = triple{blocks[0], blocks[1], blocks[2]};\n"
    "    for (blockIdx.z = blocks[2]; blockIdx.z-- > 0;)\n"
    "        for (blockIdx.y = blocks[1]; blockIdx.y-- > 0;)\n"
    "            for (blockIdx.x = blocks[0]; blockIdx.x-- > 0;)\n"
    "#ifdef TRL_KERNEL_HAS_BARRIERS\n"
    "                do_block(kernel, a, b, c);\n"
    "#else\n"
    "                for (threadIdx.y = blockDim.y; threadIdx.y-- > 0;)\n"
    "                    for (threadIdx.x = blockDim.x; threadIdx.x-- > 0;) kernel(a, b, c);\n"
    "#endif\n"
    "}\n"
    "extern \"C\" void trl_emulated_sizes(size_t size[3]) { find_sizes(trl_kernel, size); }\n"
    "extern \"C\" void trl_emulated_fibers(void (*run)(unsigned, void (*)(void *, unsigned), void *), void "
    "(*wait)())\n"
    "{\n"
    "    trl_run = run;\n"
    "    trl_wait = wait;\n"
    "}\n"
    "extern \"C\" void trl_emulated_run(void **argument, const unsigned *blocks, const unsigned *threads)\n"
    "{\n"
    "    blockDim = triple{threads[0], threads[1], threads[2]};\n"
    "    do_all(trl_kernel, argument, blocks);\n"
    "}\n";

typedef struct program {
    char *text, *log, *image;
    size_t bytes;
} program;

enum { SUCCESS, FAILURE };

int nvrtcVersion(int *major, int *minor);
int nvrtcCreateProgram(void **made, const char *text, const char *name, int, const char *const *, const char *const *);
int nvrtcCompileProgram(void *of, int noptions, const char *const *option);
int nvrtcGetProgramLogSize(void *of, size_t *bytes);
int nvrtcGetProgramLog(void *of, char *text);
int nvrtcGetCUBINSize(void *of, size_t *bytes);
int nvrtcGetCUBIN(void *of, char *image);
int nvrtcDestroyProgram(void **of);

int nvrtcVersion(int *major, int *minor)
{
    *major = 0;
    *minor = 5; /* one more where what it adds to texts changes: their libraries are cached */
    return SUCCESS;
}

int nvrtcCreateProgram(void **made, const char *text, const char *name, int headers, const char *const *header,
                       const char *const *names)
{
    program *p = calloc(1, sizeof *p);
    (void)name;
    (void)headers;
    (void)header;
    (void)names;
    *made = p;
    if (p) p->text = strdup(text);
    return p && p->text ? SUCCESS : FAILURE;
}

static char *read_file(const char *path, size_t *bytes)
{
    FILE *file = fopen(path, "rb");
    char *made = NULL;
    *bytes = 0;
    if (!file) return NULL;
    if (fseek(file, 0, SEEK_END) == 0) *bytes = (size_t)ftell(file);
    rewind(file);
    made = calloc(1, *bytes + 1);
    if (made && fread(made, 1, *bytes, file) != *bytes) *bytes = 0;
    (void)fclose(file);
    return made;
}

static int write_text(const char *path, const char *text)
{
    const bool sums = strstr(text, "trl_kernel_block_begin(block") || strstr(text, "trl_kernel_let_go(call, ");
    FILE *file = fopen(path, "w");
    if (!file) return FAILURE;
    (void)fprintf(file, "%s%s%s%s", before, sums ? "#define TRL_KERNEL_HAS_BARRIERS\n" : "", text, after);
    return fclose(file) == 0 ? SUCCESS : FAILURE;
}

static int compile(const char *source, const char *library, const char *log)
{
    int status = 0;
    const pid_t child = fork();
    if (child == 0) {
        if (!freopen(log, "w", stderr)) _exit(127);
        execlp("c++", "c++", "-std=c++17", "-O1", "-w", "-fPIC", "-shared", "-nostdlib", "-ffp-contract=off",
               "-fno-math-errno", "-o", library, source, (char *)NULL);
        _exit(127);
    }
    return child > 0 && waitpid(child, &status, 0) == child && status == 0 ? SUCCESS : FAILURE;
}

/* A byte in a file for each text that is compiled. */
static void count_one(void)
{
    const char *path = getenv("TRL_EMULATED_COMPILED");
    const int file = path ? open(path, O_WRONLY | O_APPEND | O_CREAT, 0600) : -1;
    if (file < 0) return;
    (void)!write(file, "x", 1);
    close(file);
}

int nvrtcCompileProgram(void *of, int noptions, const char *const *option)
{
    program *p = of;
    char folder[] = "/tmp/trl_emulated_XXXXXX", source[64], library[64], log[64];
    size_t bytes;
    (void)noptions;
    (void)option;
    count_one();
    if (!mkdtemp(folder)) return FAILURE;
    (void)snprintf(source, sizeof source, "%s/kernel.cpp", folder);
    (void)snprintf(library, sizeof library, "%s/kernel.so", folder);
    (void)snprintf(log, sizeof log, "%s/log", folder);
    const int status = write_text(source, p->text) == SUCCESS ? compile(source, library, log) : FAILURE;
    if (status == SUCCESS) p->image = read_file(library, &p->bytes);
    p->log = read_file(log, &bytes);
    (void)unlink(source);
    (void)unlink(library);
    (void)unlink(log);
    (void)rmdir(folder);
    return status;
}

int nvrtcGetProgramLogSize(void *of, size_t *bytes)
{
    const program *p = of;
    *bytes = p->log ? strlen(p->log) + 1 : 1;
    return SUCCESS;
}

int nvrtcGetProgramLog(void *of, char *text)
{
    const program *p = of;
    strcpy(text, p->log ? p->log : "");
    return SUCCESS;
}

int nvrtcGetCUBINSize(void *of, size_t *bytes)
{
    const program *p = of;
    *bytes = p->bytes;
    return SUCCESS;
}

int nvrtcGetCUBIN(void *of, char *image)
{
    const program *p = of;
    memcpy(image, p->image, p->bytes);
    return SUCCESS;
}

int nvrtcDestroyProgram(void **of)
{
    program *p = *of;
    free(p->text);
    free(p->log);
    free(p->image);
    free(p);
    *of = NULL;
    return SUCCESS;
}
