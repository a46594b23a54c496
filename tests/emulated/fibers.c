/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Stacks and records of fibers are kept for the next ones of the thread. A switch stores what a function has to leave
 * as it was, and goes on with another stack: no call of the system, as swapcontext would make two for signals that
 * nobody blocks. Modes of floating-point arithmetic are those of the thread. This file is compiled without the thread
 * sanitizer, which would see calls begin on one stack and end on another. */
#include "fibers.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ASAN
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define ASAN
#endif
#ifdef ASAN
#include <sanitizer/common_interface_defs.h>
#endif

#if defined(__x86_64__) || defined(__aarch64__)
#define SWITCHES
typedef void *place; /* the top of a stack, where it was left */
#else
#include <ucontext.h>
typedef ucontext_t place;
#endif

enum { STACK = 1 << 16 };

typedef struct fiber {
    place at;
    const void *stack; /* of a number of bytes */
    size_t size;
    void *fake;            /* the sanitizer's */
    unsigned next, before; /* those that have not ended, in a ring: who comes after it, and who came before */
} fiber;

/* Of a thread. The last of its fibers stands for who runs the others. */
typedef struct team {
    unsigned room, n, own; /* own: which one is running */
    size_t bytes;          /* of all this */
    trl_fiber_body body;
    void *data;
    fiber fiber[]; /* [room + 1], and behind them the stacks */
} team;

static _Thread_local team *ours;

/* ---- a switch ---- */

static void begin(void);

#ifdef __x86_64__
enum { WORDS = 8, START = 6 }; /* six registers, where to return, and no caller */
__asm__(".text\n"
        ".hidden trl_fiber_switch\n"
        ".globl trl_fiber_switch\n"
        ".type trl_fiber_switch, @function\n"
        "trl_fiber_switch:\n"
        "pushq %rbp\n"
        "pushq %rbx\n"
        "pushq %r12\n"
        "pushq %r13\n"
        "pushq %r14\n"
        "pushq %r15\n"
        "movq %rsp, (%rdi)\n"
        "movq %rsi, %rsp\n"
        "popq %r15\n"
        "popq %r14\n"
        "popq %r13\n"
        "popq %r12\n"
        "popq %rbx\n"
        "popq %rbp\n"
        "ret\n"
        ".size trl_fiber_switch, . - trl_fiber_switch\n");
#elif defined(__aarch64__)
enum { WORDS = 20, START = 11 }; /* as many registers, one of which is where to return */
__asm__(".text\n"
        ".hidden trl_fiber_switch\n"
        ".globl trl_fiber_switch\n"
        ".type trl_fiber_switch, %function\n"
        "trl_fiber_switch:\n"
        "sub sp, sp, #160\n"
        "stp x19, x20, [sp]\n"
        "stp x21, x22, [sp, #16]\n"
        "stp x23, x24, [sp, #32]\n"
        "stp x25, x26, [sp, #48]\n"
        "stp x27, x28, [sp, #64]\n"
        "stp x29, x30, [sp, #80]\n"
        "stp d8, d9, [sp, #96]\n"
        "stp d10, d11, [sp, #112]\n"
        "stp d12, d13, [sp, #128]\n"
        "stp d14, d15, [sp, #144]\n"
        "mov x9, sp\n"
        "str x9, [x0]\n"
        "mov sp, x1\n"
        "ldp x19, x20, [sp]\n"
        "ldp x21, x22, [sp, #16]\n"
        "ldp x23, x24, [sp, #32]\n"
        "ldp x25, x26, [sp, #48]\n"
        "ldp x27, x28, [sp, #64]\n"
        "ldp x29, x30, [sp, #80]\n"
        "ldp d8, d9, [sp, #96]\n"
        "ldp d10, d11, [sp, #112]\n"
        "ldp d12, d13, [sp, #128]\n"
        "ldp d14, d15, [sp, #144]\n"
        "add sp, sp, #160\n"
        "ret\n"
        ".size trl_fiber_switch, . - trl_fiber_switch\n");
#endif

#ifdef SWITCHES
/* Leave a stack, whose top is stored, and go on with another one. */
void trl_fiber_switch(void **top, void *other);

/* As if begin had been called and had switched at once. */
static void make(fiber *f)
{
    void (*const start)(void) = begin;
    void **top = (void **)((uintptr_t)f->stack + f->size) - WORDS;
    memset(top, 0, WORDS * sizeof *top);
    memcpy(&top[START], &start, sizeof start);
    f->at = top;
}

static void leave(fiber *from, fiber *to)
{
    trl_fiber_switch(&from->at, to->at);
}
#else
static void make(fiber *f)
{
    (void)getcontext(&f->at);
    f->at.uc_stack.ss_sp = (void *)(uintptr_t)f->stack;
    f->at.uc_stack.ss_size = f->size;
    makecontext(&f->at, begin, 0);
}

static void leave(fiber *from, fiber *to)
{
    (void)swapcontext(&from->at, &to->at);
}
#endif

/* ---- what the address sanitizer is told ---- */

static void tell_leaving(fiber *from, const fiber *to, bool ends)
{
#ifdef ASAN
    __sanitizer_start_switch_fiber(ends ? NULL : &from->fake, to->stack, to->size);
#else
    (void)from, (void)to, (void)ends;
#endif
}

static void tell_back(fiber *own)
{
#ifdef ASAN
    __sanitizer_finish_switch_fiber(own->fake, NULL, NULL);
#else
    (void)own;
#endif
}

/* The first of a block learns what the thread's own stack is. No variable lies on a fiber's stack: the sanitizer would
 * give each fiber another one for these. */
static void tell_begun(fiber *caller, bool first)
{
#ifdef ASAN
    __sanitizer_finish_switch_fiber(NULL, first ? &caller->stack : NULL, first ? &caller->size : NULL);
#else
    (void)caller, (void)first;
#endif
}

/* ---- teams ---- */

static void go_on(team *t, unsigned next, bool ends)
{
    fiber *from = &t->fiber[t->own], *to = &t->fiber[next];
    t->own = next;
    tell_leaving(from, to, ends);
    leave(from, to);
    tell_back(from);
}

/* Where a fiber begins. It returns to nobody. */
static void begin(void)
{
    team *t = ours;
    const unsigned own = t->own;
    fiber *f = &t->fiber[own];
    tell_begun(&t->fiber[t->room], own + 1 == t->n);
    t->body(t->data, own);
    t->fiber[f->before].next = f->next;
    t->fiber[f->next].before = f->before;
    go_on(t, f->next == own ? t->room : f->next, true);
    abort();
}

void trl_fibers_wait(void)
{
    team *t = ours;
    const unsigned next = t->fiber[t->own].next;
    if (next != t->own) go_on(t, next, false);
}

static void destroy(void *of)
{
    team *t = of;
    (void)munmap(t, t->bytes);
}

static pthread_key_t teams;

static void make_key(void)
{
    if (pthread_key_create(&teams, destroy) != 0) abort();
}

/* Room for n fibers. The memory comes from the system: no stack is scanned for what leaks. */
static void provide(unsigned n)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    if (ours && ours->room >= n) return;
    (void)pthread_once(&once, make_key);
    if (ours) destroy(ours);
    const size_t records = (sizeof(team) + ((size_t)n + 1) * sizeof(fiber) + STACK - 1) / STACK * STACK;
    const size_t bytes = records + (size_t)n * STACK;
    ours = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (ours == MAP_FAILED || pthread_setspecific(teams, ours) != 0) {
        (void)fprintf(stderr, "emulated GPU: no memory for %u threads of a block\n", n);
        abort();
    }
    ours->room = n;
    ours->bytes = bytes;
    for (unsigned i = 0; i < n; ++i) {
        ours->fiber[i].stack = (unsigned char *)ours + records + (size_t)i * STACK;
        ours->fiber[i].size = STACK;
    }
}

void trl_fibers_run(unsigned n, trl_fiber_body body, void *data)
{
    provide(n);
    team *t = ours;
    t->n = n;
    t->body = body;
    t->data = data;
    for (unsigned i = 0; i < n; ++i) {
        make(&t->fiber[i]);
        t->fiber[i].next = i > 0 ? i - 1 : n - 1;
        t->fiber[i].before = i + 1 < n ? i + 1 : 0;
    }
    t->own = t->room;
    go_on(t, n - 1, false);
}
