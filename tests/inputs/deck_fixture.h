/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Reading decks in tests: a registry with a sample type, the deck read last, small decks as text. */
#ifndef DECK_FIXTURE_H
#define DECK_FIXTURE_H

#include <unistd.h>

#include <deck_impl.h>

#include "sample_types.h"

#define GOOD TRL_TEST_SOURCE_DIR "/inputs/good/"
#define HEAD "trellis: 1\ngrid: {cells: [8]}\n"
#define TAIL "equations: {T: {initial: 0, ddt: 0}}\ntime: {dt: 0.1, steps: 1}\n"

static trl_registry *registry;
static trli_deck *deck;
static const trl_problem *problem;
static const trli_deck_options *options;

static inline void open_registry(void)
{
    ck_ok(sample_registry(&registry));
}

static inline void close_all(void)
{
    trli_deck_destroy(&deck);
    trl_registry_destroy(&registry);
}

static inline trl_err read_request(const trli_deck_request *request)
{
    trli_deck_destroy(&deck);
    trl_err err = trli_deck_read(test_ctx, registry, request, &deck);
    problem = err == TRL_OK ? trli_deck_problem(deck) : NULL;
    options = err == TRL_OK ? trli_deck_options_of(deck) : NULL;
    return err;
}

static inline trl_err read_text(const char *text)
{
    return read_request(&(trli_deck_request){.path = "test.yaml", .text = text});
}

static inline trl_err read_with(const char *text, const char *setting)
{
    return read_request(&(trli_deck_request){.path = "test.yaml", .text = text, .nsets = 1, .set = &setting});
}

static inline trl_err read_file(const char *path)
{
    return read_request(&(trli_deck_request){.path = path});
}

/* Write a file beside the test; every rank waits for it. */
static inline void write_file(const char *name, const char *text, size_t length)
{
    if (trl_context_rank(test_ctx) == 0) {
        FILE *out = fopen(name, "wb");
        ck_assert_ptr_nonnull(out);
        ck_assert_int_eq(fwrite(text, 1, length, out), length);
        ck_assert_int_eq(fclose(out), 0);
    }
    MPI_Barrier(trl_context_comm(test_ctx));
}

static inline void remove_file(const char *name)
{
    MPI_Barrier(trl_context_comm(test_ctx));
    if (trl_context_rank(test_ctx) == 0) unlink(name);
}

#endif
