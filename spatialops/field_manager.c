/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The field manager: its spaces, and the table of blocks by tag and patch. */
#include <inttypes.h>
#include <string.h>

#include "field_manager_impl.h"

static trl_err host_allocate(void *data, size_t bytes, void **memory)
{
    *memory = trli_memory_try(data, bytes);
    return *memory ? TRL_OK : TRL_ERR_MEMORY;
}

static void host_free(void *data, void *memory)
{
    trl_memory_free(data, &memory);
}

static trl_err host_copy(void *data, void *to, const void *from, size_t bytes)
{
    (void)data;
    memcpy(to, from, bytes);
    return TRL_OK;
}

static const trl_space_ops host_ops = {
    .name = "host", .allocate = host_allocate, .free = host_free, .copy_in = host_copy, .copy_out = host_copy};

trl_err trl_field_manager_create(trl_context *ctx, trl_field_manager **manager)
{
    trl_err err = TRL_OK;
    int host;
    trl_field_manager *m = trli_new(ctx, 1, sizeof *m);
    *manager = NULL;
    if (!m) return trli_no_memory(ctx, NULL, "for a field manager");
    m->ctx = ctx;
    pthread_mutex_init(&m->table, NULL);
    m->nbuckets = 64;
    m->bucket = trli_new(ctx, m->nbuckets, sizeof(trl_block *));
    if (!m->bucket) TRL_TRY(trli_no_memory(ctx, NULL, "for a table of blocks"));
    TRL_TRY(trl_field_manager_add_space(m, &host_ops, ctx, &host));
    *manager = m;
    m = NULL;
done:
    trl_field_manager_destroy(&m);
    return err;
}

trl_err trl_field_manager_add_space(trl_field_manager *m, const trl_space_ops *ops, void *data, int *space)
{
    if (m->nspaces == TRL_SPACES_MAX)
        return trl_fail(m->ctx, TRL_ERR_USAGE, NULL, "a field manager has at most %d spaces", TRL_SPACES_MAX);
    if (!ops->name || !ops->allocate || !ops->free || !ops->copy_in || !ops->copy_out)
        return trl_fail(m->ctx, TRL_ERR_USAGE, NULL, "the memory space '%s' lacks %s", ops->name ? ops->name : "?",
                        !ops->name       ? "a name"
                        : !ops->allocate ? "the required operation allocate"
                        : !ops->free     ? "the required operation free"
                        : !ops->copy_in  ? "the required operation copy_in"
                                         : "the required operation copy_out");
    if (trli_pool_init(&m->pool[m->nspaces], m->ctx, ops, data) != TRL_OK)
        return trli_no_memory(m->ctx, NULL, "for the pool of '%s'", ops->name);
    *space = m->nspaces++;
    return TRL_OK;
}

static void free_block(trl_block *b)
{
    for (int s = 0; s < b->manager->nspaces; ++s)
        if (b->copy[s].extent) trli_pool_give(&b->manager->pool[s], b->copy[s].extent);
    pthread_mutex_destroy(&b->lock);
    trli_free(b->tag);
    trli_free(b);
}

void trl_field_manager_destroy(trl_field_manager **manager)
{
    trl_field_manager *m = *manager;
    *manager = NULL;
    if (!m) return;
    for (size_t i = 0; m->bucket && i < m->nbuckets; ++i)
        for (trl_block *next, *b = m->bucket[i]; b; b = next) {
            next = b->next;
            free_block(b);
        }
    for (int s = 0; s < m->nspaces; ++s) trli_pool_destroy(&m->pool[s]);
    trli_free(m->bucket);
    pthread_mutex_destroy(&m->table);
    trli_free(m);
}

/* FNV-1a. */
static uint64_t hash_of(const char *tag, int patch)
{
    uint64_t hash = 14695981039346656037u + (uint64_t)patch;
    for (; *tag; ++tag) hash = (hash ^ (unsigned char)*tag) * 1099511628211u;
    return hash ^ hash >> 32;
}

/* Where a block is, or would be, linked in. */
static trl_block **link_of(const trl_field_manager *m, uint64_t hash, const char *tag, int patch)
{
    trl_block **link = &m->bucket[hash & (m->nbuckets - 1)];
    while (*link && ((*link)->hash != hash || (*link)->patch != patch || strcmp((*link)->tag, tag) != 0))
        link = &(*link)->next;
    return link;
}

/* Failing is harmless: chains grow longer. */
static void widen_table(trl_field_manager *m)
{
    trl_field_manager wide = {.nbuckets = 2 * m->nbuckets};
    wide.bucket = trli_new(m->ctx, wide.nbuckets, sizeof(trl_block *));
    if (!wide.bucket) return;
    for (size_t i = 0; i < m->nbuckets; ++i)
        for (trl_block *next, *b = m->bucket[i]; b; b = next) {
            trl_block **head = &wide.bucket[b->hash & (wide.nbuckets - 1)];
            next = b->next;
            b->next = *head;
            *head = b;
        }
    trli_free(m->bucket);
    m->bucket = wide.bucket;
    m->nbuckets = wide.nbuckets;
}

/* Enter a block; false if its tag is there already on its patch. */
static bool enter(trl_field_manager *m, trl_block *b)
{
    pthread_mutex_lock(&m->table);
    if (m->nblocks >= m->nbuckets) widen_table(m);
    trl_block **link = link_of(m, b->hash, b->tag, b->patch);
    bool vacant = *link == NULL;
    if (vacant) {
        *link = b;
        ++m->nblocks;
    }
    pthread_mutex_unlock(&m->table);
    return vacant;
}

static trl_err check_desc(trl_context *ctx, const trl_block_desc *desc)
{
    int64_t capacity = desc->capacity > desc->count ? desc->capacity : desc->count;
    unsigned known = TRL_BLOCK_STATIC | TRL_BLOCK_PERSISTENT | TRL_BLOCK_LOCKED;
    const char *wrong = NULL;
    if (!desc->tag || !*desc->tag) return trl_fail(ctx, TRL_ERR_USAGE, NULL, "a block needs a tag");
    if (desc->patch < TRL_WHOLE_RANK) wrong = "a negative patch";
    if (desc->type < TRL_F64 || desc->type > TRL_I64) wrong = "an unknown type of values";
    if (desc->count < 0 || desc->capacity < 0) wrong = "a negative number of values";
    if (capacity > INT64_MAX / 16) wrong = "more values than any memory holds";
    if (desc->flags & ~known) wrong = "unknown flags";
    return wrong ? trl_fail(ctx, TRL_ERR_USAGE, NULL, "the block '%s' has %s", desc->tag, wrong) : TRL_OK;
}

trl_err trl_block_create(trl_field_manager *m, const trl_block_desc *desc, trl_block **block)
{
    trl_err err = TRL_OK;
    trl_block *b = NULL;
    *block = NULL;
    TRL_TRY(check_desc(m->ctx, desc));
    b = trli_new(m->ctx, 1, sizeof *b);
    char *tag = b ? trli_copy_text(m->ctx, desc->tag) : NULL;
    if (!tag) {
        trli_free(b);
        return trli_no_memory(m->ctx, NULL, "to register the block '%s'", desc->tag);
    }
    *b = (trl_block){.manager = m,
                     .hash = hash_of(tag, desc->patch),
                     .tag = tag,
                     .patch = desc->patch,
                     .type = desc->type,
                     .count = desc->count,
                     .capacity = desc->capacity > desc->count ? desc->capacity : desc->count,
                     .flags = desc->flags,
                     .locked = desc->flags & TRL_BLOCK_LOCKED};
    pthread_mutex_init(&b->lock, NULL);
    if (!enter(m, b)) {
        TRL_TRY(trli_block_fail(b, TRL_ERR_USAGE, "is registered already"));
    }
    *block = b;
    b = NULL;
done:
    if (b) free_block(b);
    return err;
}

void trl_block_destroy(trl_block **block)
{
    trl_block *b = *block;
    *block = NULL;
    if (!b) return;
    trl_field_manager *m = b->manager;
    pthread_mutex_lock(&m->table);
    *link_of(m, b->hash, b->tag, b->patch) = b->next;
    --m->nblocks;
    pthread_mutex_unlock(&m->table);
    free_block(b);
}

trl_err trl_field_manager_find(trl_field_manager *m, const char *tag, int patch, trl_block **block)
{
    pthread_mutex_lock(&m->table);
    *block = *link_of(m, hash_of(tag, patch), tag, patch);
    pthread_mutex_unlock(&m->table);
    if (*block) return TRL_OK;
    if (patch == TRL_WHOLE_RANK)
        return trl_fail(m->ctx, TRL_ERR_USAGE, NULL, "no block '%s' of the rank is registered", tag);
    return trl_fail(m->ctx, TRL_ERR_USAGE, NULL, "no block '%s' on patch %d is registered", tag, patch);
}

int trl_field_manager_spaces(const trl_field_manager *m)
{
    return m->nspaces;
}

void trl_field_manager_get_stats(const trl_field_manager *m, int space, trl_pool_stats *stats)
{
    const trli_pool *p = &m->pool[space];
    size_t held = atomic_load_explicit(&p->held, memory_order_relaxed);
    stats->name = p->ops->name;
    stats->in_use = atomic_load_explicit(&p->in_use, memory_order_relaxed);
    stats->lost = held > stats->in_use ? held - stats->in_use : 0;
    stats->cached = atomic_load_explicit(&p->cached, memory_order_relaxed);
    stats->peak = atomic_load_explicit(&p->peak, memory_order_relaxed);
    stats->allocations = atomic_load_explicit(&p->allocations, memory_order_relaxed);
    stats->reuses = atomic_load_explicit(&p->reuses, memory_order_relaxed);
}

void trl_field_manager_trim(trl_field_manager *m)
{
    for (int s = 0; s < m->nspaces; ++s) trli_pool_trim(&m->pool[s]);
}
