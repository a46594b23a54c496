/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Model of the rings of ready tasks in policy_priority.c for Spin: each worker has a ring, of which it puts tasks at the tail and takes
 * single ones from the head. A worker whose ring is empty copies some of another's into its own slots, behind its tail, and owns them when
 * the other head is where it was: then it moves its tail. Meanwhile a third worker may read those slots. One step of the model is one
 * load, store or compare-exchange of the program. Heads and tails only grow, so that a compare-exchange cannot mistake a later state for an
 * earlier one.
 *
 * Checked: each task is taken once, by whomever, and none is left. Searched:
 *   right:                 once round the ring and more, two workers
 *   right: -DTHREE         tasks that were stolen are stolen again
 *   wrong: -DCOPY_LATER    a thief reads the slots only after it has moved the head
 *   wrong: -DPLAIN_HEAD    a thief stores the head without comparing
 *   wrong: -DEARLY_TAIL    the owner moves the tail before it fills the slot
 *   wrong: -DNO_LIMIT      the owner does not look whether the ring is full
 *   wrong: -DTHREE -DTHIEF_EARLY  a thief moves its tail before it has moved the other's head
 *   wrong: -DNOT_EMPTY     a thief copies into a ring that has no room */

#ifdef THREE
#define WORKERS 3
#define TASKS 3
#define STEALS 2 /* tries of each thief */
#define SIZE 2
#define MOST 1 /* stolen at once */
#else
#define WORKERS 2
#define TASKS 5
#define STEALS 2
#define SIZE 3
#define MOST 2
#endif

byte slot[WORKERS * SIZE]; /* a task is a number from 1 */
byte head[WORKERS], tail[WORKERS];
bit taken[TASKS + 1];
byte count;

#define SLOT(w, i) slot[(w) * SIZE + (i) % SIZE]

inline take(task)
{
    assert(task > 0 && !taken[task]);
    taken[task] = 1;
    count++
}

/* The worker's own tail needs no load. */
inline put(task)
{
    at = head[me];
#ifdef NO_LIMIT
    at = tail[me];
#endif
    if
    :: tail[me] - at < SIZE ->
#ifdef EARLY_TAIL
        tail[me] = tail[me] + 1;
        SLOT(me, tail[me] - 1) = task;
#else
        SLOT(me, tail[me]) = task;
        tail[me] = tail[me] + 1;
#endif
        task++
    :: else
    fi;
    at = 0
}

inline take_own()
{
    at = head[me];
    if
    :: at < tail[me] ->
        task = SLOT(me, at);
        atomic {
            if
            :: head[me] == at -> head[me] = at + 1; take(task)
            :: else
            fi;
            task = 0
        }
    :: else
    fi;
    at = 0
}

inline copy_slots()
{
    do
    :: i < n -> task = SLOT(from, at + i); SLOT(me, tail[me] + i) = task; i++
    :: else -> break
    od;
    task = 0;
    i = 0
}

inline steal()
{
    at = head[from];
    atomic {
        n = (tail[from] > at -> tail[from] - at : 0);
        /* The head may be older than the tail, which then is further than the ring is long: what is read is in vain. */
        n = (n > 2 * MOST -> MOST : n - n / 2)
    };
#ifndef COPY_LATER
    copy_slots();
#endif
#ifdef THIEF_EARLY
    tail[me] = tail[me] + n;
#endif
    atomic {
        if
#ifdef PLAIN_HEAD
        :: n > 0 -> head[from] = at + n
#else
        :: n > 0 && head[from] == at -> head[from] = at + n
#endif
        :: else ->
#ifdef THIEF_EARLY
            tail[me] = tail[me] - n;
#endif
            n = 0
        fi
    };
#ifdef COPY_LATER
    copy_slots();
#endif
#ifndef THIEF_EARLY
    tail[me] = tail[me] + n;
#endif
    atomic { n = 0; at = 0; from = 0 }
}

inline select_victim()
{
    if
    :: me != 0 -> from = 0
    :: me != 1 -> from = 1
#ifdef THREE
    :: me != 2 -> from = 2
#endif
    fi
}

proctype worker(byte me)
{
    byte next = 1, steals, at, n, i, task, from;
    if
    :: me > 0 -> next = TASKS + 1 /* the first worker alone puts tasks that nobody had before */
#ifdef THREE
    :: me == 0 -> steals = STEALS /* and does not steal them back: that is searched with two */
#else
    :: else
#endif
    fi;
    do
    :: next <= TASKS -> put(next)
    :: head[me] < tail[me] -> take_own()
#ifdef NOT_EMPTY
    :: steals < STEALS ->
#else
    :: steals < STEALS && head[me] == tail[me] ->
#endif
        steals++;
        select_victim();
        steal()
    :: next > TASKS && head[me] == tail[me] -> break
    od
}

init {
    byte w;
    atomic {
        do
        :: w < WORKERS -> run worker(w); w++
        :: else -> break
        od
    };
    _nr_pr == 1 -> assert(count == TASKS)
}
