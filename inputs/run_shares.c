/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Ranks get the cells that they are seen to compute while the others compute theirs: a rank works while it does not
 * wait for others. From time to time all tell how they fared since the last time. If steps would be clearly faster with
 * other shares, by what was seen now and the time before, and what is left of the run is worth it, the simulation goes
 * on with those, where it stands; no bit depends on them. */
#include "run_impl.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "memory_impl.h"

enum {
    CELLS_LEAST = 32768, /* of a rank, on average */
    STEPS_LEAST = 8,     /* from one time to the next, */
    STEPS_RANDOM = 1     /* also of random changes */
};
static const double gap_first_s = 0.1, gap_most_s = 60; /* from one time to the next; each gap is twice as long */
static const double worth = 0.85;                       /* a step takes less than this part of its time then */
static const double least_part = 0.2;                   /* of even shares */
static const double least_work = 0.05;                  /* of a rank's time */
static const double pays = 2;                           /* gained, of what the change takes */

/* What each rank tells. */
enum { CELLS, WORKED, NTOLD };

/* TRELLIS_SHARES=random:SEED of rank 0, for tests: launchers need not give all ranks the same environment. */
static trl_err find_seed(trli_session *run)
{
    static const char begin[] = "random:";
    const char *text = getenv("TRELLIS_SHARES");
    const bool random = text && strncmp(text, begin, sizeof begin - 1) == 0;
    uint64_t told[] = {random, random ? strtoull(text + sizeof begin - 1, NULL, 10) : 0};
    const trl_err err = trli_broadcast(run->ctx, told, 2, MPI_UINT64_T, 0);
    run->shares.random = told[0];
    run->shares.seed = told[1];
    return err;
}

static double cells_of(const trl_layout *layout)
{
    double cells = 0;
    for (int p = 0; p < layout->nlocal; ++p) {
        const trl_lidx *n = layout->patch[p].cells;
        cells += (double)n[0] * n[1] * n[2];
    }
    return cells;
}

/* How often all told one another, and once more when this rank's time has come; the largest number counts. */
static int64_t wanted(const void *data)
{
    const trli_session *run = data;
    const trli_shares *s = &run->shares;
    const bool due = trl_simulation_step_number(run->sim) >= s->due_step && (s->random || trli_clock() >= s->due);
    return s->on ? s->count + due : 0;
}

static bool pays_to_look(const trli_session *run)
{
    const trl_problem *p = run->problem;
    const double ranks = trl_context_ranks(run->ctx);
    const bool own_cores = !run->ctx->topology.shared && run->ctx->topology.crowd_ranks == 0;
    double cells = 1;
    for (int a = 0; a < 3; ++a) cells *= (double)p->grid.cells[a];
    return run->shares.random || (own_cores && p->balance <= 0 && cells >= CELLS_LEAST * ranks);
}

/* Begin anew to see how this rank fares; output is no part of that. */
static void begin(trli_session *run)
{
    trli_shares *s = &run->shares;
    s->began = trli_clock() - run->wall[TRLI_WALL_OUTPUT];
    s->began_step = trl_simulation_step_number(run->sim);
    s->waited = trl_simulation_waited(run->sim);
    s->due = trli_clock() + s->gap;
    s->due_step = s->began_step + (s->random ? STEPS_RANDOM : STEPS_LEAST);
    s->gap = fmin(2 * s->gap, gap_most_s);
}

trl_err trli_shares_start(trli_session *run)
{
    trli_shares *s = &run->shares;
    const size_t ranks = (size_t)trl_context_ranks(run->ctx);
    int64_t stays;
    trl_err err = TRL_OK;
    s->gap = gap_first_s;
    if (ranks == 1) return TRL_OK;
    TRL_TRY(find_seed(run));
    stays = !run->problem->shares_auto || trl_simulation_stays(run->sim) || !pays_to_look(run);
    if (!stays) {
        s->share = trli_new(run->ctx, ranks, sizeof *s->share);
        s->told = trli_new(run->ctx, NTOLD * ranks, sizeof *s->told);
        s->before = trli_new(run->ctx, NTOLD * ranks, sizeof *s->before);
        if (!s->share || !s->told || !s->before)
            err = trli_no_memory(run->ctx, NULL, "for the shares of %zu ranks", ranks);
    }
    TRL_TRY(trli_agree_max(run->ctx, err, 1, &stays));
    s->on = !stays;
    begin(run);
    if (s->on) trli_agree_carry(run->ctx, TRLI_CARRIED_SHARES, wanted, run);
done:
    return err;
}

void trli_shares_end(trli_session *run)
{
    trli_agree_carry(run->ctx, TRLI_CARRIED_SHARES, NULL, NULL);
    trli_shares *s = &run->shares;
    trli_free(s->told);
    trli_free(s->before);
    trli_free(s->share);
    s->told = s->before = s->share = NULL;
    s->problem.owners.share = NULL;
}

/* Let all ranks know of each how many cells it has, and what part of its time it worked. *step: s of a step. */
static trl_err tell_all(trli_session *run, double *step)
{
    trli_shares *s = &run->shares;
    const int ranks = trl_context_ranks(run->ctx);
    const double seconds = trli_clock() - run->wall[TRLI_WALL_OUTPUT] - s->began;
    double *last = s->told, *own;
    trl_err err = TRL_OK;
    s->told = s->before;
    s->before = last;
    own = s->told + NTOLD * trl_context_rank(run->ctx);
    memset(s->told, 0, NTOLD * (size_t)ranks * sizeof *s->told);
    own[CELLS] = cells_of(trl_simulation_layout(run->sim));
    own[WORKED] = fmax(1 - (trl_simulation_waited(run->sim) - s->waited) / seconds, least_work);
    *step = seconds / (double)(trl_simulation_step_number(run->sim) - s->began_step);
    TRL_TRY(trli_allreduce(run->ctx, s->told, NTOLD * ranks, MPI_DOUBLE, MPI_SUM));
    err = trli_allreduce(run->ctx, step, 1, MPI_DOUBLE, MPI_MAX);
done:
    return err;
}

static double most_worked(const trli_session *run)
{
    double most = 0;
    for (int r = 0; r < trl_context_ranks(run->ctx); ++r) most = fmax(most, run->shares.told[NTOLD * r + WORKED]);
    return most;
}

/* Shares in proportion to what ranks compute in a second, as they were seen twice. */
static void find_shares(const trli_session *run)
{
    const trli_shares *s = &run->shares;
    const int ranks = trl_context_ranks(run->ctx);
    double speed = 0;
    for (int r = 0; r < ranks; ++r) {
        const double *now = s->told + NTOLD * r, *before = s->before + NTOLD * r;
        s->share[r] = 1 / (now[WORKED] / now[CELLS] + before[WORKED] / before[CELLS]);
        speed += s->share[r];
    }
    for (int r = 0; r < ranks; ++r) s->share[r] = fmax(s->share[r] * ranks / speed, least_part);
}

/* What part of their present time steps would take with shares that follow from the look before: ranks that are slow
 * by turns gain nothing. */
static double foretold(const trli_session *run)
{
    const trli_shares *s = &run->shares;
    const int ranks = trl_context_ranks(run->ctx);
    double cells = 0, speed = 0, most = 0;
    for (int r = 0; r < ranks; ++r) {
        const double *of = s->before + NTOLD * r;
        cells += of[CELLS];
        speed += of[CELLS] / of[WORKED];
    }
    for (int r = 0; r < ranks; ++r) {
        const double *now = s->told + NTOLD * r, *before = s->before + NTOLD * r;
        most = fmax(most, cells * before[CELLS] / before[WORKED] / speed * now[WORKED] / now[CELLS]);
    }
    return most / most_worked(run);
}

/* The same of the shares that a layout has, as ranks worked now. Collective: yes. */
static trl_err find_part(const trli_session *run, trl_err err, const trl_layout *layout, double *part)
{
    const double *own = run->shares.told + NTOLD * trl_context_rank(run->ctx);
    *part = err == TRL_OK ? cells_of(layout) * own[WORKED] / own[CELLS] : 0;
    err = trli_allreduce_after(run->ctx, err, part, 1, MPI_DOUBLE, MPI_MAX);
    *part /= most_worked(run);
    return err;
}

/* Steps to the end of the run; where that is not known, as many as there were. */
static double steps_left(const trli_session *run)
{
    const trl_gidx step = trl_simulation_step_number(run->sim);
    const double done = trli_progress_done(&run->progress, step, trl_simulation_time(run->sim));
    const double steps = (double)(step - run->first_step);
    return done > 0 ? steps * (1 - done) / done : steps;
}

static double random_number(const trli_shares *s, int rank)
{
    const uint64_t h = trl_hash_mix(trl_hash_mix(s->seed, (double)s->count), rank);
    return (double)(h >> 11) / 9007199254740992.;
}

/* Make the simulation with the shares found if it is worth it. Where patches would be too thin, or memory is missing,
 * ranks keep what they have: *to is NULL then. */
static trl_err make(trli_session *run, trl_simulation **to)
{
    trli_shares *s = &run->shares;
    const trl_diagnostic *list;
    const int said = trl_context_diagnostics(run->ctx, &list);
    trl_layout *layout = NULL;
    double part = 0;
    *to = NULL;
    s->problem = *run->problem;
    s->problem.owners.share = s->share;
    s->problem.nshares = trl_context_ranks(run->ctx);
    trl_context_begin_phase(run->ctx); /* whose end all ranks hear of an error at, and go on */
    trl_err err = trl_simulation_foresee(run->sim, &s->problem, &layout);
    err = trl_context_end_phase(run->ctx, find_part(run, err, layout, &part));
    trl_layout_destroy(&layout);
    if (err == TRL_OK && (s->random || part < worth)) err = trl_simulation_move(run->sim, &s->problem, to);
    if (*to) s->expected = part;
    if (err != TRL_OK && err != TRL_ERR_MEMORY && err != TRL_ERR_INPUT) return err;
    trli_diagnostics_drop_all(run->ctx, said);
    s->on = err == TRL_OK;
    return TRL_OK;
}

static trl_err move(trli_session *run)
{
    const double began = trli_clock();
    trl_simulation *to;
    trl_err err = TRL_OK;
    TRL_TRY(trli_session_rest(run));
    TRL_TRY(make(run, &to));
    if (!to) return TRL_OK;
    TRL_TRY(trli_session_replace(run, to));
    ++run->shares.moves;
    run->shares.seconds += trli_clock() - began;
done:
    return err;
}

/* A move takes as long as the setup did, or as the last one. */
static trl_err choose(trli_session *run)
{
    trli_shares *s = &run->shares;
    double step, cost = s->moves ? s->seconds / (double)s->moves : run->wall[TRLI_WALL_SETUP];
    trl_err err = TRL_OK;
    TRL_TRY(trl_simulation_settle(run->sim));
    TRL_TRY(tell_all(run, &step));
    TRL_TRY(trli_allreduce(run->ctx, &cost, 1, MPI_DOUBLE, MPI_MAX));
    if (s->looks++ > 0 || s->random) {
        const double part = foretold(run);
        find_shares(run);
        for (int r = 0; r < trl_context_ranks(run->ctx) && s->random; ++r) s->share[r] = 0.2 + 2 * random_number(s, r);
        if (s->random || (part < worth && (1 - part) * step * steps_left(run) > pays * cost)) TRL_TRY(move(run));
    }
    begin(run);
done:
    return err;
}

void trli_shares_report(const trli_shares *s, trli_json *json)
{
    trli_json_key(json, "shares");
    trli_json_begin_object(json);
    trli_json_key(json, "looks");
    trli_json_integer(json, s->looks);
    trli_json_key(json, "changes");
    trli_json_integer(json, s->moves);
    trli_json_key(json, "seconds");
    trli_json_number(json, s->seconds);
    trli_json_key(json, "step_part");
    trli_json_number(json, s->expected);
    trli_json_end_object(json);
}

trl_err trli_shares_bring_on(trli_session *run)
{
    trli_shares *s = &run->shares;
    if (!s->on || trli_agree_carried(run->ctx, TRLI_CARRIED_SHARES) <= s->count) return TRL_OK;
    s->due_step = INT64_MAX; /* what is agreed on meanwhile says nothing about the next time */
    ++s->count;
    return choose(run);
}
