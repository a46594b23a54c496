/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* NVRTC, the compiler of CUDA's text: a library that is opened when a GPU is there, and not linked with. */
#ifndef TRLI_RTC_IMPL_H
#define TRLI_RTC_IMPL_H

#include <trl_context.h>

enum { TRLI_RTC_WHY_ROOM = 512 };

typedef struct trli_rtc {
    void *library;
    int version[2];
    int (*create)(void **program, const char *text, const char *name, int, const char *const *, const char *const *);
    int (*compile)(void *program, int noptions, const char *const *option);
    int (*log_size)(void *program, size_t *bytes);
    int (*log)(void *program, char *text);
    int (*image_size)(void *program, size_t *bytes);
    int (*image)(void *program, char *image);
    int (*destroy)(void **program);
} trli_rtc;

/* Find the library: TRELLIS_NVRTC, the loader's, or that of the toolkit of this build. False, and why: there is none,
 * and nothing is to be closed. */
bool trli_rtc_open(trli_rtc *rtc, char why[TRLI_RTC_WHY_ROOM]);
void trli_rtc_close(trli_rtc *rtc);
/* Machine code of a text for a compute capability, as 90; trli_free gives it back. NULL, and why. Thread: any. */
void *trli_rtc_compile(const trli_rtc *rtc, trl_context *ctx, const char *text, int capability, size_t *bytes,
                       char why[TRLI_RTC_WHY_ROOM]);

#endif
