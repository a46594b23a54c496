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

/* Memory that other ranks can map, as long as there is room in it: they expect what there is room for. */
static trl_err open_allocate(void *data, size_t bytes, void **memory)
{
    const trl_field_manager *m = data;
    *memory = trli_open_memory_take(m->open, bytes);
    if (*memory) return TRL_OK;
    if (trli_open_memory_is_full(m->open, bytes)) return host_allocate(m->ctx, bytes, memory);
    return trli_no_memory(m->ctx, NULL, "for a field");
}

static void open_free(void *data, void *memory)
{
    const trl_field_manager *m = data;
    if (trli_open_memory_offset(m->open, memory) >= 0)
        trli_open_memory_give(m->open, memory);
    else
        host_free(m->ctx, memory);
}

static const trl_space_ops open_ops = {
    .name = "host", .allocate = open_allocate, .free = open_free, .copy_in = host_copy, .copy_out = host_copy};

trl_err trl_field_manager_create(trl_context *ctx, trl_field_manager **manager)
{
    return trli_field_manager_create_open(ctx, NULL, manager);
}

trl_err trli_field_manager_create_open(trl_context *ctx, trli_open_memory *open, trl_field_manager **manager)
{
    trl_err err = TRL_OK;
    int host;
    trl_field_manager *m = trli_new(ctx, 1, sizeof *m);
    *manager = NULL;
    if (!m) return trli_no_memory(ctx, NULL, "for a field manager");
    m->ctx = ctx;
    m->open = open;
    pthread_mutex_init(&m->table, NULL);
    m->nbuckets = 64;
    m->bucket = trli_new(ctx, m->nbuckets, sizeof(trl_block *));
    if (!m->bucket) TRL_TRY(trli_no_memory(ctx, NULL, "for a table of blocks"));
    TRL_TRY(trl_field_manager_add_space(m, open ? &open_ops : &host_ops, open ? (void *)m : ctx, &host));
    *manager = m;
    m = NULL;
done:
    trl_field_manager_destroy(&m);
    return err;
}

trl_err trl_field_manager_add_space(trl_field_manager *m, const trl_space_ops *ops, void *data, int *space)
{
    if (m->nblocks > 0)
        return trl_fail(m->ctx, TRL_ERR_USAGE, NULL, "the memory space '%s' comes after a block was registered",
                        ops->name ? ops->name : "?");
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

static void free_group(trli_block_group *group)
{
    trli_free(group->tag);
    trli_free(group->copy);
    trli_free(group);
}

static void free_block(trl_block *b)
{
    trli_block_group *group = b->group;
    for (int s = 0; s < b->manager->nspaces; ++s)
        if (b->copy[s].extent) trli_pool_give(&b->manager->pool[s], b->copy[s].extent);
    pthread_mutex_destroy(&b->lock);
    if (atomic_fetch_sub_explicit(&group->left, 1, memory_order_acq_rel) == 1) free_group(group);
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

/* FNV-1a of a tag, */
static uint64_t hash_of_tag(const char *tag)
{
    uint64_t hash = 14695981039346656037u;
    for (; *tag; ++tag) hash = (hash ^ (unsigned char)*tag) * 1099511628211u;
    return hash;
}

/* and of a patch behind it. */
static uint64_t hash_on(uint64_t tag, int patch)
{
    const uint64_t hash = (tag ^ (uint32_t)patch) * 1099511628211u;
    return hash ^ hash >> 32;
}

static bool is_named(const trl_block *b, uint64_t hash, const char *tag, int patch)
{
    return b->hash == hash && b->patch == patch && strcmp(b->tag, tag) == 0;
}

/* Where a block is, or would be, linked in. */
static trl_block **link_of(const trl_field_manager *m, const trl_block *b)
{
    trl_block **link = &m->bucket[b->hash & (m->nbuckets - 1)];
    while (*link && ((*link)->epoch != b->epoch || !is_named(*link, b->hash, b->tag, b->patch))) link = &(*link)->next;
    return link;
}

/* Room for so many blocks. Failing is harmless: chains grow longer. */
static void widen_table(trl_field_manager *m, size_t nblocks)
{
    trl_field_manager wide = {.nbuckets = m->nbuckets};
    while (wide.nbuckets < nblocks) wide.nbuckets *= 2;
    wide.bucket = wide.nbuckets > m->nbuckets ? trli_new(m->ctx, wide.nbuckets, sizeof(trl_block *)) : NULL;
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

/* The table's lock is held. */
static void leave_table(trl_field_manager *m, const trl_block *b)
{
    *link_of(m, b) = b->next;
    --m->nblocks;
}

/* Enter n blocks, or none: the number of the first whose tag is there already on its patch, or n. */
static int enter(trl_field_manager *m, int n, trl_block *block)
{
    int i;
    pthread_mutex_lock(&m->table);
    widen_table(m, m->nblocks + (size_t)n);
    for (i = 0; i < n; ++i) {
        trl_block **link = link_of(m, &block[i]);
        if (*link) break;
        *link = &block[i];
        ++m->nblocks;
    }
    for (int k = i - 1; k >= 0 && i < n; --k) leave_table(m, &block[k]);
    pthread_mutex_unlock(&m->table);
    return i;
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

static trli_block_group *new_group(trl_context *ctx, const char *tag, int n, int spaces)
{
    trli_block_group *group = trli_new(ctx, 1, sizeof *group + (size_t)n * sizeof *group->block);
    if (!group) return NULL;
    group->tag = trli_copy_text(ctx, tag);
    group->copy = trli_new(ctx, (size_t)n * (size_t)spaces, sizeof *group->copy);
    if (group->tag && group->copy) return group;
    free_group(group);
    return NULL;
}

static void fill_group(trl_field_manager *m, trli_block_group *group, const trl_block_desc *desc, int n,
                       const int *patch, const int64_t *count)
{
    const uint64_t tag = hash_of_tag(desc->tag);
    atomic_store_explicit(&group->left, n, memory_order_relaxed);
    for (int i = 0; i < n; ++i) {
        trl_block *b = &group->block[i];
        *b = (trl_block){.manager = m,
                         .group = group,
                         .hash = hash_on(tag, patch[i]),
                         .tag = group->tag,
                         .patch = patch[i],
                         .epoch = desc->epoch,
                         .type = desc->type,
                         .count = count[i],
                         .capacity = desc->capacity > count[i] ? desc->capacity : count[i],
                         .flags = desc->flags,
                         .locked = desc->flags & TRL_BLOCK_LOCKED,
                         .copy = group->copy + (ptrdiff_t)i * m->nspaces};
        pthread_mutex_init(&b->lock, NULL);
    }
}

trl_err trl_blocks_create(trl_field_manager *m, const trl_block_desc *desc, int n, const int *patch,
                          const int64_t *count, trl_block **block)
{
    trl_err err = TRL_OK;
    for (int i = 0; i < n; ++i) {
        trl_block_desc one = *desc;
        one.patch = patch[i];
        one.count = count[i];
        block[i] = NULL;
        TRL_TRY(check_desc(m->ctx, &one));
    }
    if (n == 0) return TRL_OK;
    trli_block_group *group = new_group(m->ctx, desc->tag, n, m->nspaces);
    if (!group) return trli_no_memory(m->ctx, NULL, "to register the block '%s'", desc->tag);
    fill_group(m, group, desc, n, patch, count);
    const int taken = enter(m, n, group->block);
    if (taken < n) err = trli_block_fail(&group->block[taken], TRL_ERR_USAGE, "is registered already");
    for (int i = 0; i < n; ++i)
        if (taken < n)
            free_block(&group->block[i]);
        else
            block[i] = &group->block[i];
done:
    return err;
}

trl_err trl_block_create(trl_field_manager *m, const trl_block_desc *desc, trl_block **block)
{
    return trl_blocks_create(m, desc, 1, &desc->patch, &desc->count, block);
}

void trl_block_destroy(trl_block **block)
{
    trl_block *b = *block;
    *block = NULL;
    if (!b) return;
    trl_field_manager *m = b->manager;
    pthread_mutex_lock(&m->table);
    leave_table(m, b);
    pthread_mutex_unlock(&m->table);
    free_block(b);
}

trl_err trl_field_manager_find(trl_field_manager *m, const char *tag, int patch, trl_block **block)
{
    const uint64_t hash = hash_on(hash_of_tag(tag), patch);
    *block = NULL;
    pthread_mutex_lock(&m->table);
    for (trl_block *b = m->bucket[hash & (m->nbuckets - 1)]; b; b = b->next)
        if (is_named(b, hash, tag, patch) && (!*block || b->epoch > (*block)->epoch)) *block = b;
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
