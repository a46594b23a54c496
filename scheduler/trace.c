/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Traces: their memory, and the file that trace viewers read. */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <sched.h>

#include "trace_impl.h"

static const char trace_memory[] = "trace";

static trl_err create_lane(trl_trace *trace, int64_t events)
{
    trl_err err;
    void *memory;
    trli_trace_lane *lane = &trace->lane[trace->lanes];
    *lane = (trli_trace_lane){.capacity = events};
    TRL_TRY(trl_memory_alloc(trace->ctx, (size_t)events * sizeof *lane->events, trace_memory, &memory));
    /* Touch the memory now: the system provides pages of a large block at the first write, which would show in the
     * trace. */
    lane->events = memset(memory, 0, (size_t)events * sizeof *lane->events);
    ++trace->lanes;
done:
    return err;
}

trl_err trl_trace_create(trl_context *ctx, int workers, int64_t events, trl_trace **result)
{
    trl_err err;
    trl_trace *trace = NULL;
    void *memory;
    *result = NULL;
    if (workers < 1 || workers == INT_MAX || events < 1 || events > INT64_MAX / (int64_t)sizeof(trli_trace_event)) {
        return trl_fail(ctx, TRL_ERR_USAGE, NULL, "a trace of %d workers with %" PRId64 " events each is refused",
                        workers, events);
    }
    TRL_TRY(trl_memory_alloc(ctx, sizeof *trace, trace_memory, &memory));
    trace = memory;
    *trace = (trl_trace){.ctx = ctx, .workers = workers, .origin_ns = trli_now_ns()};
    const size_t lanes = (size_t)workers + 1 + (size_t)TRLI_TRACE_STREAMS * TRL_DEVICES_MAX;
    TRL_TRY(trl_memory_alloc(ctx, lanes * sizeof *trace->lane, trace_memory, &memory));
    trace->lane = memory;
    trace->events = events;
    while (trace->lanes <= workers) TRL_TRY(create_lane(trace, events));
    *result = trace;
    trace = NULL;
done:
    trl_trace_destroy(&trace);
    return err;
}

static void release(trl_context *ctx, void *memory)
{
    trl_memory_free(ctx, &memory);
}

void trl_trace_destroy(trl_trace **result)
{
    trl_trace *trace = *result;
    *result = NULL;
    if (trace == NULL) return;
    trl_context *ctx = trace->ctx;
    for (int i = 0; i < trace->lanes; ++i) release(ctx, trace->lane[i].events);
    release(ctx, trace->lane);
    release(ctx, trace);
}

trl_err trli_trace_add_devices(trl_trace *trace, int devices)
{
    trl_err err = TRL_OK;
    for (; trace->devices < devices; ++trace->devices)
        for (int s = 0; s < TRLI_TRACE_STREAMS; ++s) TRL_TRY(create_lane(trace, trace->events));
done:
    return err;
}

void trli_trace_add_device(trl_trace *trace, int device, int stream, trli_trace_kind kind, const char *name,
                           int64_t begin_ns, int64_t end_ns)
{
    if (device >= trace->devices) return;
    while (atomic_exchange_explicit(&trace->adding, true, memory_order_acquire)) sched_yield();
    trli_trace_add(&trace->lane[trace->workers + 1 + TRLI_TRACE_STREAMS * device + stream], kind, name, 0, begin_ns,
                   end_ns);
    atomic_store_explicit(&trace->adding, false, memory_order_release);
}

/* If several threads end runs at once, which is rare, all but one wait. Acquire and release of the lane. */
void trli_trace_add_run(trl_trace *trace, const char *name, int64_t begin_ns, int64_t end_ns)
{
    while (atomic_exchange_explicit(&trace->adding, true, memory_order_acquire)) sched_yield();
    trli_trace_add(&trace->lane[trace->workers], TRLI_TRACE_RUN, name, 0, begin_ns, end_ns);
    atomic_store_explicit(&trace->adding, false, memory_order_release);
}

/* ---- JSON ---- */

/* Length of the UTF-8 sequence that text begins with; 0: it is not UTF-8 (overlong forms, surrogates and numbers
 * above the last code point included). */
static int sequence_length(const unsigned char *text)
{
    int length = text[0] < 0x80   ? 1
                 : text[0] < 0xc2 ? 0
                 : text[0] < 0xe0 ? 2
                 : text[0] < 0xf0 ? 3
                 : text[0] < 0xf5 ? 4
                                  : 0;
    for (int i = 1; i < length; ++i) {
        if ((text[i] & 0xc0) != 0x80) return 0;
    }
    bool bad = (text[0] == 0xe0 && text[1] < 0xa0) || (text[0] == 0xed && text[1] > 0x9f) ||
               (text[0] == 0xf0 && text[1] < 0x90) || (text[0] == 0xf4 && text[1] > 0x8f);
    return bad ? 0 : length;
}

/* The inside of a JSON string. Bytes that are not UTF-8, such as the end of a name that was cut, become the
 * replacement character. */
static void write_text(const char *text, FILE *out)
{
    for (const unsigned char *c = (const unsigned char *)text; *c;) {
        int length = sequence_length(c);
        if (length == 0)
            fputs("\\ufffd", out);
        else if (*c == '"' || *c == '\\')
            fprintf(out, "\\%c", *c);
        else if (*c < 0x20 || *c == 0x7f)
            fprintf(out, "\\u%04x", *c);
        else
            fwrite(c, 1, (size_t)length, out);
        c += length ? length : 1;
    }
}

/* Microseconds with three decimals, exact. */
static void write_us(const char *key, int64_t ns, FILE *out)
{
    const char *sign = ns < 0 ? "-" : "";
    uint64_t size = ns < 0 ? 0 - (uint64_t)ns : (uint64_t)ns;
    fprintf(out, ",\"%s\":%s%" PRIu64 ".%03" PRIu64, key, sign, size / 1000, size % 1000);
}

static void write_place(const trl_trace *trace, int worker, FILE *out)
{
    fprintf(out, ",\"pid\":%d,\"tid\":%d", trace->ctx->rank, worker);
}

static void write_name(const trl_trace *trace, int worker, const char *what, const char *name, int number, FILE *out)
{
    fprintf(out, "{\"ph\":\"M\",\"name\":\"%s\"", what);
    write_place(trace, worker, out);
    fprintf(out, ",\"args\":{\"name\":\"%s %d\"}}", name, number);
}

static void write_event(const trl_trace *trace, int worker, const trli_trace_event *event, FILE *out)
{
    static const struct {
        const char *category, *prefix;
    } table[] = {
#define TRACE_ROW(kind, category, prefix) {category, prefix},
        TRLI_TRACE_LIST(TRACE_ROW)
#undef TRACE_ROW
    };
    bool instant = event->kind == TRLI_TRACE_PARK;
    fprintf(out, ",\n{\"ph\":\"%c\",\"name\":\"%s", instant ? 'i' : 'X', table[event->kind].prefix);
    write_text(event->name, out);
    fprintf(out, "\",\"cat\":\"%s\"", table[event->kind].category);
    write_us("ts", event->begin_ns - trace->origin_ns, out);
    if (instant)
        fputs(",\"s\":\"t\"", out);
    else
        write_us("dur", event->end_ns > event->begin_ns ? event->end_ns - event->begin_ns : 0, out);
    write_place(trace, worker, out);
    if (event->kind == TRLI_TRACE_TASK) fprintf(out, ",\"args\":{\"type\":%d}", event->type);
    if (event->kind == TRLI_TRACE_POLL) fprintf(out, ",\"args\":{\"calls\":%d}", (int)event->calls);
    fputc('}', out);
}

/* Runs may overlap: each is a pair of events with its own number. */
static void write_run(const trl_trace *trace, int64_t number, FILE *out)
{
    const trli_trace_event *event = &trace->lane[trace->workers].events[number];
    for (int end = 0; end < 2; ++end) {
        fprintf(out, ",\n{\"ph\":\"%c\",\"name\":\"", end ? 'e' : 'b');
        write_text(event->name, out);
        fprintf(out, "\",\"cat\":\"run\",\"id2\":{\"local\":\"%" PRIx64 "\"}", (uint64_t)number);
        write_us("ts", (end ? event->end_ns : event->begin_ns) - trace->origin_ns, out);
        write_place(trace, 0, out);
        fputc('}', out);
    }
}

/* Lost events are reported at the place where they are missing, and as numbers for programs. */
static void write_dropped(const trl_trace *trace, int worker, FILE *out)
{
    const trli_trace_lane *lane = &trace->lane[worker];
    int64_t last_ns = lane->count > 0 ? lane->events[lane->count - 1].end_ns : trace->origin_ns;
    fputs(",\n{\"ph\":\"M\",\"name\":\"dropped_events\"", out);
    write_place(trace, worker, out);
    fprintf(out, ",\"args\":{\"kept\":%" PRId64 ",\"dropped\":%" PRId64 "}}", lane->count, lane->dropped);
    if (lane->dropped == 0) return;
    fprintf(out, ",\n{\"ph\":\"i\",\"name\":\"trace full: %" PRId64 " events dropped\",\"cat\":\"trace\",\"s\":\"t\"",
            lane->dropped);
    write_us("ts", last_ns - trace->origin_ns, out);
    write_place(trace, worker, out);
    fputc('}', out);
}

trl_err trl_trace_write(const trl_trace *trace, FILE *out)
{
    fputs("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n", out);
    write_name(trace, 0, "process_name", "rank", trace->ctx->rank, out);
    for (int w = 0; w < trace->workers; ++w) {
        fputs(",\n", out);
        write_name(trace, w, "thread_name", "worker", w, out);
        for (int64_t i = 0; i < trace->lane[w].count; ++i) write_event(trace, w, &trace->lane[w].events[i], out);
        write_dropped(trace, w, out);
    }
    for (int d = 0; d < TRLI_TRACE_STREAMS * trace->devices; ++d) {
        static const char *const streams[TRLI_TRACE_STREAMS] = {"calls of device", "copies to device",
                                                                "copies from device"};
        const int lane = trace->workers + 1 + d;
        fputs(",\n", out);
        write_name(trace, lane, "thread_name", streams[d % TRLI_TRACE_STREAMS], d / TRLI_TRACE_STREAMS, out);
        for (int64_t i = 0; i < trace->lane[lane].count; ++i)
            write_event(trace, lane, &trace->lane[lane].events[i], out);
        write_dropped(trace, lane, out);
    }
    for (int64_t i = 0; i < trace->lane[trace->workers].count; ++i) write_run(trace, i, out);
    write_dropped(trace, trace->workers, out);
    fputs("\n]}\n", out);
    if (fflush(out) == 0 && !ferror(out)) return TRL_OK;
    return trl_fail(trace->ctx, TRL_ERR_IO, NULL, "cannot write the trace of rank %d: %s", trace->ctx->rank,
                    strerror(errno));
}
