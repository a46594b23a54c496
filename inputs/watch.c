/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Whether solutions stay plausible. They are looked at after a few steps only, each half as far again as the one
 * before, so that a long run costs no more for it; and after the same steps on all ranks, so that all find the same. */
#include "run_impl.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "memory_impl.h"

enum { LINES_MOST = 12, WARNINGS_MOST = 5 };

static const double implausible = 1e6,
                    begun = 10; /* times what a steady source would have made of the initial values */

struct trli_watch {
    trl_gidx first, next, last; /* steps: of the start; to look at; looked at */
    double start, then, now;    /* times: of the start; of the first look with news; of the last look */
    int n;
    double *extremes; /* [n][2] of the last look */
    struct watched {
        double initial;        /* largest magnitude at the start */
        double rise, rise_at;  /* what it rose by until it was first seen to, and after what time */
        double largest;        /* magnitude of the last look, over what is explained */
        int decade;            /* of the magnitude shown last */
        trl_gidx before, from; /* it began to grow between these steps; from 0: it has not */
    } * of;
};

static double magnitude(const double extreme[2])
{
    return fmax(fabs(extreme[0]), fabs(extreme[1]));
}

static int decade_of(double value)
{
    return value > 0 && isfinite(value) ? (int)floor(log10(value)) : value > 0 ? 999 : -999;
}

/* What a steady source, as far as the first look could see one, or one that grows with the cube of time where all was
 * zero, explains. */
static double explained(const struct watched *w, double time)
{
    const double ratio = w->rise_at > 0 ? time / w->rise_at : 0;
    return w->initial > 0 ? w->initial + w->rise * ratio : w->rise * ratio * ratio * ratio;
}

static void note(struct watched *w, trl_gidx step, trl_gidx last, double time, double now)
{
    if (w->rise_at == 0) {
        /* Nothing from nothing is no news yet. */
        if (w->initial == 0 && now == 0) return;
        w->rise = now > w->initial ? now - w->initial : 0;
        w->rise_at = time;
    }
    const double usual = explained(w, time);
    w->largest = usual > 0 ? now / usual : 0;
    if (w->largest <= begun) {
        w->from = 0;
    } else if (w->from == 0) {
        w->before = last;
        w->from = step;
    }
}

trl_err trli_watch_check(trli_session *run)
{
    trli_watch *w = run->watch;
    const trl_gidx step = trl_simulation_step_number(run->sim);
    const double time = trl_simulation_time(run->sim) - w->start;
    trl_err err = TRL_OK;
    if (step < w->next || step == w->last) return TRL_OK;
    TRL_TRY(trl_simulation_extremes(run->sim, w->extremes));
    for (int v = 0; v < w->n; ++v) note(&w->of[v], step, w->last, time, magnitude(&w->extremes[2 * v]));
    w->last = step;
    w->next = step + 1 + (step - w->first) / 2;
done:
    return err;
}

bool trli_watch_due(const trli_watch *watch, trl_gidx step)
{
    return watch && step == watch->next;
}

trl_err trli_watch_start(trli_session *run)
{
    int n = 0;
    while (n < trl_simulation_fields(run->sim) && trl_simulation_field(run->sim, n)->equation) ++n;
    trli_watch *w = run->watch = trli_new(run->ctx, 1, sizeof *w);
    trl_err err = TRL_OK;
    if (w) {
        w->n = n;
        w->of = trli_new(run->ctx, (size_t)n + 1, sizeof *w->of);
        w->extremes = trli_new(run->ctx, 2 * (size_t)n + 1, sizeof *w->extremes);
    }
    if (!w || !w->of || !w->extremes) err = trli_no_memory(run->ctx, NULL, "to watch %d equations", n);
    TRL_TRY(trl_context_agree(run->ctx, err));
    TRL_TRY(trl_simulation_extremes(run->sim, w->extremes));
    w->first = w->last = trl_simulation_step_number(run->sim);
    w->next = w->first + 1;
    w->start = trl_simulation_time(run->sim);
    for (int v = 0; v < n; ++v) {
        w->of[v].initial = magnitude(&w->extremes[2 * v]);
        w->of[v].decade = decade_of(w->of[v].initial);
    }
done:
    return err;
}

void trli_watch_destroy(trli_watch **watch)
{
    if (!*watch) return;
    trli_free((*watch)->of);
    trli_free((*watch)->extremes);
    trli_free(*watch);
    *watch = NULL;
}

void trli_watch_news(trli_watch *watch, const trl_simulation *sim, size_t size, char *text)
{
    int most = -1, by = 0;
    text[0] = 0;
    for (int v = 0; watch && v < watch->n; ++v) {
        const int moved = abs(decade_of(magnitude(&watch->extremes[2 * v])) - watch->of[v].decade);
        if (moved <= by) continue;
        by = moved;
        most = v;
    }
    if (most < 0) return;
    watch->of[most].decade = decade_of(magnitude(&watch->extremes[2 * most]));
    snprintf(text, size, "  %.40s %.3g to %.3g", trl_simulation_field(sim, most)->name, watch->extremes[2 * most],
             watch->extremes[2 * most + 1]);
}

/* The last equation of the same entry of the deck as one: a family. */
static int family_end(const trli_session *run, int v, int n)
{
    const trl_equation_entry *e = run->problem->equation;
    int end = v + 1;
    const int own = run->problem->nequations; /* the others are sensitivities */
    while (end < n && end < own && v < own && e[end].place.line == e[v].place.line &&
           e[end].place.column == e[v].place.column && e[end].place.file == e[v].place.file && e[v].place.line > 0)
        ++end;
    return end;
}

static void print_range(const trli_session *run, const trli_watch *w, int v, int end)
{
    double least = INFINITY, most = -INFINITY;
    for (int i = v; i < end; ++i) {
        least = fmin(least, w->extremes[2 * i]);
        most = fmax(most, w->extremes[2 * i + 1]);
    }
    printf("%s", trl_simulation_field(run->sim, v)->name);
    if (end > v + 1) printf(" to %s", trl_simulation_field(run->sim, end - 1)->name);
    printf(": min %.6g, max %.6g\n", least, most);
}

void trli_watch_print(const trli_session *run)
{
    const trli_watch *w = run->watch;
    int lines = 0, v = 0;
    if (!w) return;
    for (int end; v < w->n && lines < LINES_MOST - 1; v = end, ++lines) {
        end = w->n <= LINES_MOST ? v + 1 : family_end(run, v, w->n);
        print_range(run, w, v, end);
    }
    if (v + 1 == w->n) print_range(run, w, v++, w->n);
    if (v < w->n) printf("and %d more equations: min and max are in report.json\n", w->n - v);
}

/* Whether a solution that the deck knows grew as it should. */
static trl_err is_as_expected(trli_session *run, int v, bool *expected)
{
    trl_field_stats stats;
    trl_err err = TRL_OK;
    *expected = false;
    if (trl_simulation_field(run->sim, v)->exact < 0) return TRL_OK;
    TRL_TRY(trli_session_observe(run));
    TRL_TRY(trl_simulation_field_stats(run->sim, v, &stats));
    *expected = stats.has_error && stats.error_linf < 0.1 * fmax(fabs(stats.min), fabs(stats.max));
done:
    return err;
}

/* Of masks that are 0 at all points. Who changed has another one. */
static trl_err warn_of_masks(trli_session *run)
{
    const trli_watch *w = run->watch;
    int masked = 0;
    trl_err err = TRL_OK;
    for (int v = 0; v < w->n && v < run->problem->nequations; ++v) {
        const trl_equation_entry *e = &run->problem->equation[v];
        trl_field_stats stats;
        if (!e->mask.chars || magnitude(&w->extremes[2 * v]) != w->of[v].initial) continue;
        TRL_TRY(trl_simulation_field_stats(run->sim, v, &stats));
        if (stats.masked && ++masked <= WARNINGS_MOST)
            trl_warn(run->ctx, &e->mask.place, "the mask of '%s' is 0 at all points, which keep their initial values",
                     trl_simulation_field(run->sim, v)->name);
    }
    if (masked > WARNINGS_MOST) trl_warn(run->ctx, NULL, "%d more masks are 0 at all points", masked - WARNINGS_MOST);
done:
    return err;
}

trl_err trli_watch_warn(trli_session *run, bool whole)
{
    trli_watch *w = run->watch;
    int grown = 0;
    trl_err err = TRL_OK;
    if (!w) return TRL_OK;
    if (whole) { /* whatever the step */
        w->next = 0;
        TRL_TRY(trli_watch_check(run));
        TRL_TRY(warn_of_masks(run));
    }
    for (int v = 0; v < w->n; ++v) {
        const struct watched *of = &w->of[v];
        const trl_equation_entry *e = v < run->problem->nequations ? &run->problem->equation[v] : NULL;
        bool expected = false;
        if (!of->from || !(of->largest > implausible)) continue;
        if (whole) TRL_TRY(is_as_expected(run, v, &expected));
        if (expected || ++grown > WARNINGS_MOST) continue;
        trl_warn(run->ctx, e ? &e->place : NULL,
                 "'%s' grew from %.3g to %.3g, which its first steps do not explain; it began between steps %" PRId64
                 " and %" PRId64 ": if nothing in the problem makes it grow, dt is too large for it, or the method "
                 "does not suit it",
                 trl_simulation_field(run->sim, v)->name, of->initial, magnitude(&w->extremes[2 * v]), of->before,
                 of->from);
    }
    if (grown > WARNINGS_MOST) trl_warn(run->ctx, NULL, "%d more equations grew so", grown - WARNINGS_MOST);
done:
    return err;
}
