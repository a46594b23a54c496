/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
// ctest: np=1,2,3,4,8
/* Exchanges message by message, in random orders, with ranks that dawdle: by MPI, and in shared memory. */
#include <time.h>

#include "exchange_fixture.h"
#include "exchange_impl.h"

enum {
#ifdef TRL_SMALL_SIZES
    SEEDS = 20,
#else
    SEEDS = 60,
#endif
    ROUNDS = 5,
    STEPS_MOST = 64 /* of one round: post, then each message's way */
};

typedef struct random {
    uint64_t state;
} random_source;

static int below(random_source *r, int n)
{
    r->state = r->state * 6364136223846793005u + 1442695040888963407u;
    return (int)((r->state >> 33) % (uint64_t)n);
}

static void dawdle(random_source *r)
{
    if (below(r, 8) == 0) nanosleep(&(struct timespec){.tv_nsec = below(r, 200) * 1000L}, NULL);
}

static void pack_all(const problem *p, int message, int chunks)
{
    const trl_exchange *e = p->exchange;
    const trli_message *m = &e->sends.message[message];
    for (int c = chunks; c-- > 0;)
        for (int t = m->first; t < m->first + m->n; ++t) {
            const trli_exchange_piece *piece = &e->sends.transfer[t];
            trli_exchange_pack(e, message, t, c, chunks, &p->arrays[piece->field][piece->source_local]);
        }
}

static void unpack_all(const problem *p, int message, int chunks)
{
    const trl_exchange *e = p->exchange;
    const trli_message *m = &e->receives.message[message];
    for (int c = 0; c < chunks; ++c)
        for (int t = m->first; t < m->first + m->n; ++t) {
            const trli_exchange_piece *piece = &e->receives.transfer[t];
            trli_exchange_unpack(e, message, t, c, chunks, &p->arrays[piece->field][piece->target_local]);
        }
}

/* Every message's next call, in a random order, until all are done. */
static trl_err exchange_by_messages(const problem *p, random_source *r)
{
    const trl_exchange *e = p->exchange;
    const int nsends = e->sends.nmessages, n = nsends + e->receives.nmessages;
    bool packed[STEPS_MOST] = {false}, over[STEPS_MOST] = {false}, posted = false;
    int left = n;
    trl_err err = TRL_OK;
    while (!posted) {
        posted = true;
        TRL_TRY(trli_exchange_post(p->exchange, &posted));
        dawdle(r);
    }
    for (int n2 = 0; n2 < e->copies.ntransfers; ++n2) {
        const trli_exchange_piece *t = &e->copies.transfer[n2];
        trli_exchange_copy(t, 0, 1, &p->arrays[t->field][t->source_local], &p->arrays[t->field][t->target_local]);
    }
    while (left > 0) {
        const int i = below(r, n);
        bool done = true;
        if (over[i]) continue;
        dawdle(r);
        if (i < nsends && !packed[i]) pack_all(p, i, 1 + below(r, 4));
        if (i < nsends) packed[i] = true;
        TRL_TRY(i < nsends ? trli_exchange_send(p->exchange, i, &done)
                           : trli_exchange_receive(p->exchange, i - nsends, &done));
        if (!done) continue;
        if (i >= nsends) unpack_all(p, i - nsends, 1 + below(r, 4));
        over[i] = true;
        --left;
    }
done:
    return err;
}

/* Ranks whose neighbours send them nothing run ahead. */
static trl_footprint upwind(int dim)
{
    trl_offsets part = {{0, 0, 0}, {0, 0, 0}};
    part.lo[dim - 1] = -1;
    return footprint_of(1, &part, dim);
}

/* The same problem on all ranks; the orders differ. */
static void check_seed(int seed)
{
    random_source common = {(uint64_t)seed * 7919 + 1}, own = {(uint64_t)seed * 104729 + (uint64_t)ranks() + 17};
    own.state += (uint64_t)trl_context_rank(test_ctx) * 31337;
    const int dim = 1 + below(&common, 3), periodic = below(&common, 1 << dim);
    trl_gidx cells[3] = {1, 1, 1};
    int cuts[3] = {1, 1, 1};
    for (int a = 0; a < dim; ++a) {
        cells[a] = 2 * ranks() + 3 + below(&common, 9);
        cuts[a] = 1 + below(&common, 3);
    }
    while (cuts[0] * cuts[1] * cuts[2] < ranks()) ++cuts[dim - 1];
    trl_grid grid = make_grid(dim, cells, periodic);
    problem p = {.nfields = 1 + below(&common, 3)};
    const int shape = below(&common, 3);
    for (int f = 0; f < p.nfields; ++f)
        p.field[f] = (trl_exchange_field){.location = trl_location_on((trl_location)below(&common, 8), dim),
                                          .footprint = shape == 0   ? star(1, dim)
                                                       : shape == 1 ? cube(1, dim)
                                                                    : upwind(dim)};
    const bool shared = below(&common, 2) == 0;
    setup(&p, &grid, cuts);
    if (shared) ck_ok(trli_exchange_share(p.exchange));
    for (int i = 0; shared && i < p.exchange->sends.nmessages; ++i)
        ck_assert_ptr_nonnull(p.exchange->sends.message[i].slot);
    int64_t wrong = 0;
    trl_err err = TRL_OK;
    for (int round = 0; round < ROUNDS && err == TRL_OK; ++round) {
        exchange_round = (uint64_t)round;
        visit_all(&p, true);
        err = below(&common, 3) ? exchange_by_messages(&p, &own) : exchange_once(&p);
        wrong += err == TRL_OK ? visit_all(&p, false) : 1;
        free_arrays(&p);
        make_arrays(&p);
    }
    exchange_round = 0;
    ck_assert_msg(on_all_ranks(wrong == 0), "seed %d, %s: %ld wrong: %s", seed, shared ? "shared memory" : "messages",
                  (long)wrong, test_messages());
    teardown(&p);
}

START_TEST(any_order_gives_the_same_ghosts)
{
    for (int seed = 0; seed < SEEDS; ++seed) check_seed(seed);
}
END_TEST

static trli_exchange_piece *with_labels(const trli_traffic *traffic, int labels)
{
    trli_exchange_piece *piece = calloc((size_t)traffic->ntransfers + 1, sizeof *piece);
    ck_assert_ptr_nonnull(piece);
    for (int i = 0; i < traffic->ntransfers; ++i) {
        piece[i] = traffic->transfer[i];
        piece[i].label = (piece[i].target + piece[i].field + piece[i].direction) % labels;
    }
    return piece;
}

static void check_labels(bool shared)
{
    enum { LABELS = 3 };
    random_source own = {(uint64_t)trl_context_rank(test_ctx) * 31337 + 7};
    trl_grid grid = make_grid(2, (trl_gidx[3]){24, 40, 1}, 3);
    problem p = {.nfields = 2, .field = {{.footprint = star(1, 2)}, {.footprint = cube(2, 2)}}};
    trl_exchange *plan;
    int64_t wrong = 0;
    setup(&p, &grid, (int[3]){2, ranks(), 1});
    trl_exchange *whole = p.exchange;
    const trli_traffic *copies = &whole->copies;
    trli_exchange_piece *receive = with_labels(&whole->receives, LABELS), *send = with_labels(&whole->sends, LABELS);
    ck_ok(trli_exchange_plan_pieces(test_ctx, LABELS, whole->receives.ntransfers, receive, whole->sends.ntransfers,
                                    send, &plan));
    free(receive);
    free(send);
    ck_ok(trli_exchange_create_from(plan, &p.exchange));
    ck_assert(ranks() == 1 || p.exchange->sends.nmessages > whole->sends.nmessages);
    if (shared) ck_ok(trli_exchange_share(p.exchange));
    for (int round = 0; round < ROUNDS; ++round) {
        exchange_round = (uint64_t)round;
        visit_all(&p, true);
        wrong += exchange_by_messages(&p, &own) != TRL_OK;
        for (const trli_exchange_piece *t = copies->transfer; t < copies->transfer + copies->ntransfers; ++t)
            trli_exchange_copy(t, 0, 1, &p.arrays[t->field][t->source_local], &p.arrays[t->field][t->target_local]);
        wrong += visit_all(&p, false);
        free_arrays(&p);
        make_arrays(&p);
    }
    exchange_round = 0;
    ck_assert(on_all_ranks(wrong == 0));
    trl_exchange_destroy(&p.exchange);
    trl_exchange_destroy(&plan);
    p.exchange = whole;
    teardown(&p);
}

START_TEST(ranks_may_have_several_messages_for_one_another)
{
    check_labels(false);
    check_labels(true);
}
END_TEST

START_TEST(a_shared_exchange_that_some_ranks_began_can_be_destroyed)
{
    trl_grid grid = make_grid(2, (trl_gidx[3]){16, 64, 1}, 1);
    problem p = {.nfields = 1, .field = {{.footprint = star(1, 2)}}};
    bool posted = true;
    setup(&p, &grid, (int[3]){ranks(), 1, 1});
    ck_ok(trli_exchange_share(p.exchange));
    visit_all(&p, true);
    bool good = exchange_once(&p) == TRL_OK;
    if (trl_context_rank(test_ctx) == 0) good = good && trli_exchange_post(p.exchange, &posted) == TRL_OK;
    teardown(&p);
    ck_assert(on_all_ranks(good));
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, any_order_gives_the_same_ghosts);
    tcase_add_test(tc, ranks_may_have_several_messages_for_one_another);
    tcase_add_test(tc, a_shared_exchange_that_some_ranks_began_can_be_destroyed);
}

TRL_TEST_MAIN("exchange_messages", add_tests)
