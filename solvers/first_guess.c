/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include "first_guess_impl.h"

#include "compile_impl.h"
#include "memory_impl.h"

/* Solves of a step that have corrections, and those of a step up to which they have all terms: memory bounds both. */
enum { SOLVES_MOST = 8, SOLVES_FEW = 4 };

/* ---- programs ---- */

static trl_err add_fields(trli_solver *s, struct trli_guesses *h)
{
    trl_err err = TRL_OK;
    TRL_TRY(trli_vector_add(s, "plain_guess", false, &h->plain));
    for (int k = 0; k < h->n; ++k)
        for (int j = 0; j < h->terms; ++j)
            TRL_TRY(trli_vector_add(s, trli_model_name(s->sim->model, "correction%d.%d", k + 1, j + 1), false,
                                    &h->of[k].last[j]));
    for (int j = 0; j < h->terms; ++j) h->factor[j] = trli_model_add_scalar(s->sim->model, 0);
    h->inverse_dt = trli_model_add_scalar(s->sim->model, 0);
done:
    return err;
}

/* x' = x + factors times corrections */
static trl_err compile_guess(trli_solver *s, struct trli_guesses *h, trli_ir_value *value)
{
    trli_ir *ir = &s->sim->model->ir;
    trl_err err = TRL_OK;
    TRL_TRY(trli_solver_begin(s, "guess from steps before", &h->guess));
    for (int i = 0; i < s->ask.n; ++i) {
        trli_ir_value sum = TRLI_NO_VALUE;
        for (int j = 0; j < h->terms; ++j) {
            const trli_ir_value part = trli_ir_binary(ir, TRLI_OP_MUL, trli_ir_scalar(ir, h->factor[j]),
                                                      trli_ir_field(ir, h->of[0].last[j].now[i]));
            sum = j ? trli_ir_binary(ir, TRLI_OP_ADD, sum, part) : part;
        }
        value[i] = trli_ir_binary(ir, TRLI_OP_ADD, trli_ir_field(ir, s->x.now[i]), sum);
    }
    err = trli_solver_store(s, h->guess, s->x.next, value);
done:
    return err;
}

/* The oldest correction makes room for x less the plain guess, over dt. */
static trl_err compile_note(trli_solver *s, struct trli_guesses *h, trli_ir_value *value)
{
    trli_ir *ir = &s->sim->model->ir;
    trl_err err = TRL_OK;
    TRL_TRY(trli_solver_begin(s, "correction of the guess", &h->note));
    for (int i = 0; i < s->ask.n; ++i) {
        const trli_ir_value change =
            trli_ir_binary(ir, TRLI_OP_SUB, trli_ir_field(ir, s->x.now[i]), trli_ir_field(ir, h->plain.now[i]));
        value[i] = trli_ir_binary(ir, TRLI_OP_MUL, trli_ir_scalar(ir, h->inverse_dt), change);
    }
    err = trli_solver_store(s, h->note, h->of[0].last[h->terms - 1].now, value);
done:
    return err;
}

/* Where steps follow errors dt changes much, and a third term brings nothing. */
static int terms_of(const trli_solver *s)
{
    return s->ask.solves > SOLVES_FEW || s->sim->problem->time.adaptive ? 2 : TRLI_CORRECTIONS_MOST;
}

trl_err trli_guess_history_compile(trli_solver *s)
{
    trli_model *model = s->sim->model;
    trli_ir_value *value = NULL;
    trl_err err = TRL_OK;
    if (s->ask.solves == 0 || !s->linear || s->direct || s->settings.method == TRL_SOLVE_DIRECT) return TRL_OK;
    const int n = s->ask.solves < SOLVES_MOST ? s->ask.solves : SOLVES_MOST;
    struct trli_guesses *h = s->history = trli_model_keep(model, sizeof *h);
    if (!h) return model->ir.err;
    *h = (struct trli_guesses){
        .n = n, .terms = terms_of(s), .of = trli_model_keep(model, (size_t)n * sizeof *h->of), .next = -1};
    value = trli_model_keep(model, ((size_t)s->ask.n + 1) * sizeof *value);
    TRL_TRY(model->ir.err);
    TRL_TRY(add_fields(s, h));
    TRL_TRY(compile_guess(s, h, value));
    TRL_TRY(compile_note(s, h, value));
    s->stats.guessed = h->n;
    s->stats.guess_steps = h->terms;
done:
    return err;
}

void trli_guess_history_equalise(const trli_solver *s)
{
    const struct trli_guesses *h = s->history;
    for (int i = 0; h && i < s->ask.n; ++i) {
        trli_equalise(s->sim->model, s->x.now[i], h->plain.now[i]);
        for (int k = 0; k < h->n; ++k)
            for (int j = 0; j < h->terms; ++j)
                trli_equalise(s->sim->model, h->of[0].last[0].now[i], h->of[k].last[j].now[i]);
    }
}

/* ---- a solve ---- */

trl_err trli_guess_provide(trli_solver *s)
{
    trl_err err = TRL_OK;
    if (!s->guess_due) return TRL_OK;
    s->guess_due = false;
    TRL_TRY(trli_solver_program(s, s->guess));
    trli_vector_swap(s, &s->x);
done:
    return err;
}

void trli_solver_guess(trli_solver *solver)
{
    solver->guess_due = true;
}

trl_err trli_solver_extrapolate(trli_solver *solver, double factor, trl_gidx step, double time)
{
    trl_err err = TRL_OK;
    if (solver->method == TRL_SOLVE_DIRECT) return TRL_OK;
    solver->step = step;
    solver->time = time;
    trli_solver_set(solver, solver->length, factor);
    TRL_TRY(trli_solver_program(solver, solver->extrapolate));
    trli_vector_swap(solver, &solver->x);
done:
    return err;
}

static void swap(const trli_solver *s, const trli_vector *a, const trli_vector *b)
{
    for (int i = 0; i < s->ask.n; ++i) trli_frame_swap(s->sim->frame, a->now[i], b->now[i]);
}

/* Run a program with the corrections of a solve. */
static trl_err run_with(trli_solver *s, int k, trli_program *program)
{
    const struct trli_guesses *h = s->history;
    for (int j = 0; j < h->terms && k > 0; ++j) swap(s, &h->of[0].last[j], &h->of[k].last[j]);
    const trl_err err = trli_solver_program(s, program);
    for (int j = 0; j < h->terms && k > 0; ++j) swap(s, &h->of[0].last[j], &h->of[k].last[j]);
    return err;
}

/* Those of a polynomial through values at equal distances. */
static void set_factors(const trli_solver *s, const struct trli_guesses *h, int known)
{
    static const double factor[TRLI_CORRECTIONS_MOST + 1][TRLI_CORRECTIONS_MOST] = {{0}, {1}, {2, -1}, {3, -3, 1}};
    const double dt = trli_solver_scalar(s, TRLI_SCALAR_DT);
    for (int j = 0; j < h->terms; ++j) trli_solver_set(s, h->factor[j], factor[known][j] * dt);
    trli_solver_set(s, h->inverse_dt, 1 / dt);
}

trl_err trli_guess_begin(trli_solver *s)
{
    struct trli_guesses *h = s->history;
    trl_err err = TRL_OK;
    if (!h) return TRL_OK;
    TRL_TRY(trli_guess_provide(s));
    h->extended = h->next >= 0 && h->next < h->n;
    if (!h->extended) return TRL_OK;
    set_factors(s, h, h->of[h->next].known);
    TRL_TRY(run_with(s, h->next, h->guess));
    trli_vector_swap(s, &s->x);
    for (int i = 0; i < s->ask.n; ++i) trli_frame_swap(s->sim->frame, s->x.next[i], h->plain.now[i]);
done:
    return err;
}

bool trli_guess_withdraw(trli_solver *s, double norm, double of_zero)
{
    struct trli_guesses *h = s->history;
    if (!h || !h->extended || h->of[h->next].known == 0 || norm <= of_zero) return false;
    swap(s, &s->x, &h->plain);
    h->of[h->next].known = 0;
    h->extended = false;
    return true;
}

void trli_solver_take_guess_back(trli_solver *solver)
{
    (void)trli_guess_withdraw(solver, 1, 0);
}

/* Let the oldest correction be the newest one; back: the other way round. */
static void rotate(const trli_solver *s, const trli_corrections *c, bool back)
{
    const int terms = s->history->terms;
    for (int j = 1; j < terms; ++j) {
        const int k = back ? j : terms - j;
        swap(s, &c->last[k - 1], &c->last[k]);
    }
}

trl_err trli_guess_note(trli_solver *s)
{
    struct trli_guesses *h = s->history;
    trl_err err = TRL_OK;
    if (!h || h->next < 0) return TRL_OK;
    if (h->extended) {
        trli_corrections *c = &h->of[h->next];
        TRL_TRY(run_with(s, h->next, h->note));
        rotate(s, c, false);
        c->known += c->known < h->terms;
        c->fresh = true;
    }
    ++h->next;
done:
    return err;
}

/* ---- steps ---- */

void trli_solver_end_step(trli_solver *solver, bool accepted)
{
    struct trli_guesses *h = solver->history;
    for (int k = 0; h && k < h->n; ++k) {
        trli_corrections *c = &h->of[k];
        if (c->fresh && !accepted) rotate(solver, c, true);
        if (c->fresh && !accepted) --c->known;
        c->fresh = false;
    }
    if (h) h->next = -1;
}

void trli_solver_begin_step(trli_solver *solver)
{
    trli_solver_end_step(solver, false);
    if (solver->history) solver->history->next = 0;
}

void trli_solver_leave_step(trli_solver *solver)
{
    if (solver->history) solver->history->next = -1;
}

void trli_solver_forget_steps(trli_solver *solver)
{
    struct trli_guesses *h = solver->history;
    for (int k = 0; h && k < h->n; ++k) {
        h->of[k].known = h->of[k].filled = 0;
        h->of[k].fresh = false;
    }
    if (h) h->next = -1;
}

/* ---- what a checkpoint has of it ---- */

int trli_solver_carried(const trli_solver *solver)
{
    return solver->history ? solver->history->n * solver->history->terms * solver->ask.n : 0;
}

/* Which corrections the i-th field is of, the how manieth one, and of which unknown. */
static trli_corrections *find_carried(const trli_solver *s, int i, int *term, int *unknown)
{
    const struct trli_guesses *h = s->history;
    *unknown = i % s->ask.n;
    *term = i / s->ask.n % h->terms;
    return &h->of[i / s->ask.n / h->terms];
}

int trli_solver_carried_field(const trli_solver *solver, int i, bool *known)
{
    int term, unknown;
    const trli_corrections *c = find_carried(solver, i, &term, &unknown);
    *known = term < c->known;
    return c->last[term].now[unknown];
}

void trli_solver_carry(trli_solver *solver, int i)
{
    int term, unknown;
    trli_corrections *c = find_carried(solver, i, &term, &unknown);
    trli_frame_written(solver->sim->frame, c->last[term].now[unknown]);
    if (c->filled == term * solver->ask.n + unknown) ++c->filled;
    c->known = c->filled / solver->ask.n;
}
