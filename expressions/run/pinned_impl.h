/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Memory of the host that is kept in place for GPUs: a set of addresses. */
#ifndef TRLI_PINNED_IMPL_H
#define TRLI_PINNED_IMPL_H

#include <stdbool.h>
#include <stddef.h>

#include <trl_context.h>

/* Open addressing with linear probing (Knuth, TAOCP 3, 6.4). Zeroed: empty. */
typedef struct trli_pinned {
    void **at;      /* [size] NULL: free */
    size_t n, size; /* size: 0, or a power of two above n */
} trli_pinned;

bool trli_pinned_has(const trli_pinned *set, const void *memory);
/* memory: not in it. Fails with MEMORY. */
TRL_NODISCARD trl_err trli_pinned_add(trl_context *ctx, trli_pinned *set, void *memory);
/* Whether it was in it. */
bool trli_pinned_remove(trli_pinned *set, const void *memory);
void trli_pinned_free(trli_pinned *set);

#endif
