/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* `trellis run`: the parts of one run and what they share. */
#ifndef TRLI_RUN_IMPL_H
#define TRLI_RUN_IMPL_H

#include <trl_simulation.h>

#include "clock_impl.h"
#include "command_impl.h"
#include "context_impl.h"
#include "json_impl.h"
#include "output_beside_impl.h"
#include "writers_impl.h"

/* Phases whose wall time the report gives. X(NAME, key) */
#define TRLI_WALL_LIST(X) \
    X(SETUP, "setup")     \
    X(COMPILE, "compile") \
    X(LOOP, "loop")       \
    X(OUTPUT, "output")

typedef enum trli_wall {
#define TRLI_WALL_ENUM(name, key) TRLI_WALL_##name,
    TRLI_WALL_LIST(TRLI_WALL_ENUM)
#undef TRLI_WALL_ENUM
        TRLI_WALL_COUNT
} trli_wall;

/* Some of a simulation's fields, and then some of those that it carries, as the output functions want them. */
typedef struct trli_field_set {
    int n, nlocal;
    int nfields;             /* of n, those that are not carried */
    int *field;              /* [n] numbers in the simulation, of a kind each */
    bool *found;             /* [n] of those that are carried: a checkpoint had it */
    trl_array *array;        /* [n][nlocal] */
    trli_output_field *list; /* [n] views of array */
} trli_field_set;

/* The line that shows how far a run is. */
typedef struct trli_progress {
    bool shown, terminal;
    bool drawn;           /* the terminal's line holds text */
    double started, last; /* s, of trli_clock */
    double cells;
    trl_gidx first_step, steps; /* steps: the number to reach, -1: none */
    double first_time, end;
    bool has_end, adaptive, varies_order;
} trli_progress;

/* What the last steps took, without output, s. */
enum { TRLI_STEP_TIMES = 1024 };
typedef struct trli_step_times {
    double seconds[TRLI_STEP_TIMES];
    int64_t n; /* ever */
} trli_step_times;

typedef struct trli_watch trli_watch;

/* What ranks get of the cells, after what they are seen to compute; run_shares.c. */
typedef struct trli_shares {
    bool on;
    bool random; /* for tests: shares are any, and change every few steps */
    uint64_t seed;
    int64_t count;       /* of times that all told one another */
    double due;          /* when this rank wants the next one, s of trli_clock, */
    trl_gidx due_step;   /* and no earlier than after this step */
    double began;        /* since when this rank is seen, s of steps and setup, */
    trl_gidx began_step; /* after which step, */
    double waited;       /* and what it had waited until then, s */
    double gap;          /* s to the next time but one */
    trl_problem problem; /* of the simulation, once it has other shares than the deck gives */
    double *share;       /* its, [ranks] */
    double *told;        /* [ranks][] what was seen the last time, */
    double *before;      /* and the time before */
    int64_t looks, moves;
    double seconds;  /* that moves took */
    double expected; /* of a step's time before the last one, what is left behind it */
} trli_shares;

typedef struct trli_session {
    trl_context *ctx;
    trli_watch *watch; /* on what the solution does; NULL until the loop begins */
    int32_t nwarnings, warnings_room;
    char **warning; /* [nwarnings] of the whole run, a line each */
    const trli_arguments *arguments;
    bool quiet;
    trl_registry *registry;
    trli_deck *deck;
    const trl_problem *problem;       /* NULL until the deck is read */
    const trli_deck_options *options; /* likewise */
    trl_simulation *sim;              /* NULL until compiled */
    bool ready;                       /* its fields have values */
    trl_gidx steps;                   /* the number of steps to reach, -1: none */
    trl_gidx first_step;              /* 0, or that of the checkpoint */
    trli_writers writers;
    trli_beside *beside;          /* NULL: files are written at once */
    trli_beside_stats files;      /* at the end */
    trli_field_set output, state; /* what files of fields and checkpoints hold */
    /* Of the last one written or done, -1: none. */
    trl_gidx fields_step, series_step, receivers_step, checkpoint_step, observed_step, between_step;
    /* Rows of series whose values come while steps go on. */
    struct {
        bool open;   /* all ranks do not know yet whether they are written; the same on all ranks */
        trl_err err; /* of this rank, while they do not */
        bool lost;   /* one could not be written: no checkpoint may come after it */
    } row;
    int64_t lineage; /* of its checkpoints, -1: not known yet */
    int close;       /* those that came a few steps after the one before */
    bool stopped;    /* time.stop holds */
    bool traced;     /* a trace is being recorded */
    trli_progress progress;
    double wall[TRLI_WALL_COUNT];
    trli_step_times step_times;
    double last_output; /* s, for fields or a checkpoint */
    trli_shares shares;
    int64_t agreements[2]; /* of the ranks, in the loop: which they waited for; which went on beside a step */
} trli_session;

/* Whether something scheduled by `every` is due after a step that ended at time and was dt long: each multiple of
   every.steps, or the first step with time >= one of the times of `every` (up to rounding). It depends on the arguments
   alone, so that a restart finds the same steps. */
bool trli_every_due(const trl_every *every, trl_gidx step, double time, double dt);
/* The same where times inside steps are interpolated: those before the end of the step do not count. */
bool trli_every_at(const trl_every *every, trl_gidx step, double time, double dt);
/* The first multiple of every.time that is later than `after` and lies inside a step from begin to end, not at its ends
   up to rounding; false: there is none. */
bool trli_every_between(const trl_every *every, double begin, double after, double end, double *time);

/* run_output.c: all collective. */
TRL_NODISCARD trl_err trli_session_open_output(trli_session *run);
/* Read the checkpoint that --restart names and resume from it. */
TRL_NODISCARD trl_err trli_session_resume(trli_session *run, const char *where);
/* Write fields and series if they are due at the present step, or forced (at the start and the end); never twice for
   a step. */
TRL_NODISCARD trl_err trli_session_write_output(trli_session *run, bool forced);
/* Whether no more is due at the present step than a row of series whose values may come later, given that neither
   checks nor time.stop are; begin it; after each step bring rows on, and write the one that is there; and, after an
   error, those of before. */
bool trli_session_row_is_late(const trli_session *run);
TRL_NODISCARD trl_err trli_session_begin_row(trli_session *run);
TRL_NODISCARD trl_err trli_session_bring_on_rows(trli_session *run);
void trli_session_leave_rows(trli_session *run);
/* Likewise a checkpoint. */
TRL_NODISCARD trl_err trli_session_write_checkpoint(trli_session *run, bool forced);
/* Evaluate outputs, exact solutions and series at the present step unless that is done. */
TRL_NODISCARD trl_err trli_session_observe(trli_session *run);
/* Go on with files that are written while steps go on, where all ranks have done a part; and wait for them. */
TRL_NODISCARD trl_err trli_session_bring_on_files(trli_session *run);
TRL_NODISCARD trl_err trli_session_finish_files(trli_session *run);
/* Let nothing be under way, in memory or on the way to a disk. */
TRL_NODISCARD trl_err trli_session_rest(trli_session *run);
/* Go on with a simulation that stands where the present one does, which is destroyed. */
TRL_NODISCARD trl_err trli_session_replace(trli_session *run, trl_simulation *sim);
TRL_NODISCARD trl_err trli_session_close_output(trli_session *run);

/* run_shares.c: whether ranks are looked at, and what they get; if it is time, look or choose. Between steps.
   Collective: yes. */
TRL_NODISCARD trl_err trli_shares_start(trli_session *run);
TRL_NODISCARD trl_err trli_shares_bring_on(trli_session *run);
void trli_shares_end(trli_session *run);
/* An object of the report. Collective: no. */
void trli_shares_report(const trli_shares *shares, trli_json *json);

/* run_trace.c: with --trace, record what the workers of all ranks do, and write it at the end, however the run ended.
   Collective: yes. */
TRL_NODISCARD trl_err trli_session_start_trace(trli_session *run);
TRL_NODISCARD trl_err trli_session_write_trace(trli_session *run);

/* run_loop.c: step to the end, writing what is due. INTERRUPTED, after a checkpoint, when any rank got a signal.
   Collective: yes. */
TRL_NODISCARD trl_err trli_session_loop(trli_session *run);

/* report.c: write report.json. err: how the run ended; its message is still recorded in the context. Collective:
   yes. */
TRL_NODISCARD trl_err trli_report_write(trli_session *run, trl_err err);

/* watch.c: whether the solution stays plausible. */
/* Look at the initial values. Collective: yes. */
TRL_NODISCARD trl_err trli_watch_start(trli_session *run);
/* Whether the solution is checked after a step. */
bool trli_watch_due(const trli_watch *watch, trl_gidx step);
/* Check the magnitudes of the solution if that is due. Collective: yes. */
TRL_NODISCARD trl_err trli_watch_check(trli_session *run);
/* Which equation changed by orders of magnitude since it was in the news last: a text to append, "" if none did. */
void trli_watch_news(trli_watch *watch, const trl_simulation *sim, size_t size, char *text);
/* The ranges of all equations, families in a line, a dozen lines at most. */
void trli_watch_print(const trli_session *run);
/* Warn of equations that grew as nothing explains. whole: the state is sound and is looked at once more. Collective:
 * yes. */
TRL_NODISCARD trl_err trli_watch_warn(trli_session *run, bool whole);
void trli_watch_destroy(trli_watch **watch);

/* report.c: keep the warnings recorded by now for the report; a run without the memory for them has fewer there. */
void trli_report_keep_warnings(trli_session *run);
void trli_report_free_warnings(trli_session *run);

/* progress.c: nothing is shown with --quiet or on other ranks than 0. */
void trli_progress_start(trli_progress *progress, const trli_session *run);
/* watch: of the solution, or NULL. */
void trli_progress_update(trli_progress *progress, const trl_simulation *sim, trli_watch *watch);
/* How much of the way is done at a step, 0 to 1: whichever of steps and end comes first; 0: that is not known. */
double trli_progress_done(const trli_progress *progress, trl_gidx step, double time);
/* Remove the line from a terminal, so that other text can follow. */
void trli_progress_clear(trli_progress *progress);

#endif
