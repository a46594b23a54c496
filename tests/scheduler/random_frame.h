/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Frames of random graphs, with those of the bodies of their calls. Included after random_graph.h. */
#ifndef RANDOM_FRAME_H
#define RANDOM_FRAME_H

static inline random_frame *new_random_frame(random_graph *g)
{
    random_frame *f = app_calloc(1, sizeof *f);
    f->graph = g;
    f->run = app_calloc((size_t)g->count, sizeof *f->run);
    f->body = app_calloc((size_t)g->own, sizeof(random_frame *));
    f->room = app_calloc((size_t)g->own, sizeof *f->room);
    for (int i = 0; i < g->own; ++i) {
        if (!g->nodes[i].body) continue;
        f->body[i] = new_random_frame(g->nodes[i].body);
        f->body[i]->around = f;
    }
    return f;
}

static inline void free_random_frame(random_frame *f)
{
    for (int i = 0; i < f->graph->own; ++i)
        if (f->body[i]) free_random_frame(f->body[i]);
    free(f->body);
    free(f->room);
    free(f->run);
    free(f);
}

#endif
