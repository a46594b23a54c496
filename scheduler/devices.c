/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "context_impl.h"
#include "device_impl.h"
#include "executor_impl.h"
#include "memory_impl.h"

enum { SETTINGS_ROOM = 512 };

/* The mock devices that TRL_MOCK_DEVICES asks for, with the settings of each. */
typedef struct mocks {
    int n;
    char settings[TRL_DEVICES_MAX][SETTINGS_ROOM];
} mocks;

/* Read "2:speed=4": a count of devices with these settings. */
static trl_err read_group(trl_context *ctx, const char *text, int length, mocks *mocks)
{
    const int number = (int)strspn(text, "0123456789");
    const char *settings = text + number + (text[number] == ':');
    const int room = length - (int)(settings - text);
    const long n = number > 0 && number < 4 ? strtol(text, NULL, 10) : 0;
    if (n < 1 || (number < length && text[number] != ':'))
        return trl_fail(
            ctx, TRL_ERR_INPUT, NULL,
            "TRL_MOCK_DEVICES: '%.*s' does not begin with a number of devices; write n or n:key=value,..., as "
            "in 2:speed=4,latency=10us",
            length, text);
    if (n > TRL_DEVICES_MAX - mocks->n)
        return trl_fail(ctx, TRL_ERR_INPUT, NULL, "TRL_MOCK_DEVICES: there are more than %d devices; ask for fewer",
                        TRL_DEVICES_MAX);
    if (room >= SETTINGS_ROOM)
        return trl_fail(ctx, TRL_ERR_INPUT, NULL, "TRL_MOCK_DEVICES: settings of %d characters; write fewer than %d",
                        room, SETTINGS_ROOM);
    for (int i = 0; i < n; ++i) snprintf(mocks->settings[mocks->n++], SETTINGS_ROOM, "%.*s", room, settings);
    return TRL_OK;
}

static trl_err find_mocks(trl_context *ctx, mocks *mocks)
{
    const char *text = getenv("TRL_MOCK_DEVICES");
    mocks->n = 0;
    if (!text || *text == 0 || strcmp(text, "0") == 0) return TRL_OK;
    for (;; ++text) {
        const int length = (int)strcspn(text, ";");
        const trl_err err = read_group(ctx, text, length, mocks);
        if (err != TRL_OK) return err;
        text += length;
        if (*text == 0) return TRL_OK;
    }
}

/* ---- which devices ---- */

/* Fail because no device exists: say why, and what to write instead. */
static trl_err refuse_none(trl_context *ctx, const char *which)
{
    const char *why = "this build has no CUDA";
    if (trli_device_backend_exists()) why = "CUDA finds no driver, or no GPU for this process; see nvidia-smi";
    return trl_fail(ctx, TRL_ERR_DEVICE, NULL,
                    "devices '%s': there is none: %s; write 'cpu', or 'auto' for those that there are, or set "
                    "TRL_MOCK_DEVICES=2 for two mock devices",
                    which, why);
}

/* Read "0,1". */
static trl_err read_indices(trl_context *ctx, const char *which, int n, int *count, int index[TRL_DEVICES_MAX])
{
    bool taken[TRL_DEVICES_MAX] = {false};
    *count = 0;
    for (const char *at = which;; ++at) {
        const size_t digits = strspn(at, "0123456789");
        const int i = digits > 0 && digits < 4 ? (int)strtol(at, NULL, 10) : -1;
        if (digits == 0 || (at[digits] != ',' && at[digits] != 0))
            return trl_fail(ctx, TRL_ERR_INPUT, NULL,
                            "devices '%s' are not known; write 'auto', 'cpu', 'gpu', or numbers from 0, as in '0,1'",
                            which);
        if (n == 0) return refuse_none(ctx, which);
        if (i < 0 || i >= n)
            return trl_fail(ctx, TRL_ERR_INPUT, NULL, "devices '%s': there is no device %.*s; the last one is %d",
                            which, (int)digits, at, n - 1);
        if (taken[i])
            return trl_fail(ctx, TRL_ERR_INPUT, NULL, "devices '%s': device %d stands there twice; name it once", which,
                            i);
        taken[i] = true;
        index[(*count)++] = i;
        at += digits;
        if (*at == 0) return TRL_OK;
    }
}

static trl_err choose(trl_context *ctx, const char *which, int n, int *count, int index[TRL_DEVICES_MAX])
{
    const bool gpu = strcmp(which, "gpu") == 0;
    if (!gpu && strcmp(which, "auto") != 0) return read_indices(ctx, which, n, count, index);
    if (gpu && n == 0) return refuse_none(ctx, which);
    for (int i = 0; i < n; ++i) index[i] = i;
    *count = n;
    return TRL_OK;
}

/* Ranks of a node share its GPUs out among themselves: some each, or, where they were asked for, one for several ranks,
 * whose kernels take turns on it: the cores alone are faster than that. */
static void deal(trl_context *ctx, bool asked, int *count, int index[TRL_DEVICES_MAX])
{
    const int ranks = ctx->topology.node_ranks, rank = ctx->topology.node_rank, n = *count;
    int first = n * rank / ranks, end = n * (rank + 1) / ranks;
    if (n == 0) return;
    if (ranks > n && !asked) {
        trl_warn(ctx, NULL,
                 "no GPU is used: %d ranks would share %d; start as many ranks as GPUs, or say 'run.devices: gpu'",
                 ranks, n);
        *count = 0;
        return;
    }
    if (end == first) end = first + 1;
    *count = end - first;
    memmove(index, index + first, (size_t)*count * sizeof *index);
}

/* ---- opened devices ---- */

/* Kernels are compiled for a single kind of GPU. */
static bool is_another_kind(const trl_devices *devices, const trl_device *device)
{
    const trl_device_info *first = devices->n > 0 ? &devices->device[0]->info : &device->info;
    return first->major != device->info.major || first->minor != device->info.minor;
}

/* asked: the user named this GPU, or GPUs; otherwise a GPU that does not answer is left out. */
static trl_err open_gpu(trl_devices *devices, int index, bool asked, trl_device **device)
{
    char why[TRLI_GPU_WHY_ROOM];
    const trl_err err = trli_gpu_open(devices->ctx, index, why, device);
    if (err == TRL_OK && is_another_kind(devices, *device)) {
        snprintf(why, sizeof why, "it is of another kind than the first (%d.%d, not %d.%d)", (*device)->info.major,
                 (*device)->info.minor, devices->device[0]->info.major, devices->device[0]->info.minor);
        (*device)->ops->close(*device);
        *device = NULL;
    } else if (err != TRL_ERR_DEVICE)
        return err;
    if (asked)
        return trl_fail(devices->ctx, TRL_ERR_DEVICE, NULL,
                        "GPU %d cannot be used: %s; see nvidia-smi, or name other devices", index, why);
    trl_warn(devices->ctx, NULL, "GPU %d is not used: %s", index, why);
    return TRL_OK;
}

trl_err trl_devices_open(trl_context *ctx, const char *which, trl_devices **result)
{
    mocks mocks = {0};
    trl_devices *devices = NULL;
    int count = 0, index[TRL_DEVICES_MAX];
    trl_err err = TRL_OK;
    *result = NULL;
    if (strcmp(which, "cpu") != 0) {
        TRL_TRY(find_mocks(ctx, &mocks));
        /* Mock devices and GPUs are not used together: no copy between the two exists. */
        const int gpus = mocks.n > 0 ? 0 : trli_device_backend_count();
        TRL_TRY(choose(ctx, which, mocks.n + (gpus < TRL_DEVICES_MAX ? gpus : TRL_DEVICES_MAX), &count, index));
        if (mocks.n == 0) deal(ctx, strcmp(which, "auto") != 0, &count, index); /* mock devices are each rank's own */
    }
    devices = trli_new(ctx, 1, sizeof *devices);
    if (!devices) TRL_TRY(trli_no_memory(ctx, NULL, "for devices"));
    devices->ctx = ctx;
    devices->required = strcmp(which, "auto") != 0;
    for (int i = 0; i < count; ++i) {
        trl_device *device;
        TRL_TRY(mocks.n > 0 ? trli_mock_open(ctx, index[i], mocks.settings[index[i]], &device)
                            : open_gpu(devices, index[i], strcmp(which, "auto") != 0, &device));
        if (!device) continue;
        device->all = devices;
        devices->device[devices->n++] = device;
        device->space = devices->n;
    }
    if (mocks.n == 0) trli_gpu_befriend(devices);
    *result = devices;
done:
    if (err != TRL_OK) trl_devices_close(&devices);
    return err;
}

void trl_devices_keep(trl_devices *d, int n)
{
    for (int i = n; i < d->n; ++i) d->device[i]->ops->finish(d->device[i]);
    for (int i = n; i < d->n; ++i)
        for (int e = 0; e < TRLI_RUNS_AHEAD; ++e)
            if (d->device[i]->end[e]) d->device[i]->ops->fence_destroy(d->device[i], d->device[i]->end[e]);
    for (int i = n; i < d->n; ++i)
        if (d->device[i]->join) d->device[i]->ops->fence_destroy(d->device[i], d->device[i]->join);
    for (int i = n; i < d->n; ++i) d->device[i]->ops->close(d->device[i]);
    if (n < d->n) d->n = n;
}

void trl_devices_close(trl_devices **devices)
{
    trl_devices *d = *devices;
    if (!d) return;
    trl_devices_keep(d, 0);
    trli_free(d);
    *devices = NULL;
}

int trl_devices_opened(const trl_devices *devices)
{
    return devices->n;
}

const trl_device_info *trl_devices_info(const trl_devices *devices, int index)
{
    return &devices->device[index]->info;
}
