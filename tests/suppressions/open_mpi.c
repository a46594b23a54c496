/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Linked into programs that look for leaks. What Open MPI allocates while it begins and ends is not looked at: to match
 * it by name, every allocation would have to keep its whole stack, and the check would take several times as long as
 * most tests. Its modules stay loaded at the end, so that what only they refer to is still referred to. */
#include <mpi.h>
#include <sanitizer/lsan_interface.h>

#include <dlfcn.h>
#include <stdbool.h>

static bool ends;

int MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
    __lsan_disable();
    int result = PMPI_Init_thread(argc, argv, required, provided);
    __lsan_enable();
    return result;
}

int MPI_Finalize(void)
{
    __lsan_disable();
    ends = true;
    int result = PMPI_Finalize();
    ends = false;
    __lsan_enable();
    return result;
}

__attribute__((visibility("default"))) int dlclose(void *library)
{
    static int (*close)(void *);
    if (ends) return 0;
    if (!close) *(void **)&close = dlsym(RTLD_NEXT, "dlclose");
    return close(library);
}
