/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Any bytes are a deck or a message, never a crash or a leak, and the deck as used reads back to itself. What follows
 * a NUL is a setting of the command line. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <deck_impl.h>
#include <memory_impl.h>

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static trl_context *test_ctx;

#include "../inputs/sample_types.h"

static trl_registry *registry;

static void finish(void)
{
    trl_registry_destroy(&registry);
    trl_context_destroy(&test_ctx);
    MPI_Finalize();
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    int provided;
    MPI_Init_thread(argc, argv, MPI_THREAD_SERIALIZED, &provided);
    const trl_context_options options = {.threads = 1};
    if (trl_context_create(MPI_COMM_WORLD, &options, &test_ctx) != TRL_OK) abort();
    if (sample_registry(&registry) != TRL_OK) abort();
    atexit(finish);
    return 0;
}

static void require(bool holds)
{
    if (!holds) abort();
}

/* A failure says why, at places that can be shown. */
static void check_messages(trl_err err)
{
    static char line[1 << 16];
    const trl_diagnostic *list;
    int n = trl_context_diagnostics(test_ctx, &list);
    require(err == TRL_OK ? n == 0 : n >= 1 && err == TRL_ERR_INPUT);
    for (int i = 0; i < n; ++i) {
        require(trl_diagnostic_format(&list[i], line, sizeof line) > 0);
        require(!list[i].file || (list[i].line >= 1 && list[i].column >= 1));
    }
    trl_context_clear_diagnostics(test_ctx);
}

static char *write_deck(const trli_deck *deck)
{
    char *text;
    require(trli_deck_write(test_ctx, deck, &text) == TRL_OK);
    return text;
}

static void check_round_trip(const trli_deck *deck)
{
    trli_deck *again;
    char *text = write_deck(deck);
    trli_deck_request request = {.path = "used.yaml", .text = text};
    if (trli_deck_read(test_ctx, registry, &request, &again) != TRL_OK) abort();
    char *second = write_deck(again);
    require(strcmp(text, second) == 0);
    trli_free(second);
    trli_free(text);
    trli_deck_destroy(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    trli_deck *deck;
    trl_memory_stats before, after;
    char *text = malloc(size + 1);
    if (!text) abort();
    memcpy(text, data, size);
    text[size] = 0;
    const char *setting = text + strlen(text) + 1;
    bool set = setting < text + size;
    trli_deck_request request = {.path = "fuzz.yaml", .text = text, .nsets = set, .set = &setting};
    trl_memory_get_stats(test_ctx, &before);
    /* Files and libraries of this machine are no part of the input. */
    if (!strstr(text, "include") && !strstr(text, "plugins") && !(set && strstr(setting, "plugins"))) {
        trl_err err = trli_deck_read(test_ctx, registry, &request, &deck);
        check_messages(err);
        if (err == TRL_OK) check_round_trip(deck);
        trli_deck_destroy(&deck);
    }
    trl_memory_get_stats(test_ctx, &after);
    require(before.bytes == after.bytes);
    free(text);
    return 0;
}
