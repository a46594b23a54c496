/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* What ranks make for each other: n items, which all of a group need, and each of which one rank makes. The makers are
 * the ranks of the group's first node, which take turns, so that all cores of that node are at work and its cache is
 * enough for all. From its maker an item goes to the others of the group along a tree. */
#ifndef TRLI_GIFTS_IMPL_H
#define TRLI_GIFTS_IMPL_H

#include <trl_context.h>

typedef struct trli_gifts trli_gifts;

typedef enum trli_gift_kind {
    TRLI_GIFT_MADE,   /* the content is the item */
    TRLI_GIFT_FAILED, /* it is a text that says why there is none */
    TRLI_GIFT_WITHIN, /* it is in the content of another item of its maker, whose number (an int) this is */
    TRLI_GIFT_ENDED   /* its maker, or a rank on its way, ends before it is there */
} trli_gift_kind;

typedef struct trli_gift {
    trli_gift_kind kind;
    void *content; /* the receiver's, for trli_free */
    size_t bytes;
} trli_gift;

/* Share n items, in the order in which `digest` takes them in, with all ranks that have the same digest. *share is
 * NULL where there is nothing to share: this rank is alone with its items. Fails with MEMORY, MPI. Collective: yes. */
TRL_NODISCARD trl_err trli_gifts_create(trl_context *ctx, int n, const uint64_t digest[2], trli_gifts **share);
/* Whether this rank makes the item. */
bool trli_gifts_is_mine(const trli_gifts *share, int item);
/* Send an item that this rank made, once, to the others. Does not wait. */
void trli_gifts_give(trli_gifts *share, int item, trli_gift_kind kind, const void *content, size_t bytes);
/* Receive an item that another rank makes, and send it on; false if it has not come yet. Does not wait. Without memory
 * for it, or once messages cannot be relied on, the item has failed. */
bool trli_gifts_take(trli_gifts *share, int item, trli_gift *gift);
/* Learn which items were given before all ranks came here: *given[n]. If the ranks take these in order, taking them is
 * a matter of time. Directly behind an agreement. Collective: yes, of those that share. */
TRL_NODISCARD trl_err trli_gifts_announce(trli_gifts *share, bool *given);
/* Memory that messages still need lives on until the context ends, where all ranks wait for what was sent. */
void trli_gifts_destroy(trli_gifts **share);

#endif
