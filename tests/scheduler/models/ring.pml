/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Model of a worker's bounded ring of ready tasks for Spin: the owner puts tasks at the tail and takes single ones from the head, thieves
 * take half of them from the head. One step of the model is one load, store or compare-exchange of the program. Head and tail only
 * grow, so that a compare-exchange of the head cannot mistake a later state for an earlier one.
 *
 * Checked: each task is taken once, by whomever, and none is left. Searched:
 *   right:                one task more than the ring takes
 *   right: -DROUND        once round the ring and more
 *   wrong: -DCOPY_LATER   a thief reads the slots only after it has moved the head
 *   wrong: -DPLAIN_HEAD   a thief stores the head without comparing
 *   wrong: -DEARLY_TAIL   the owner moves the tail before it fills the slot
 *   wrong: -DNO_LIMIT     the owner does not look whether the ring is full */

#ifdef ROUND
#define TASKS 7
#define ROUNDS 1 /* of each thief */
#else
#define TASKS 5
#define ROUNDS 2
#endif
#define SIZE 4
#define HALF 2 /* of SIZE: the most that a thief takes */

byte slot[SIZE]; /* a task is a number from 1 */
byte head, tail;
bit taken[8];
byte count;

inline take(task)
{
    assert(task > 0 && !taken[task]);
    taken[task] = 1;
    count++
}

/* Alone among all, the owner writes the tail, so that it knows it without a load. */
proctype owner()
{
    byte next = 1, at, task;
    do
    /* Put. */
    :: next <= TASKS ->
        at = head;
#ifndef NO_LIMIT
        if
        :: tail - at < SIZE ->
#endif
#ifdef EARLY_TAIL
            tail++;
            slot[(tail - 1) % SIZE] = next;
#else
            slot[tail % SIZE] = next;
            tail++;
#endif
            next++;
            at = 0
#ifndef NO_LIMIT
        :: else -> at = 0
        fi
#endif
    /* Take one. */
    :: head < tail ->
        at = head;
        if
        :: at < tail ->
            task = slot[at % SIZE];
            atomic {
                if
                :: head == at -> head = at + 1; take(task)
                :: else
                fi;
                at = 0;
                task = 0
            }
        :: else -> at = 0
        fi
    :: next > TASKS && head == tail -> break
    od
}

proctype thief()
{
    byte round, at, end, n, i;
    byte copy[HALF];
    do
    :: round < ROUNDS ->
        at = head;
        end = tail;
        d_step {
            n = (end > at -> (end - at + 1) / 2 : 0);
            /* The head may be older than the tail, which then is further than the ring is long: what is read is in vain. */
            n = (n > HALF -> HALF : n);
            end = 0
        };
#ifndef COPY_LATER
        do
        :: i < n -> copy[i] = slot[(at + i) % SIZE]; i++
        :: else -> break
        od;
#endif
        atomic {
            if
#ifdef PLAIN_HEAD
            :: n > 0 -> head = at + n
#else
            :: n > 0 && head == at -> head = at + n
#endif
            :: else -> n = 0
            fi
        };
#ifdef COPY_LATER
        do
        :: i < n -> copy[i] = slot[(at + i) % SIZE]; i++
        :: else -> break
        od;
#endif
        skip; /* a loop cannot end in a d_step */
        d_step {
            i = 0;
            do
            :: i < n -> take(copy[i]); copy[i] = 0; i++
            :: else -> break
            od;
            round++;
            i = 0;
            n = 0;
            at = 0;
            end = 0
        }
    :: else -> break
    od
}

init {
    atomic { run owner(); run thief(); run thief() };
    _nr_pr == 1 -> assert(count == TASKS)
}
