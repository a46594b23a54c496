/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mock_impl.h"

typedef enum unit { UNIT_NUMBER, UNIT_SECONDS, UNIT_BYTES } unit;

typedef struct prefix {
    const char *word;
    double factor;
} prefix;

static const prefix of_seconds[] = {{"", 1}, {"s", 1}, {"ms", 1e-3}, {"us", 1e-6}, {"ns", 1e-9}, {NULL, 0}};
static const prefix of_bytes[] = {{"", 1},
                                  {"k", 1e3},
                                  {"M", 1e6},
                                  {"G", 1e9},
                                  {"T", 1e12},
                                  {"Ki", 1024},
                                  {"Mi", 1024 * 1024},
                                  {"Gi", 1073741824},
                                  {"Ti", 1099511627776},
                                  {NULL, 0}};
static const prefix of_number[] = {{"", 1}, {NULL, 0}};

typedef struct row {
    const char *name;
    size_t offset;
    double value;
    double min, max;
    const prefix *prefixes;
    const char *allowed;
} row;

#define ROW_NUMBER 1e-6, 1e15, of_number, "a number from 1e-6 to 1e15, as in 0.5"
#define ROW_SECONDS 0, 1e3, of_seconds, "seconds from 0 to 1000, with s, ms, us or ns, as in 10us"
#define ROW_BYTES 0, 1e15, of_bytes, "bytes from 0 to 1e15, with k, M, G, T, Ki, Mi, Gi or Ti, as in 64M"

static const row rows[] = {
#define ROW(name, unit, value, doc) {#name, offsetof(trli_mock_settings, name), value, ROW_##unit},
    TRLI_MOCK_LIST(ROW)
#undef ROW
};
enum { ROWS = sizeof rows / sizeof *rows };

static const char *const faults[TRLI_MOCK_FAULTS] = {
#define FAULT(name, doc) #name,
    TRLI_MOCK_FAULT_LIST(FAULT)
#undef FAULT
};

#define KEY(name, unit, value, doc) #name ", "
#define FAULT_WORD(name, doc) #name " "
static const char keys[] = TRLI_MOCK_LIST(KEY) "clock and fail";
static const char fault_words[] = TRLI_MOCK_FAULT_LIST(FAULT_WORD);
#undef KEY
#undef FAULT_WORD

/* One `key=value` of the text. */
typedef struct setting {
    const char *text;
    int length, key; /* length of `text`, and of the key before '=' */
    char value[64];
} setting;

static trl_err refuse(trl_context *ctx, const setting *s, const char *allowed)
{
    return trl_fail(ctx, TRL_ERR_INPUT, NULL, "TRL_MOCK_DEVICES: '%.*s': %s", s->length, s->text, allowed);
}

static bool read_number(const char *text, const prefix *prefixes, double *value)
{
    char *end;
    if (!strchr("0123456789.", *text) || text[0] == 0) return false;
    *value = strtod(text, &end);
    for (const prefix *p = prefixes; p->word; ++p) {
        if (strcmp(end, p->word) != 0) continue;
        *value *= p->factor;
        return isfinite(*value);
    }
    return false;
}

static trl_err read_row(trl_context *ctx, const setting *s, const row *row, trli_mock_settings *settings)
{
    char allowed[160];
    double value;
    if (read_number(s->value, row->prefixes, &value) && value >= row->min && value <= row->max) {
        memcpy((char *)settings + row->offset, &value, sizeof value);
        return TRL_OK;
    }
    snprintf(allowed, sizeof allowed, "write %s", row->allowed);
    return refuse(ctx, s, allowed);
}

static trl_err read_clock(trl_context *ctx, const setting *s, trli_mock_settings *settings)
{
    settings->is_virtual = strcmp(s->value, "virtual") == 0;
    if (settings->is_virtual || strcmp(s->value, "real") == 0) return TRL_OK;
    return refuse(ctx, s, "write clock=real or clock=virtual");
}

static trl_err read_fail(trl_context *ctx, const setting *s, trli_mock_settings *settings)
{
    const size_t word = strcspn(s->value, "@~");
    const char sign = s->value[word];
    char allowed[160];
    double value = 0;
    int fault = 0;
    while (fault < TRLI_MOCK_FAULTS && (strlen(faults[fault]) != word || strncmp(faults[fault], s->value, word) != 0))
        ++fault;
    if (fault < TRLI_MOCK_FAULTS && sign != 0 && read_number(s->value + word + 1, of_number, &value)) {
        if (sign == '@' && value >= 1 && value <= 1e15 && value == floor(value)) {
            settings->fail[fault].at = (int64_t)value;
            return TRL_OK;
        }
        if (sign == '~' && value <= 1) {
            settings->fail[fault].chance = value;
            return TRL_OK;
        }
    }
    snprintf(
        allowed, sizeof allowed,
        "write fail=WHAT@N, the N-th from 1, or fail=WHAT~P, each with the chance P from 0 to 1, where WHAT is one "
        "of: %.*s",
        (int)sizeof fault_words - 2, fault_words);
    return refuse(ctx, s, allowed);
}

static trl_err read_setting(trl_context *ctx, const setting *s, trli_mock_settings *settings)
{
    char allowed[256];
    if (s->key < s->length) {
        for (int i = 0; i < ROWS; ++i)
            if (strlen(rows[i].name) == (size_t)s->key && strncmp(rows[i].name, s->text, (size_t)s->key) == 0)
                return read_row(ctx, s, &rows[i], settings);
        if (strncmp(s->text, "clock=", 6) == 0) return read_clock(ctx, s, settings);
        if (strncmp(s->text, "fail=", 5) == 0) return read_fail(ctx, s, settings);
    }
    snprintf(allowed, sizeof allowed, "write key=value, where the keys are %s, as in 2:speed=4,latency=10us,bytes=64M",
             keys);
    return refuse(ctx, s, allowed);
}

trl_err trli_mock_read(trl_context *ctx, const char *text, trli_mock_settings *settings)
{
    *settings = (trli_mock_settings){0};
    for (int i = 0; i < ROWS; ++i) memcpy((char *)settings + rows[i].offset, &rows[i].value, sizeof rows[i].value);
    if (*text == 0) return TRL_OK;
    for (const char *at = text;; ++at) {
        setting s = {.text = at, .length = (int)strcspn(at, ",")};
        s.key = (int)strcspn(at, "=,");
        if (s.key < s.length) snprintf(s.value, sizeof s.value, "%.*s", s.length - s.key - 1, at + s.key + 1);
        const trl_err err = read_setting(ctx, &s, settings);
        if (err != TRL_OK) return err;
        at += s.length;
        if (*at == 0) return TRL_OK;
    }
}

void trli_mock_describe(const trli_mock_settings *settings, char *text, size_t size)
{
    size_t used = (size_t)snprintf(text, size, "mock device");
    for (int i = 0; i < ROWS; ++i) {
        double value;
        memcpy(&value, (const char *)settings + rows[i].offset, sizeof value);
        if (used >= size || value == rows[i].value) continue;
        used += (size_t)snprintf(text + used, size - used, ", %s %.4g", rows[i].name, value);
    }
    if (settings->is_virtual && used < size) used += (size_t)snprintf(text + used, size - used, ", virtual clock");
    for (int f = 0; f < TRLI_MOCK_FAULTS; ++f) {
        if (settings->fail[f].at > 0 && used < size)
            used += (size_t)snprintf(text + used, size - used, ", fails at %s %lld", faults[f],
                                     (long long)settings->fail[f].at);
        if (settings->fail[f].chance > 0 && used < size)
            used += (size_t)snprintf(text + used, size - used, ", %s fails by chance", faults[f]);
    }
}
