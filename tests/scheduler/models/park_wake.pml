/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Model of scheduler/locks.c for Spin: tasks lock and use two resources, one below the other, and a third one.
 *
 * Each task is a process, as if there were a worker for each; which of the waiting tasks is woken is left open. One step of the model
 * is one atomic operation of the program on a resource's word, or something done under the lock of its lists. A loop around a
 * compare-exchange is one step: only its last round does anything.
 *
 * Checked: conflicting tasks never hold their resources at once; every task comes to its end (an invalid end state is a task
 * that waits for ever); and no task waits for what it could have, however long others keep what they have. Searched:
 *   right, long:                    three tasks, each with any wants
 *   right: -DFOUR                   four tasks, whose wants are given
 *   wrong: -DWAIT_WITHOUT_CHECK     a task waits whatever the counts are by then, and does not look again
 *   wrong: -DLIST_LATER             the task goes on the list only after the lists were left
 *   wrong: -DFOUR -DKEEP_WAKE       a woken task that fails before it comes to where it was woken looks at nothing there
 *   wrong: -DNOTHING_ABOVE          what is above a resource is not told */

#ifdef FOUR
#define TASKS 4
#else
#define TASKS 3
#endif
#define RESOURCES 3 /* 0; 1, which is below 0; 2 */

#define USE 0
#define LOCK 1
#define USE_BELOW 2
#define LOCK_BELOW 3
#define MODES 4

/* A word: how many hold it in which mode, and in which modes tasks wait. */
byte held[12];
bool waited[12];
/* The lists, as sets of tasks, and what guards them. */
byte list[12];
bool busy[RESOURCES];

bool ready[TASKS];

#define AT(r, m) ((r) * MODES + (m))
#define AGAINST(r, m)                                                                                                  \
    (held[AT(r, LOCK)] > 0 || ((m) != USE_BELOW && (m) != USE && held[AT(r, USE)] > 0) ||                              \
     (((m) == USE || (m) == LOCK) && held[AT(r, LOCK_BELOW)] > 0) || ((m) == LOCK && held[AT(r, USE_BELOW)] > 0))
#define DUE(r, m) (waited[AT(r, m)] && !AGAINST(r, m))
#define ANY_DUE(r) (DUE(r, USE) || DUE(r, LOCK) || DUE(r, USE_BELOW) || DUE(r, LOCK_BELOW))
#define NONE_DUE (!ANY_DUE(0) && !ANY_DUE(1) && !ANY_DUE(2))

/* What is held, as the user sees it: 0 stands for the part of resource 0 that is not resource 1. */
byte lockers[RESOURCES], users[RESOURCES];
#define FITS(r) (lockers[r] + (users[r] > 0) <= 1)

/* Enter or leave what the task locks and uses: of resource 0, with resource 1. */
inline claim(change)
{
    j = 0;
    do
    :: j < n && want_mode[j] == LOCK ->
        lockers[want_at[j]] = lockers[want_at[j]] + change;
        lockers[1] = lockers[1] + (want_at[j] == 0 -> change : 0);
        j++
    :: j < n && want_mode[j] == USE ->
        users[want_at[j]] = users[want_at[j]] + change;
        users[1] = users[1] + (want_at[j] == 0 -> change : 0);
        j++
    :: j < n && want_mode[j] > LOCK -> j++
    :: else -> break
    od;
    j = 0
}

inline wake_one(r)
{
    atomic { !busy[r] -> busy[r] = true };
    atomic {
        if
        :: DUE(r, USE) -> m = USE
        :: DUE(r, LOCK) -> m = LOCK
        :: DUE(r, USE_BELOW) -> m = USE_BELOW
        :: DUE(r, LOCK_BELOW) -> m = LOCK_BELOW
        :: else -> m = MODES
        fi;
        if
        :: m < MODES && (list[AT(r, m)] & 1) -> woken = 0
        :: m < MODES && (list[AT(r, m)] & 2) -> woken = 1
        :: m < MODES && (list[AT(r, m)] & 4) -> woken = 2
        :: m < MODES && (list[AT(r, m)] & 8) -> woken = 3
        :: else -> woken = TASKS /* nothing is due; or no list agrees with the word, which is a fault of a broken protocol */
        fi;
        if
        :: woken < TASKS -> list[AT(r, m)] = list[AT(r, m)] & ~(1 << woken)
        :: else
        fi
    };
    atomic {
        if
        :: woken < TASKS && list[AT(r, m)] == 0 -> waited[AT(r, m)] = false
        :: else
        fi
    };
    busy[r] = false;
    atomic {
        if
        :: woken < TASKS -> ready[woken] = true
        :: else
        fi;
        woken = 0;
        m = 0
    }
}

inline wake_if_due(r)
{
    if
    :: ANY_DUE(r) -> wake_one(r)
    :: else
    fi
}

/* From the last of those before `taken` to the first. */
inline release()
{
    do
    :: taken > 0 ->
        atomic {
            taken--;
            q = want_at[taken];
            assert(held[AT(q, want_mode[taken])] > 0);
            held[AT(q, want_mode[taken])]--;
            due = ANY_DUE(q)
        };
        if
        :: due -> wake_one(q)
        :: else
        fi
    :: else -> break
    od
}

#define ADD(r, mode)                                                                                                   \
    want_at[n] = r;                                                                                                    \
    want_mode[n] = mode;                                                                                               \
    n++
#ifdef NOTHING_ABOVE
#define ADD_ABOVE(mode) skip
#else
#define ADD_ABOVE(mode) ADD(0, mode)
#endif

inline choose()
{
#ifdef FOUR
    if
    :: me == 0 -> ADD_ABOVE(LOCK_BELOW); ADD(1, LOCK)
    :: me == 1 -> ADD_ABOVE(LOCK_BELOW); ADD(1, LOCK); ADD(2, LOCK)
    :: me >= 2 -> ADD(2, LOCK)
    fi
#else
    if
    :: ADD(0, LOCK)
    :: ADD(0, USE)
    :: ADD_ABOVE(LOCK_BELOW); ADD(1, LOCK)
    :: ADD_ABOVE(USE_BELOW); ADD(1, USE)
    :: ADD(2, LOCK)
    :: ADD(0, LOCK); ADD(2, USE)
    :: ADD_ABOVE(LOCK_BELOW); ADD(1, LOCK); ADD(2, LOCK)
    :: ADD_ABOVE(USE_BELOW); ADD(1, USE); ADD(2, LOCK)
    fi
#endif
}

proctype task(byte me)
{
    byte want_at[3], want_mode[3];
    byte n, taken, q, at, mode, i, j, m, woken;
    bool due, waits;
    atomic { choose() };

again:
    /* take_all */
    do
    :: atomic { taken < n && !AGAINST(want_at[taken], want_mode[taken]) ->
           held[AT(want_at[taken], want_mode[taken])]++;
           due = due || ANY_DUE(want_at[taken]);
           taken++ }
    :: atomic { taken < n && AGAINST(want_at[taken], want_mode[taken]) -> due = false; goto fail }
    :: taken == n -> break
    od;
    if
    :: due ->
        do
        :: i < n -> wake_if_due(want_at[i]); i++
        :: else -> break
        od;
        i = 0
    :: else
    fi;
    d_step {
        due = false;
        claim(1);
        assert(FITS(0) && FITS(1) && FITS(2))
    };
    /* Keep it until nobody else can do anything, or not so long. */
    if
    :: true -> timeout; assert(NONE_DUE)
    :: true
    fi;
    d_step { claim(-1) };
    release();
    goto end;

fail:
    skip;
    d_step {
        at = want_at[taken];
        mode = want_mode[taken];
        i = taken + 1
    };
    release();
    do
    :: i < n ->
#ifndef KEEP_WAKE
        wake_if_due(want_at[i]);
#endif
        i++
    :: else -> break
    od;
    i = 0;

    /* wait_for */
    atomic { !busy[at] -> busy[at] = true };
    d_step {
#ifdef WAIT_WITHOUT_CHECK
        waits = true;
        waited[AT(at, mode)] = true
#else
        waits = AGAINST(at, mode);
        waited[AT(at, mode)] = waited[AT(at, mode)] || waits;
        due = ANY_DUE(at)
#endif
    };
#ifdef LIST_LATER
    busy[at] = false;
#endif
    if
    :: waits -> list[AT(at, mode)] = list[AT(at, mode)] | (1 << me)
    :: else
    fi;
#ifndef LIST_LATER
    busy[at] = false;
#endif
    if
    :: waits && due -> wake_one(at)
    :: else
    fi;
    atomic {
        due = false;
        if
        :: waits -> ready[me]; ready[me] = false
        :: else
        fi;
        at = 0;
        mode = 0;
        waits = false;
        goto again
    };
end:
    skip
}

init
{
    atomic {
        run task(0);
        run task(1);
        run task(2);
#ifdef FOUR
        run task(3)
#endif
    }
}
