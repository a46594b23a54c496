/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Formulas and their memory. */
#include <string.h>

#include "formula_impl.h"

/* Memory comes in blocks, newest first in the list. The oldest also holds this struct and the formula. */
typedef struct memory_block {
    struct memory_block *older;
    size_t used, size; /* bytes after the header */
} memory_block;

struct trl_formula_memory {
    trl_context *ctx;
    memory_block *newest;
};

enum { LARGEST_BLOCK = 1 << 18 };

static size_t round_up(size_t bytes)
{
    return (bytes + 7) & ~(size_t)7;
}

static trl_err new_block(trl_context *ctx, size_t size, memory_block *older, memory_block **block)
{
    void *bytes;
    trl_err err = trl_memory_alloc(ctx, sizeof(memory_block) + size, "a formula", &bytes);
    if (err != TRL_OK) return err;
    *block = bytes;
    **block = (memory_block){.older = older, .used = 0, .size = size};
    return TRL_OK;
}

static void *take(memory_block *block, size_t bytes)
{
    char *data = (char *)(block + 1) + block->used;
    block->used += round_up(bytes);
    return data;
}

trl_err trli_formula_alloc(struct trl_formula_memory *memory, size_t bytes, void **result)
{
    trl_err err = TRL_OK;
    memory_block *block = memory->newest;
    if (block->used + round_up(bytes) > block->size) {
        size_t size = block->size > round_up(bytes) ? block->size : round_up(bytes);
        TRL_TRY(new_block(memory->ctx, size, block, &memory->newest));
    }
    *result = take(memory->newest, bytes);
done:
    return err;
}

trl_err trli_formula_create(trl_context *ctx, const trl_text *text, size_t length, trl_formula **formula)
{
    trl_err err = TRL_OK;
    memory_block *block;
    size_t own = round_up(sizeof(struct trl_formula_memory)) + round_up(sizeof(trl_formula)) + round_up(length + 1);
    size_t tree = 160 + 46 * length; /* enough for most; no tree needs much more than twice this */
    TRL_TRY(new_block(ctx, own + (tree < LARGEST_BLOCK ? tree : LARGEST_BLOCK), NULL, &block));
    struct trl_formula_memory *memory = take(block, sizeof *memory);
    *memory = (struct trl_formula_memory){.ctx = ctx, .newest = block};
    trl_formula *made = take(block, sizeof *made);
    *made = (trl_formula){.text = *text, .memory = memory};
    made->text.chars = memcpy(take(block, length + 1), text->chars, length + 1);
    *formula = made;
done:
    return err;
}

void trl_formula_destroy(trl_formula **formula)
{
    if (!*formula) return;
    trl_context *ctx = (*formula)->memory->ctx;
    memory_block *block = (*formula)->memory->newest;
    *formula = NULL;
    while (block) {
        void *bytes = block;
        block = block->older;
        trl_memory_free(ctx, &bytes);
    }
}
