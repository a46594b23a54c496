/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Loop fission for GPUs. Each part is a launch of its own. A thread has all values of a point in registers: with fewer
 * values, more threads have registers, and their waits for memory overlap; and the time to compile a function grows
 * faster than its length. But an input of two parts is read twice, as a value that both need is computed twice, and
 * launches of few points take longer than what they do. So parts are small where that costs little, else as large as
 * they may be; they are of about one size, and those results are together that read the same. The limits are of a
 * nominal machine, as those for CPUs are. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cost_impl.h"
#include "memory_impl.h"
#include "parting_impl.h"

enum {
#ifdef TRL_SMALL_SIZES /* builds for testing: small problems are divided too */
    SAMPLES_MOST = 100,
    ARRAYS_MOST = 8,
    SAMPLES_WANTED = 50,
    POINTS_LEAST = 300, /* of a patch, for parts of the size that is wanted */
#else
    SAMPLES_MOST = 1100, /* values of a part, at all offsets at which they are needed */
    ARRAYS_MOST = 64,    /* that it reads or writes */
    SAMPLES_WANTED = 250,
    POINTS_LEAST = 1 << 17, /* of a patch, for parts of the size that is wanted */
#endif
    WORD = 64
};

/* How large a part of some results is. */
typedef struct size {
    int samples, arrays;
} size;

typedef struct packing {
    trli_parting *d;
    int words;      /* of a set of the step's inputs */
    uint64_t *read; /* [results][words] the inputs that each reads */
    size *alone;    /* by result: of a part that has only this one */
    bool *taken;    /* by result: it is in a part */
    uint64_t *set;  /* [words] inputs of the part at hand */
    int *root;      /* of the part at hand, in the order in which they came */
    trli_ir_value *value;
    int n, left; /* results of the part at hand; of none yet */
    size sum;    /* of all parts */
} packing;

static trl_err no_memory(const packing *p)
{
    return trli_no_memory(p->d->ir->ctx, NULL, "for the parts of kernel '%s'", p->d->step->label);
}

/* The model's walk is then that of the values. */
static trl_err measure(const trli_parting *d, int n, const trli_ir_value *value, size *found)
{
    static const trli_balance nominal = {0};
    trli_work work;
    const trl_err err = trli_work_of(d->program->model, &nominal, n, value, TRLI_NO_VALUE, NULL, &work);
    *found = (size){work.samples, work.inputs + n};
    return err;
}

static bool fits(size s, int most)
{
    return s.samples <= most && s.arrays <= ARRAYS_MOST;
}

static trl_err measure_results(packing *p)
{
    const trli_parting *d = p->d;
    trl_err err = TRL_OK;
    for (int r = 0; r < d->step->nout; ++r) {
        TRL_TRY(measure(d, 1, &d->step->value[r], &p->alone[r]));
        for (int32_t i = 0; i < d->walk->count; ++i) {
            const trli_node *n = trli_ir_node(d->ir, d->walk->list[i]);
            if (n->op != TRLI_OP_FIELD) continue;
            const int input = d->input_of[n->index];
            p->read[r * p->words + input / WORD] |= (uint64_t)1 << input % WORD;
        }
    }
done:
    return err;
}

/* Of the results that are left, the first of those that read the fewest inputs which the part does not; -1: none is. */
static int find_next(const packing *p)
{
    int found = -1, fewest = 0;
    for (int r = 0; r < p->d->step->nout; ++r) {
        int more = 0;
        if (p->taken[r]) continue;
        for (int w = 0; w < p->words; ++w) more += __builtin_popcountll(p->read[r * p->words + w] & ~p->set[w]);
        if (found >= 0 && more >= fewest) continue;
        found = r;
        fewest = more;
    }
    return found;
}

static void take(packing *p, int r)
{
    p->taken[r] = true;
    --p->left;
    p->root[p->n++] = r;
    for (int w = 0; w < p->words; ++w) p->set[w] |= p->read[r * p->words + w];
}

static int ascending(const void *a, const void *b)
{
    const int x = *(const int *)a, y = *(const int *)b;
    return (x > y) - (x < y);
}

/* One part, of samples up to `most` if it has more than one result. */
static trl_err pack_part(packing *p, int most)
{
    size has = {0, 0};
    trl_err err = TRL_OK;
    memset(p->set, 0, (size_t)p->words * sizeof *p->set);
    p->n = 0;
    for (int r = find_next(p); r >= 0; r = find_next(p)) {
        size with;
        p->value[p->n] = p->d->step->value[r];
        TRL_TRY(measure(p->d, p->n + 1, p->value, &with));
        if (p->n > 0 && !fits(with, most)) break;
        has = with;
        take(p, r);
    }
    p->sum.samples += has.samples;
    p->sum.arrays += has.arrays;
    qsort(p->root, (size_t)p->n, sizeof *p->root, ascending);
done:
    return err;
}

/* Samples of a part, so that as few as are needed are of one size; all: of one part. */
static int even_size(const packing *p, size all, int limit)
{
    const int by_samples = (all.samples + limit - 1) / limit;
    const int by_arrays = (all.arrays + ARRAYS_MOST - 1) / ARRAYS_MOST;
    const int n = by_samples > by_arrays ? by_samples : by_arrays;
    int largest = 0;
    for (int r = 0; r < p->d->step->nout; ++r)
        if (largest < p->alone[r].samples) largest = p->alone[r].samples;
    const int most = (all.samples + n - 1) / n + largest - 1;
    return most < limit ? most : limit;
}

/* Pack all results; add: keep the parts, else only their sum is found. */
static trl_err pack_all(packing *p, size all, int limit, bool add)
{
    const int most = even_size(p, all, limit);
    trl_err err = TRL_OK;
    p->left = p->d->step->nout;
    p->sum = (size){0, 0};
    memset(p->taken, 0, (size_t)p->left * sizeof *p->taken);
    while (p->left > 0) {
        TRL_TRY(pack_part(p, most));
        if (add) TRL_TRY(trli_parting_add(p->d, p->n, p->root));
    }
    if (add) err = trli_parting_end(p->d);
done:
    return err;
}

static bool has_many_points(const trli_parting *d)
{
    const trl_layout *layout = d->program->model->layout;
    for (int i = 0; i < layout->nlocal; ++i) {
        const trl_lidx *n = layout->patch[i].cells;
        if ((long long)n[0] * n[1] * n[2] >= POINTS_LEAST) return true;
    }
    return false;
}

/* Whether a layer that a kernel may compute itself reads a scalar that the kernel does not, as the time. */
static bool layers_read_more(const trli_parting *d)
{
    const trli_reads *of = &d->plan->reads;
    for (int k = 0; k < d->plan->nslabs; ++k) {
        const trli_reads *reads = &d->plan->slab[k].reads;
        for (int i = 0; i < reads->nscalars && d->plan->slab[k].of_row; ++i) {
            int at = 0;
            while (at < of->nscalars && of->scalar[at] != reads->scalar[i]) ++at;
            if (at == of->nscalars) return true;
        }
    }
    return false;
}

static trl_err add_all(trli_parting *d)
{
    trl_context *ctx = d->ir->ctx;
    int *root;
    trl_err err;
    if (!layers_read_more(d)) return trli_parting_add_whole(d);
    root = trli_new(ctx, (size_t)d->step->nout, sizeof *root);
    if (!root) return trli_no_memory(ctx, NULL, "for the parts of kernel '%s'", d->step->label);
    for (int r = 0; r < d->step->nout; ++r) root[r] = r;
    err = trli_parting_add(d, d->step->nout, root);
    trli_free(root);
    return err;
}

static bool costs_little(size apart, size whole)
{
    return 10LL * apart.samples <= 11LL * whole.samples && 3LL * apart.arrays <= 4LL * whole.arrays;
}

static trl_err pack(trli_parting *d, size all)
{
    const size_t nout = (size_t)d->step->nout;
    trl_context *ctx = d->ir->ctx;
    packing p = {.d = d,
                 .words = d->plan->ninputs / WORD + 1,
                 .alone = trli_new(ctx, nout, sizeof *p.alone),
                 .taken = trli_new(ctx, nout, sizeof *p.taken),
                 .root = trli_new(ctx, nout, sizeof *p.root),
                 .value = trli_new(ctx, nout, sizeof *p.value)};
    int limit = SAMPLES_MOST;
    trl_err err = TRL_OK;
    p.read = trli_new(ctx, nout * (size_t)p.words, sizeof *p.read);
    p.set = trli_new(ctx, (size_t)p.words, sizeof *p.set);
    if (!p.alone || !p.taken || !p.root || !p.value || !p.read || !p.set) TRL_TRY(no_memory(&p));
    TRL_TRY(measure_results(&p));
    if (has_many_points(d)) {
        TRL_TRY(pack_all(&p, all, SAMPLES_WANTED, false));
        if (costs_little(p.sum, all)) limit = SAMPLES_WANTED;
    }
    err = fits(all, limit) ? add_all(d) : pack_all(&p, all, limit, true);
done:
    trli_free(p.alone);
    trli_free(p.taken);
    trli_free(p.root);
    trli_free(p.value);
    trli_free(p.read);
    trli_free(p.set);
    return err;
}

static trl_err part_step(trli_parting *d)
{
    const trli_step *s = d->step;
    const bool groups = !(d->program->model->settings.disabled_passes & TRL_PASS_GROUPS);
    const int enough = SAMPLES_WANTED < SAMPLES_MOST ? SAMPLES_WANTED : SAMPLES_MOST;
    size all;
    trl_err err = TRL_OK;
    TRL_TRY(measure(d, s->nout, s->value, &all));
    err = !groups || s->nout == 1 || fits(all, enough) ? add_all(d) : pack(d, all);
done:
    return err;
}

trl_err trli_program_part_for_gpus(trli_program *program)
{
    return trli_parting_run(program, part_step, &program->gpu_parts);
}
