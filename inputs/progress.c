/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include "run_impl.h"

#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const double terminal_interval = 0.1, line_interval = 5; /* s */

/* mpirun gives its ranks a pseudo-terminal of its own even when its output goes to a file: then the one that counts
   is mpirun's, the parent of the first rank. */
static bool is_terminal(void)
{
    char path[64];
    if (!isatty(STDOUT_FILENO)) return false;
    if (!getenv("OMPI_COMM_WORLD_SIZE")) return true;
    snprintf(path, sizeof path, "/proc/%ld/fd/1", (long)getppid());
    int parent = open(path, O_WRONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
    if (parent < 0) return false;
    bool terminal = isatty(parent);
    close(parent);
    return terminal;
}

void trli_progress_start(trli_progress *progress, const trli_session *run)
{
    const trl_problem *problem = run->problem;
    *progress = (trli_progress){
        .shown = !run->quiet && trl_context_rank(run->ctx) == 0,
        .cells = 1,
        .first_step = trl_simulation_step_number(run->sim),
        .first_time = trl_simulation_time(run->sim),
        .steps = run->steps,
        .end = problem->time.end,
        .has_end = problem->time.has_end,
        .adaptive = problem->time.adaptive,
        .varies_order = trl_integrator_of(problem->time.method)->multistep,
    };
    for (int a = 0; a < 3; ++a) progress->cells *= (double)problem->grid.cells[a];
    if (!progress->shown) return;
    progress->terminal = is_terminal();
    progress->started = progress->last = trli_clock();
}

double trli_progress_done(const trli_progress *p, trl_gidx step, double time)
{
    double by_steps = 0, by_time = 0;
    if (p->steps > p->first_step) by_steps = (double)(step - p->first_step) / (double)(p->steps - p->first_step);
    if (p->has_end && p->end > p->first_time) by_time = (time - p->first_time) / (p->end - p->first_time);
    return fmax(by_steps, by_time);
}

static void format_left(double seconds, char *text, size_t size)
{
    if (seconds < 100)
        snprintf(text, size, "%.0f s", seconds);
    else if (seconds < 6000)
        snprintf(text, size, "%.0f min", seconds / 60);
    else if (seconds < 360000)
        snprintf(text, size, "%.1f h", seconds / 3600);
    else
        snprintf(text, size, "%.0f days", seconds / 86400);
}

void trli_progress_update(trli_progress *progress, const trl_simulation *sim, trli_watch *watch)
{
    trli_progress *p = progress;
    char left[32] = "?", news[128], compiling[64] = "", solving[256] = "";
    trl_compile_stats compile;
    const trl_gidx step = trl_simulation_step_number(sim);
    const double time = trl_simulation_time(sim), dt = trl_simulation_dt(sim);
    if (!p->shown) return;
    double now = trli_clock();
    if (now - p->last < (p->terminal ? terminal_interval : line_interval)) return;
    p->last = now;
    double elapsed = now - p->started, done = trli_progress_done(p, step, time);
    if (done > 0) format_left(elapsed * (1 - done) / done, left, sizeof left);
    trl_simulation_get_compile_stats(sim, &compile);
    if (compile.under_way)
        snprintf(compiling, sizeof compiling, "  interpreted while %d kernel%s compiled", compile.under_way,
                 compile.under_way == 1 ? " is" : "s are");
    for (int i = 0; i < trl_simulation_solvers(sim) && i < 3; ++i) {
        const trl_solve_stats *s = trl_simulation_solver(sim, i);
        size_t used = strlen(solving);
        used += (size_t)snprintf(solving + used, sizeof solving - used, "  %.16s: %d iterations", s->unknowns,
                                 s->last_iterations);
        if (s->last_reference > 0) /* CVODE judges solves by itself */
            snprintf(solving + used, sizeof solving - used, ", residual %.2g", s->last_residual);
    }
    trli_watch_news(watch, sim, sizeof news, news);
    printf("%sstep %" TRL_GIDX_FMT, p->terminal ? "\r" : "", step);
    if (p->steps >= 0) printf("/%" TRL_GIDX_FMT, p->steps);
    if (p->adaptive) printf(" (%" PRId64 " rejected)", trl_simulation_rejected(sim));
    if (p->varies_order) printf("  order %d", trl_simulation_order(sim));
    printf("  t %.6g  dt %.3g  %.3g cells/s  %s left%s%s%s%s", time, dt,
           p->cells * (double)(step - p->first_step) / elapsed, left, solving, compiling, news,
           p->terminal ? "\033[K" : "\n");
    fflush(stdout);
    p->drawn = p->terminal;
}

void trli_progress_clear(trli_progress *progress)
{
    if (!progress->drawn) return;
    fputs("\r\033[K", stdout);
    fflush(stdout);
    progress->drawn = false;
}
