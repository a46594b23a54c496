/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Before transform_passes_body.h in the text of kernels: its passes are done by a block of threads, which has TRL_LANES
 * lines that lie beside one another, TRL_WORKERS threads for each, and their values in shared memory, TRLI_LANES
 * doubles from one to the next of the same line. */
#define VECTOR double
#define OF(name) trl_line_##name
#define INLINE TRL_BODY
#define PASS TRL_BODY
#define TRL_LANE ((int)threadIdx.x % TRL_LANES)
#define TRL_WORKER ((int)threadIdx.x / TRL_LANES)
#define EACH_LANE if (const int l = TRL_LANE; true)
#define EACH(i, begin, condition) for (int i = (begin) + TRL_WORKER; condition; i += TRL_WORKERS)
#define EACH_PAIR(k, begin, end, c, n)                                                   \
    for (int k##c = (begin) * (n) + TRL_WORKER; k##c < (end) * (n); k##c += TRL_WORKERS) \
        if (const int k = k##c / (int)(n), c = k##c - k * (int)(n); true)
#define ONCE if (TRL_WORKER == 0)
#define EACH_COMPLEX(X) X(any, p->radix)
#define EACH_REAL(X) X(any, p->radix)
