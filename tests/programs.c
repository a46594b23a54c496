/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The test programs of one folder, linked once. The last part of the name by which this program is called,
 * <folder>_test_<thing>, says which of them runs. programs.list is written by CMake: a line TRL_PROGRAM(test_<thing>)
 * for each. */
#include <stdio.h>
#include <string.h>

#define TRL_PROGRAM(name) int name##_main(int argc, char **argv);
#include "programs.list"
#undef TRL_PROGRAM

static const struct program {
    const char *name;
    int (*main)(int argc, char **argv);
} programs[] = {
#define TRL_PROGRAM(name) {#name, name##_main},
#include "programs.list"
#undef TRL_PROGRAM
};

int main(int argc, char **argv)
{
    const char *name = argc > 0 ? strstr(argv[0], "_test_") : NULL;
    for (size_t p = 0; name && p < sizeof programs / sizeof *programs; ++p)
        if (strcmp(name + 1, programs[p].name) == 0) return programs[p].main(argc, argv);
    fprintf(stderr, "call this program by a link to it, <folder>_<test>, where <test> is one of:\n");
    for (size_t p = 0; p < sizeof programs / sizeof *programs; ++p) fprintf(stderr, "  %s\n", programs[p].name);
    return 2;
}
