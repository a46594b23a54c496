/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "emit_impl.h"
#include "memory_impl.h"
#include "rtc_impl.h"

enum { OPTIONS_MOST = 16 };

/* NVRTC leaves memory behind when it is unloaded: it stays. */
enum { OPEN_AND_KEEP = RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE };

static void *open_library(char why[TRLI_RTC_WHY_ROOM])
{
    const char *own = getenv("TRELLIS_NVRTC");
    /* A newer one may write machine code that the driver for this build's runtime does not know. */
    static const char *const names[] = {
#ifdef TRL_NVRTC
        TRL_NVRTC,
#endif
        "libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"};
    void *library = own && *own ? dlopen(own, OPEN_AND_KEEP) : NULL;
    if (own && *own) {
        if (!library) snprintf(why, TRLI_RTC_WHY_ROOM, "TRELLIS_NVRTC cannot be loaded: %s", dlerror());
        return library;
    }
    for (size_t i = 0; i < sizeof names / sizeof *names && !library; ++i) library = dlopen(names[i], OPEN_AND_KEEP);
    if (!library)
        snprintf(why, TRLI_RTC_WHY_ROOM,
                 "there is no NVRTC (libnvrtc.so.13 or .12); install it, or set TRELLIS_NVRTC to its path");
    return library;
}

bool trli_rtc_open(trli_rtc *rtc, char why[TRLI_RTC_WHY_ROOM])
{
    static const char *const names[] = {"nvrtcCreateProgram", "nvrtcCompileProgram", "nvrtcGetProgramLogSize",
                                        "nvrtcGetProgramLog", "nvrtcGetCUBINSize",   "nvrtcGetCUBIN",
                                        "nvrtcDestroyProgram"};
    enum { FUNCTIONS = sizeof names / sizeof *names };
    void *at[FUNCTIONS];
    int (*version)(int *major, int *minor);
    *rtc = (trli_rtc){.library = open_library(why)};
    if (!rtc->library) return false;
    bool all = true;
    for (int i = 0; i < FUNCTIONS; ++i) all &= (at[i] = dlsym(rtc->library, names[i])) != NULL;
    void *tells = dlsym(rtc->library, "nvrtcVersion");
    memcpy(&version, &tells, sizeof version);
    if (all && version && version(&rtc->version[0], &rtc->version[1]) == 0) {
        memcpy(&rtc->create, at, sizeof at);
        return true;
    }
    snprintf(why, TRLI_RTC_WHY_ROOM, "the NVRTC that was found lacks functions; install one of CUDA 12 or 13");
    trli_rtc_close(rtc);
    return false;
}

void trli_rtc_close(trli_rtc *rtc)
{
    if (rtc->library) dlclose(rtc->library);
    *rtc = (trli_rtc){.library = NULL};
}

/* The first error of a log with its place, on one line. */
static void note_log(const trli_rtc *rtc, trl_context *ctx, void *program, char why[TRLI_RTC_WHY_ROOM])
{
    size_t bytes = 0;
    char *log = rtc->log_size(program, &bytes) == 0 ? trli_new(ctx, bytes + 1, 1) : NULL;
    const char *error = log && rtc->log(program, log) == 0 ? strstr(log, "error") : NULL;
    while (error && error > log && error[-1] != '\n') --error;
    snprintf(why, TRLI_RTC_WHY_ROOM, "NVRTC refuses its text: %.*s", error ? (int)strcspn(error, "\n") : 13,
             error ? error : "without a log");
    trli_free(log);
}

void *trli_rtc_compile(const trli_rtc *rtc, trl_context *ctx, const char *text, int capability, size_t *bytes,
                       char why[TRLI_RTC_WHY_ROOM])
{
    char architecture[40];
    const char *option[OPTIONS_MOST] = {architecture};
    int noptions = 1;
    void *program = NULL, *image = NULL;
    *bytes = 0;
    why[0] = 0;
    snprintf(architecture, sizeof architecture, "--gpu-architecture=sm_%d", capability);
    for (int i = 0; trli_cuda_options[i]; ++i) option[noptions++] = trli_cuda_options[i];
    if (rtc->create(&program, text, "trl_kernel.cu", 0, NULL, NULL)) {
        snprintf(why, TRLI_RTC_WHY_ROOM, "NVRTC has no memory for its text");
        return NULL;
    }
    if (rtc->compile(program, noptions, option))
        note_log(rtc, ctx, program, why);
    else if (rtc->image_size(program, bytes) == 0 && *bytes > 0)
        image = trli_new(ctx, *bytes, 1);
    if (image && rtc->image(program, image)) {
        trli_free(image);
        image = NULL;
    }
    if (!image && !why[0])
        snprintf(why, TRLI_RTC_WHY_ROOM, "NVRTC gives no machine code, or there is no memory for it");
    (void)rtc->destroy(&program);
    return image;
}
