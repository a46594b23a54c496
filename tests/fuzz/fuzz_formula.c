/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Any bytes are a formula or a message, never a crash, a leak or a tree that its own text does not give again. */
#include <mpi.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <trl_formula.h>

#include "../expressions/formula_dump.h"

static trl_context *ctx;

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void finish(void)
{
    trl_context_destroy(&ctx);
    MPI_Finalize();
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    int provided;
    MPI_Init_thread(argc, argv, MPI_THREAD_SERIALIZED, &provided);
    const trl_context_options options = {.threads = 1};
    if (trl_context_create(MPI_COMM_WORLD, &options, &ctx) != TRL_OK) abort();
    atexit(finish);
    return 0;
}

static void require(bool holds)
{
    if (!holds) abort();
}

/* A failure says why, at a place inside the text; a success says nothing. */
static void check_messages(trl_err err, size_t size)
{
    const trl_diagnostic *list;
    char line[4096];
    int n = trl_context_diagnostics(ctx, &list);
    require(err == TRL_OK ? n == 0 : n == 1 && err == TRL_ERR_INPUT);
    for (int i = 0; i < n; ++i) {
        require(trl_diagnostic_format(&list[i], line, sizeof line) > 0);
        require(list[i].column >= 1 && (size_t)(list[i].column + list[i].length) <= size + 2);
    }
    trl_context_clear_diagnostics(ctx);
}

static trl_err parse(const char *chars, trl_formula **formula)
{
    trl_text text = {.chars = chars, .place = {.file = "fuzz", .line = 1, .column = 1, .source = chars}, .exact = true};
    trl_err err = trl_formula_parse(ctx, &text, formula);
    require((err == TRL_OK) == (*formula != NULL));
    check_messages(err, strlen(chars));
    return err;
}

static char *dump_formula(const trl_formula *formula)
{
    dump count = {.size = 0};
    dump_tree(&count, formula->root);
    dump d = {.buffer = malloc(count.used + 1), .size = count.used + 1};
    if (!d.buffer) abort();
    d.buffer[0] = 0;
    dump_tree(&d, formula->root);
    return d.buffer;
}

/* The dump has more parentheses than the text and may pass the limits; if it parses it is the same tree. */
static void check_dump(const trl_formula *formula)
{
    trl_formula *again;
    char *first = dump_formula(formula);
    trl_text text = {.chars = first};
    if (trl_formula_parse(ctx, &text, &again) == TRL_OK) {
        char *second = dump_formula(again);
        require(strcmp(first, second) == 0);
        free(second);
        trl_formula_destroy(&again);
    } else {
        const trl_diagnostic *list;
        require(trl_context_diagnostics(ctx, &list) == 1);
        require(strstr(list[0].text, "split the formula") != NULL);
        trl_context_clear_diagnostics(ctx);
    }
    free(first);
}

static trl_err ignore_name(void *data, const char *name, const trl_ast *node)
{
    (void)data;
    require(name != NULL && node->kind == TRL_AST_NAME);
    return TRL_OK;
}

static void check_values(const trl_formula *formula, size_t size)
{
    static const char *const name[] = {"n", "k", "phi1", "i"};
    static const double value[] = {3, 0.25, 1e300, 1};
    const trl_scope names = {.n = 4, .name = name, .value = value};
    double number;
    check_messages(trl_ast_number(ctx, &formula->text, formula->root, &names, &number), size);
    check_messages(trl_ast_visit_names(ctx, &formula->text, formula->root, &names, ignore_name, NULL), size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    trl_formula *formula;
    trl_memory_stats before, after;
    char *chars = malloc(size + 1);
    if (!chars) abort();
    memcpy(chars, data, size);
    chars[size] = 0;
    trl_memory_get_stats(ctx, &before);
    if (parse(chars, &formula) == TRL_OK) {
        check_dump(formula);
        check_values(formula, strlen(chars));
        trl_formula_destroy(&formula);
    }
    trl_memory_get_stats(ctx, &after);
    require(before.bytes == after.bytes);
    free(chars);
    return 0;
}
