/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Devices that this machine does not have, from a table of machines. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "executor_impl.h"
#include "memory_impl.h"

typedef struct machine {
    const char *name, *doc;
    double bytes; /* bytes of memory */
    trli_figures figures;
} machine;

/* H100 and H200: the bandwidth that a seven-point stencil reached, launches and links are measured; memory and
 * double precision are published figures. A100: published bandwidth times 0.8, the fraction that H100 and H200
 * reach; published links times 0.85, the fraction that H100 reaches. */
static const machine machines[] = {
    {"H100",
     "H100 SXM, 80 GB",
     80e9,
     {.bandwidth = 2.83e12, .flops = 34e12, .launch = 2.5e-6, .host = {10e-6, 55e9}, .peer = {6.7e-6, 397e9}}},
    {"H200",
     "H200 SXM, 141 GB",
     141e9,
     {.bandwidth = 3.71e12, .flops = 34e12, .launch = 2.5e-6, .host = {10e-6, 55e9}, .peer = {6.7e-6, 397e9}}},
    {"A100",
     "A100 SXM, 40 GB",
     40e9,
     {.bandwidth = 1.24e12, .flops = 9.7e12, .launch = 2.5e-6, .host = {10e-6, 27e9}, .peer = {6.7e-6, 255e9}}},
    {"A100-80GB",
     "A100 SXM, 80 GB",
     80e9,
     {.bandwidth = 1.63e12, .flops = 9.7e12, .launch = 2.5e-6, .host = {10e-6, 27e9}, .peer = {6.7e-6, 255e9}}},
};
enum { MACHINES = sizeof machines / sizeof *machines };

static const machine *find_machine(const char *name)
{
    for (int i = 0; i < MACHINES; ++i)
        if (strcmp(machines[i].name, name) == 0) return &machines[i];
    return NULL;
}

/* Whether a driver's name contains the machine's word, up to a '-'. */
static bool is_about(const char *name, const machine *m)
{
    char word[32];
    snprintf(word, sizeof word, "%.*s", (int)strcspn(m->name, "-"), m->name);
    return strstr(name, word) != NULL;
}

trli_figures trli_figures_of(const char *name, double bytes)
{
    const machine *best = NULL;
    for (int i = 0; i < MACHINES; ++i)
        if (is_about(name, &machines[i]) && (!best || fabs(machines[i].bytes - bytes) < fabs(best->bytes - bytes)))
            best = &machines[i];
    return best ? best->figures : (trli_figures){0};
}

static void list_machines(size_t size, char *text)
{
    size_t n = 0;
    for (int i = 0; i < MACHINES && n < size; ++i)
        n += (size_t)snprintf(text + n, size - n, "%s%s", i ? ", " : "", machines[i].name);
}

/* "2xH100", or "H100" for one device. */
static trl_err read_model(trl_context *ctx, const char *text, int *n, const machine **found)
{
    char known[256];
    const size_t digits = strspn(text, "0123456789");
    const bool counted = digits > 0 && text[digits] == 'x';
    *n = !counted ? 1 : digits < 4 ? (int)strtol(text, NULL, 10) : TRL_DEVICES_MAX + 1;
    *found = find_machine(counted ? text + digits + 1 : text);
    list_machines(sizeof known, known);
    if (!*found)
        return trl_fail(ctx, TRL_ERR_INPUT, NULL,
                        "devices '%s' are not in the table of machines; write a number and one of %s, as in 2x%s", text,
                        known, machines[0].name);
    if (*n >= 1 && *n <= TRL_DEVICES_MAX) return TRL_OK;
    return trl_fail(ctx, TRL_ERR_INPUT, NULL, "devices '%s': there may be 1 to %d of them", text, TRL_DEVICES_MAX);
}

trl_err trl_devices_open_model(trl_context *ctx, const char *model, trl_devices **result)
{
    const machine *m;
    trl_devices *devices = NULL;
    char settings[64];
    int n;
    trl_err err;
    *result = NULL;
    TRL_TRY(read_model(ctx, model, &n, &m));
    devices = trli_new(ctx, 1, sizeof *devices);
    if (!devices) TRL_TRY(trli_no_memory(ctx, NULL, "for devices"));
    devices->ctx = ctx;
    snprintf(settings, sizeof settings, "clock=virtual,bytes=%.0f", m->bytes);
    for (int i = 0; i < n; ++i) {
        trl_device *device;
        TRL_TRY(trli_mock_open(ctx, i, settings, &device));
        snprintf(device->info.name, sizeof device->info.name, "%s", m->doc);
        device->figures = m->figures;
        device->figures.modelled = true;
        device->all = devices;
        devices->device[devices->n++] = device;
    }
    *result = devices;
    devices = NULL;
done:
    trl_devices_close(&devices);
    return err;
}
