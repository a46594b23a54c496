/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include <math.h>

#include "context_impl.h"
#include "cvode_vector_impl.h"
#include "memory_impl.h"

typedef struct content {
    trli_vectors *all;
    void *values;
} content;

static content *content_of(N_Vector v)
{
    return v->content;
}

double *trli_vectors_values(N_Vector vector)
{
    return content_of(vector)->values;
}

static trli_vectors *all_of(N_Vector v)
{
    return content_of(v)->all;
}

/* ---- operations on each number ---- */

typedef enum operation {
    LINEAR_SUM, /* z = a x + b y */
    CONSTANT,   /* z = a */
    PRODUCT,    /* z = x y */
    QUOTIENT,   /* z = x/y */
    SCALE,      /* z = a x */
    MAGNITUDE,  /* z = |x| */
    INVERSE,    /* z = 1/x */
    SHIFT,      /* z = x + a */
    SUM,        /* of x y */
    SQUARES,    /* the sum of (x y)^2 */
    GREATEST,   /* of |x| */
    LEAST       /* of x: the greatest of -x */
} operation;

typedef struct job {
    trli_vectors *all;
    operation operation;
    double a, b;
    const double *x, *y;
    double *z;
} job;

enum { CHUNK = 8192, BLOCK = 256 };

static void combine(const job *w, int64_t begin, int64_t end)
{
    const double a = w->a, b = w->b, *x = w->x, *y = w->y;
    double *z = w->z;
    switch (w->operation) {
    case LINEAR_SUM:
        for (int64_t i = begin; i < end; ++i) z[i] = a * x[i] + b * y[i];
        break;
    case CONSTANT:
        for (int64_t i = begin; i < end; ++i) z[i] = a;
        break;
    case PRODUCT:
        for (int64_t i = begin; i < end; ++i) z[i] = x[i] * y[i];
        break;
    case QUOTIENT:
        for (int64_t i = begin; i < end; ++i) z[i] = x[i] / y[i];
        break;
    case SCALE:
        for (int64_t i = begin; i < end; ++i) z[i] = a * x[i];
        break;
    case MAGNITUDE:
        for (int64_t i = begin; i < end; ++i) z[i] = fabs(x[i]);
        break;
    case INVERSE:
        for (int64_t i = begin; i < end; ++i) z[i] = 1 / x[i];
        break;
    default:
        for (int64_t i = begin; i < end; ++i) z[i] = x[i] + a;
    }
}

static void add_up(const job *w, int64_t begin, int64_t end, trl_sum *sum)
{
    double term[BLOCK];
    for (int64_t first = begin; first < end; first += BLOCK) {
        const int64_t n = end - first < BLOCK ? end - first : BLOCK;
        const double *x = w->x + first, *y = w->y + first;
        if (w->operation == SUM)
            for (int64_t i = 0; i < n; ++i) term[i] = x[i] * y[i];
        else
            for (int64_t i = 0; i < n; ++i) term[i] = x[i] * y[i] * (x[i] * y[i]);
        trl_sum_add(sum, term, n);
    }
}

static void find_greatest(const job *w, int64_t begin, int64_t end, double *greatest)
{
    double most = *greatest;
    for (int64_t i = begin; i < end; ++i) {
        const double x = w->operation == GREATEST ? fabs(w->x[i]) : -w->x[i];
        most = x > most || isnan(x) ? isnan(x) ? INFINITY : x : most;
    }
    *greatest = most;
}

static trl_err run_chunk(void *data, int chunk, int chunks, int worker)
{
    const job *w = data;
    const int64_t begin = w->all->n * chunk / chunks, end = w->all->n * (chunk + 1) / chunks;
    if (w->operation < SUM)
        combine(w, begin, end);
    else if (w->operation < GREATEST)
        add_up(w, begin, end, &w->all->sum[worker]);
    else
        find_greatest(w, begin, end, &w->all->greatest[worker]);
    return TRL_OK;
}

static void run(job *w)
{
    const int64_t chunks = (w->all->n + CHUNK - 1) / CHUNK, most = 4 * trl_loop_workers(w->all->loop);
    const trl_err err = trl_loop_run(w->all->loop, (int)(chunks < most ? chunks : most), run_chunk, w);
    if (w->all->err == TRL_OK) w->all->err = err;
}

static double sum_of(job *w)
{
    const int workers = trl_loop_workers(w->all->loop);
    for (int i = 0; i < workers; ++i) trl_sum_clear(&w->all->sum[i]);
    run(w);
    for (int i = 1; i < workers; ++i) trl_sum_merge(&w->all->sum[0], &w->all->sum[i]);
    const trl_err err = trl_sum_allreduce(w->all->ctx, 1, w->all->sum);
    if (w->all->err == TRL_OK) w->all->err = err;
    return err == TRL_OK ? trl_sum_value(w->all->sum) : NAN;
}

static double greatest_of(job *w)
{
    const int workers = trl_loop_workers(w->all->loop);
    for (int i = 0; i < workers; ++i) w->all->greatest[i] = -INFINITY;
    run(w);
    double most = -INFINITY;
    for (int i = 0; i < workers; ++i) most = fmax(most, w->all->greatest[i]);
    const trl_err err = trli_allreduce(w->all->ctx, &most, 1, MPI_DOUBLE, MPI_MAX);
    if (w->all->err == TRL_OK) w->all->err = err;
    return err == TRL_OK ? most : NAN;
}

/* ---- the table ---- */

static void linear_sum(double a, N_Vector x, double b, N_Vector y, N_Vector z)
{
    run(&(job){all_of(z), LINEAR_SUM, a, b, trli_vectors_values(x), trli_vectors_values(y), trli_vectors_values(z)});
}

static void constant(double a, N_Vector z)
{
    run(&(job){.all = all_of(z), .operation = CONSTANT, .a = a, .z = trli_vectors_values(z)});
}

static void of_two(operation o, N_Vector x, N_Vector y, N_Vector z)
{
    run(&(job){all_of(z), o, 0, 0, trli_vectors_values(x), trli_vectors_values(y), trli_vectors_values(z)});
}

static void product(N_Vector x, N_Vector y, N_Vector z)
{
    of_two(PRODUCT, x, y, z);
}

static void quotient(N_Vector x, N_Vector y, N_Vector z)
{
    of_two(QUOTIENT, x, y, z);
}

static void of_one(operation o, double a, N_Vector x, N_Vector z)
{
    run(&(job){.all = all_of(z), .operation = o, .a = a, .x = trli_vectors_values(x), .z = trli_vectors_values(z)});
}

static void scale(double a, N_Vector x, N_Vector z)
{
    of_one(SCALE, a, x, z);
}

static void magnitude(N_Vector x, N_Vector z)
{
    of_one(MAGNITUDE, 0, x, z);
}

static void inverse(N_Vector x, N_Vector z)
{
    of_one(INVERSE, 0, x, z);
}

static void shift(N_Vector x, double a, N_Vector z)
{
    of_one(SHIFT, a, x, z);
}

static double dot(N_Vector x, N_Vector y)
{
    return sum_of(&(job){.all = all_of(x), .operation = SUM, .x = trli_vectors_values(x), .y = trli_vectors_values(y)});
}

static double weighted_norm(N_Vector x, N_Vector w)
{
    const double squares = sum_of(
        &(job){.all = all_of(x), .operation = SQUARES, .x = trli_vectors_values(x), .y = trli_vectors_values(w)});
    return sqrt(squares / all_of(x)->points);
}

static double greatest(N_Vector x)
{
    return greatest_of(&(job){.all = all_of(x), .operation = GREATEST, .x = trli_vectors_values(x)});
}

static double least(N_Vector x)
{
    return -greatest_of(&(job){.all = all_of(x), .operation = LEAST, .x = trli_vectors_values(x)});
}

static N_Vector_ID id_of(N_Vector v)
{
    (void)v;
    return SUNDIALS_NVEC_CUSTOM;
}

static sunindextype length_of(N_Vector v)
{
    return (sunindextype)all_of(v)->points;
}

static N_Vector clone_of(N_Vector v)
{
    return trli_vectors_new(all_of(v), v->sunctx);
}

static void destroy(N_Vector v)
{
    if (!v) return;
    content *c = v->content;
    if (c) trl_memory_free(c->all->ctx, &c->values);
    trli_free(c);
    N_VFreeEmpty(v);
}

N_Vector trli_vectors_new(trli_vectors *vectors, SUNContext sundials)
{
    N_Vector v = N_VNewEmpty(sundials);
    content *c = trli_new(vectors->ctx, 1, sizeof *c);
    if (!v || !c) goto fail;
    *c = (content){.all = vectors};
    v->content = c;
    if (trl_memory_alloc(vectors->ctx, sizeof(double) * (size_t)(vectors->n + 1), "a vector of CVODE", &c->values) !=
        TRL_OK)
        goto fail;
    v->ops->nvgetvectorid = id_of;
    v->ops->nvclone = clone_of;
    v->ops->nvdestroy = destroy;
    v->ops->nvgetlength = length_of;
    v->ops->nvlinearsum = linear_sum;
    v->ops->nvconst = constant;
    v->ops->nvprod = product;
    v->ops->nvdiv = quotient;
    v->ops->nvscale = scale;
    v->ops->nvabs = magnitude;
    v->ops->nvinv = inverse;
    v->ops->nvaddconst = shift;
    v->ops->nvdotprod = dot;
    v->ops->nvmaxnorm = greatest;
    v->ops->nvwrmsnorm = weighted_norm;
    v->ops->nvmin = least;
    return v;
fail:
    trli_free(c);
    if (v) N_VFreeEmpty(v);
    return NULL;
}

trl_err trli_vectors_create(const trli_cvode_request *request, trli_vectors *vectors)
{
    const size_t workers = (size_t)trl_loop_workers(request->loop);
    *vectors = (trli_vectors){.ctx = request->ctx, .loop = request->loop, .n = request->n, .points = request->points};
    vectors->sum = trli_new(request->ctx, workers, sizeof *vectors->sum);
    vectors->greatest = trli_new(request->ctx, workers, sizeof *vectors->greatest);
    return vectors->sum && vectors->greatest ? TRL_OK : trli_no_memory(request->ctx, NULL, "for vectors of CVODE");
}

void trli_vectors_destroy(trli_vectors *vectors)
{
    trli_free(vectors->sum);
    trli_free(vectors->greatest);
    *vectors = (trli_vectors){0};
}
