/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* oneTBB's flow graph: a node per task, run again by putting a message into those without predecessors. */
#include <memory>
#include <new>
#include <vector>

#include <tbb/flow_graph.h>
#include <tbb/global_control.h>
#include <tbb/task_arena.h>
#include <tbb/task_group.h>
#include <tbb/task_scheduler_observer.h>

#include "../bench_baseline.h"

namespace {

using node = tbb::flow::continue_node<tbb::flow::continue_msg>;

struct pinner : tbb::task_scheduler_observer {
    void (*pin)(void *, int);
    void *data;
    pinner(tbb::task_arena &arena, void (*pin_)(void *, int), void *data_)
        : tbb::task_scheduler_observer(arena), pin(pin_), data(data_)
    {
        observe(true);
    }
    ~pinner() override
    {
        observe(false);
    }
    void on_scheduler_entry(bool) override
    {
        pin(data, tbb::this_task_arena::current_thread_index());
    }
};

struct runtime {
    tbb::global_control control;
    tbb::task_arena arena;
    pinner observer;
    runtime(int threads, void (*pin)(void *, int), void *data)
        : control(tbb::global_control::max_allowed_parallelism, static_cast<std::size_t>(threads)), arena(threads),
          observer(arena, pin, data)
    {
    }
};

std::unique_ptr<runtime> current;

struct graph {
    tbb::flow::graph flow;
    std::vector<std::unique_ptr<node>> nodes;
    std::vector<node *> roots;
};

int start(int threads, void (*pin)(void *, int), void *data)
{
    try {
        current = std::make_unique<runtime>(threads, pin, data);
        return 0;
    } catch (...) {
        return 1;
    }
}

void stop()
{
    current.reset();
}

void *create(const trli_dag_view *view, trli_dag_work work, void *data)
{
    try {
        std::unique_ptr<graph> g;
        current->arena.execute(
            [&] { g = std::make_unique<graph>(); }); /* a flow graph belongs to the arena of its birth */
        for (int32_t t = 0; t < view->tasks; ++t) {
            g->nodes.push_back(
                std::make_unique<node>(g->flow, [=](const tbb::flow::continue_msg &) { work(data, t); }));
            for (int32_t d = view->pred_first[t]; d < view->pred_first[t + 1]; ++d)
                tbb::flow::make_edge(*g->nodes[view->predecessors[d]], *g->nodes[t]);
            if (view->pred_first[t] == view->pred_first[t + 1]) g->roots.push_back(g->nodes[t].get());
        }
        return g.release();
    } catch (...) {
        return nullptr;
    }
}

int run(void *data)
{
    auto *g = static_cast<graph *>(data);
    try {
        current->arena.execute([&] {
            for (node *root : g->roots) root->try_put(tbb::flow::continue_msg());
            g->flow.wait_for_all();
        });
        return 0;
    } catch (...) {
        return 1;
    }
}

void destroy(void *data)
{
    delete static_cast<graph *>(data);
}

void grow(tbb::task_group &group, int depth, int32_t number, trli_dag_work work, void *data)
{
    work(data, number);
    for (int32_t child = 2 * number + 1; depth > 1 && child <= 2 * number + 2; ++child)
        group.run([=, &group] { grow(group, depth - 1, child, work, data); });
}

int tree(int depth, trli_dag_work work, void *data)
{
    try {
        current->arena.execute([&] {
            tbb::task_group group;
            grow(group, depth, 0, work, data);
            group.wait();
        });
        return 0;
    } catch (...) {
        return 1;
    }
}

} // namespace

extern "C" const trli_baseline *trli_baseline_export(void)
{
    static const trli_baseline tbb_tasks = {"oneTBB", 1, start, stop, create, run, destroy, tree};
    return &tbb_tasks;
}
