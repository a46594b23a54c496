/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Model of the jobs of workers.c for Spin: callers open places for their jobs and close them; workers that see a new opening look into the
 * places that were open then. A job is gone when its caller has returned. One step of the model is one load, store or read-modify-write of the program. They
 * happen in one order: what weaker memory allows, and sleep, are not modelled.
 *
 * Checked: no worker is at a job that is gone, or takes it for another turn; no opening is overlooked, for then a caller that needs a worker waits for ever, which is
 * an invalid end state. Searched:
 *   right, long:               two callers, a place for each, two workers
 *   right: -DONE_PLACE         a place goes from one caller to the other and back while workers look
 *   wrong: -DNO_SECOND_LOOK    a worker begins without looking whether the place is still open
 *   wrong: -DSAY_LATER         a worker says at which job it is after the second look
 *   wrong: -DONE_PLACE -DBIT_ONLY  the second look is not at whose job it is
 *   wrong: -DNO_WAIT           a caller returns without looking which workers are at its job
 *   wrong: -DONE_PLACE -DGIVE_EARLY  a place is given back while workers may be at its job
 *   wrong: -DOPEN_FIRST        a caller opens the place before the job is in it
 *   wrong: -DCOUNT_FIRST       a caller counts the opening before it opens the place
 *   wrong: -DSEEN_LATER        a worker reads the count of openings after it looked into the places
 *   wrong: -DNOT_AGAIN         a worker that left a job before it was over does not come back */

#ifdef ONE_PLACE
#define PLACES 1
#define TURNS 2 /* of one caller; the other has one */
#else
#define PLACES 2
#define TURNS 1
#endif
#define CALLERS 2
#define WORKERS 2
#define NOBODY CALLERS

byte openings;     /* and which places are open: one word */
bit open[PLACES], claimed[PLACES];
byte job[PLACES];  /* a job is its caller's number */
byte turn[PLACES]; /* of the job in the place */
byte turn_of[CALLERS];
byte at[WORKERS];  /* NOBODY: at none */
bit here[CALLERS]; /* the job is not gone */
bit over[CALLERS];

proctype caller(byte me, turns)
{
    byte p, w;
    bit alone;
    do
    :: turns > 0 ->
        atomic {
            here[me] = 1;
            over[me] = 0;
            turn_of[me] = turns
        };
        atomic {
            if
            :: !claimed[0] -> p = 0
#ifndef ONE_PLACE
            :: claimed[0] && !claimed[1] -> p = 1
#endif
            fi;
            claimed[p] = 1
        };
#ifdef OPEN_FIRST
        atomic { open[p] = 1; openings++ };
#endif
        turn[p] = turns;
        job[p] = me;
#ifdef COUNT_FIRST
        openings++;
        open[p] = 1;
#else
#ifndef OPEN_FIRST
        atomic { open[p] = 1; openings++ };
#endif
#endif
        if
        :: alone = 1
        :: alone = 0 /* it needs a worker */
        fi;
        if
        :: over[me]
        :: alone -> over[me] = 1
        fi;
        open[p] = 0;
#ifdef GIVE_EARLY
        claimed[p] = 0;
#endif
#ifndef NO_WAIT
        w = 0;
        do
        :: w < WORKERS -> at[w] != me; w++
        :: else -> break
        od;
#endif
#ifndef GIVE_EARLY
        claimed[p] = 0;
#endif
        here[me] = 0;
        turns--
    :: else -> break
    od
}

inline work()
{
    assert(here[j]);
    count = turn[p];
    assert(count == turn_of[j]);
    if
    :: over[j] = 1
    :: again = again || !over[j]
    fi;
    assert(here[j])
}

proctype worker(byte me)
{
    byte counted, seen, count, p, j;
    bit again, sure, was_open[PLACES];
end:
    do
    :: atomic {
            openings != seen || again ->
            counted = openings;
            was_open[0] = open[0];
#ifndef ONE_PLACE
            was_open[1] = open[1];
#endif
            again = 0
        };
        p = 0;
        do
        :: p < PLACES ->
            if
            :: was_open[p] ->
                j = job[p];
#ifndef SAY_LATER
                at[me] = j;
#endif
#ifdef NO_SECOND_LOOK
                sure = 1;
#else
                sure = open[p];
#ifndef BIT_ONLY
                sure = sure && job[p] == j;
#endif
#endif
#ifdef SAY_LATER
                at[me] = j;
#endif
                if
                :: sure -> work()
                :: else
                fi;
                at[me] = NOBODY
            :: else
            fi;
            p++
        :: else -> break
        od;
#ifdef NOT_AGAIN
        again = 0;
#endif
#ifdef SEEN_LATER
        counted = openings;
#endif
        atomic {
            seen = counted;
            counted = 0;
            count = 0;
            j = 0;
            sure = 0
        }
    od
}

init
{
    atomic {
        at[0] = NOBODY;
        at[1] = NOBODY;
        run caller(0, TURNS);
        run caller(1, 1);
        run worker(0);
        run worker(1)
    }
}
