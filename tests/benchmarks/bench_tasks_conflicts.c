/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench_tasks_impl.h"

/* So few resources that an order forced on the conflicts leaves workers idle, and so many that without it they need not
 * be. */
enum { TASKS = 20000, QUICK_TASKS = 500, ROOTS_PER_THREAD = 1, CHILDREN = 2, WINDOW = 1000 };

static const double mean_seconds = 2e-6;

/* A task with a body, and how often each resource was held: a count that only its holder changes. */
typedef struct piece {
    const trli_dag *dag;
    int64_t *held; /* [resources] */
    int64_t length;
    double value;
    int32_t task;
} piece;

static trl_err work(void *data, const trl_task_args *args, bool *done)
{
    piece *p = data;
    const trli_dag *dag = p->dag;
    int64_t before[2];
    (void)args, (void)done;
    for (int32_t l = dag->lock_first[p->task], i = 0; l < dag->lock_first[p->task + 1]; ++l, ++i)
        before[i] = p->held[dag->locks[l]];
    p->value = trli_busy(p->length, 0.5);
    for (int32_t l = dag->lock_first[p->task], i = 0; l < dag->lock_first[p->task + 1]; ++l, ++i)
        p->held[dag->locks[l]] = before[i] + 1; /* read before the work: a second holder would be lost */
    return TRL_OK;
}

static trl_err work_all(void *data)
{
    piece *pieces = data;
    const trl_task_args args = {.chunks = 1};
    trl_err err = TRL_OK;
    bool done = true;
    for (int32_t t = 0; t < pieces->dag->tasks && err == TRL_OK; ++t) err = work(&pieces[t], &args, &done);
    return err;
}

/* Each way, in each round and one before them, held every resource as often as tasks lock it. */
static trl_err check(const trli_tasks *tasks, const trli_dag *dag, const int64_t *held)
{
    int64_t runs = (int64_t)tasks->ways * (tasks->rounds + 1), found = 0;
    for (int32_t r = 0; r < dag->resources; ++r) found += held[r];
    if (found == runs * dag->lock_first[dag->tasks]) return TRL_OK;
    return trl_fail(tasks->bench->ctx, TRL_ERR_BUG, NULL, "%s: %lld locks were held alone instead of %lld", tasks->name,
                    (long long)found, (long long)runs * dag->lock_first[dag->tasks]);
}

/* Destroys the dag. */
static trl_err play(trli_tasks *tasks, const char *name, trli_dag *dag)
{
    trl_context *ctx = tasks->bench->ctx;
    trli_dag ordered = {0};
    uint64_t sequence = 3;
    piece *pieces = calloc((size_t)dag->tasks, sizeof *pieces);
    int64_t *held = NULL;
    trl_err err = TRL_OK;
    TRL_TRY(trli_dag_add_locks(ctx, ROOTS_PER_THREAD * tasks->threads, CHILDREN, dag));
    TRL_TRY(trli_dag_order_conflicts(ctx, dag, &ordered));
    held = calloc((size_t)dag->resources, sizeof *held);
    if (!pieces || !held) TRL_TRY(trl_fail(ctx, TRL_ERR_MEMORY, NULL, "no memory for the data of tasks"));
    int32_t longest = (int32_t)(2 * mean_seconds * trli_busy_rate(tasks->bench->quick)) + 1;
    for (int32_t t = 0; t < dag->tasks; ++t)
        pieces[t] = (piece){.dag = dag, .held = held, .length = trli_draw(&sequence, longest), .task = t};
    tasks->name = name;
    tasks->tasks = dag->tasks;
    trli_way *one = trli_tasks_add(tasks, "loop on one thread", 1);
    one->loop = work_all;
    one->data = pieces;
    trli_way *locks = trli_tasks_add(tasks, "conflicts", 1);
    TRL_TRY(trli_dag_build(ctx, dag, work, pieces, sizeof *pieces, &locks->graph));
    trli_way *order = trli_tasks_add(tasks, "conflicts in an order", 1);
    TRL_TRY(trli_dag_build(ctx, &ordered, work, pieces, sizeof *pieces, &order->graph));
    TRL_TRY(trli_tasks_measure(tasks));
    TRL_TRY(check(tasks, dag, held));
done:
    free(pieces);
    free(held);
    trli_dag_destroy(&ordered);
    trli_dag_destroy(dag);
    return err;
}

trl_err trli_tasks_conflicts(trli_tasks *tasks, trli_tasks_score *score)
{
    int32_t n = tasks->bench->quick ? QUICK_TASKS : TASKS;
    trli_dag dag = {0};
    trl_err err = TRL_OK;
    puts("tasks of 0 to 4 us that lock few resources");
    TRL_TRY(trli_dag_independent(tasks->bench->ctx, n, &dag));
    TRL_TRY(play(tasks, "conflicts only", &dag));
    double independent = trli_tasks_ratio(tasks, "conflicts", "conflicts in an order");
    trli_tasks_clear(tasks);
    TRL_TRY(trli_dag_random(tasks->bench->ctx, n, WINDOW, &dag));
    TRL_TRY(play(tasks, "random, with conflicts", &dag));
    double random = trli_tasks_ratio(tasks, "conflicts", "conflicts in an order");
    trli_tasks_clear(tasks);
    score->conflicts = independent > random ? independent : random;
done:
    trli_dag_destroy(&dag);
    return err;
}
