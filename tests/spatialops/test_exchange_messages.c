/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
// ctest: np=1,2,3,4,8
/* Exchanges message by message, in random orders, with ranks that dawdle: by MPI, packed in shared memory, and lent. */
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

/* Whoever has sent may write its points again. Twice: as before. */
static void spoil(const problem *p)
{
    for (int f = 0; f < p->nfields; ++f)
        for (int l = 0; l < p->layout->nlocal; ++l) {
            const trl_box *owned = &p->arrays[f][l].owned;
            for (trl_lidx k = owned->lo[2]; k < owned->hi[2]; ++k)
                for (trl_lidx j = owned->lo[1]; j < owned->hi[1]; ++j)
                    for (trl_lidx i = owned->lo[0]; i < owned->hi[0]; ++i)
                        *word_at(&p->arrays[f][l], i, j, k) ^= UINT64_MAX;
        }
}

/* Every message's next call, in a random order, until all are done. What was sent is spoiled while others read it. */
static trl_err exchange_by_messages(const problem *p, random_source *r)
{
    const trl_exchange *e = p->exchange;
    const int nsends = e->sends.nmessages, n = nsends + e->receives.nmessages;
    bool packed[STEPS_MOST] = {false}, over[STEPS_MOST] = {false}, posted = false;
    int left = n, unsent = nsends;
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
        if (i >= nsends) {
            dawdle(r);
            unpack_all(p, i - nsends, 1 + below(r, 4));
            trli_exchange_release(e, i - nsends);
        }
        over[i] = true;
        --left;
        if (i < nsends && --unsent == 0) spoil(p);
    }
    if (nsends > 0) spoil(p);
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

typedef enum exchange_way { MESSAGES, PACKED, LENT, WAYS } exchange_way;

static const char *const name_of_way[WAYS] = {"messages", "shared memory", "loans"};

/* Before setup. */
static void open_loans(problem *p, trli_loans **loans)
{
    p->open = trli_open_memory_create(test_ctx, 2000000, true);
    ck_assert_ptr_nonnull(p->open);
    ck_ok(trli_loans_create(test_ctx, p->open, false, loans));
    ck_assert_ptr_nonnull(*loans);
}

static void close_loans(problem *p, trli_loans **loans)
{
    trli_loans_destroy(loans);
    trli_open_memory_destroy(&p->open);
}

static bool lends(const trl_exchange *e)
{
    bool any = false;
    for (int i = 0; i < e->sends.nmessages; ++i) any |= e->sends.message[i].lends;
    return any;
}

/* The same problem on all ranks; the orders differ. */
static bool check_seed(int seed)
{
    random_source common = {(uint64_t)seed * 7919 + 1}, own = {(uint64_t)seed * 104729 + (uint64_t)ranks() + 17};
    own.state += (uint64_t)trl_context_rank(test_ctx) * 31337;
    const int dim = 1 + below(&common, 3), periodic = below(&common, 1 << dim);
    trl_gidx cells[3] = {1, 1, 1};
    int cuts[3] = {1, 1, 1};
    for (int a = 0; a < dim; ++a) {
        cells[a] = (a == 0 ? 8 * below(&common, 3) : 0) + 2 * ranks() + 3 + below(&common, 9);
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
    const exchange_way way = (exchange_way)below(&common, WAYS);
    trli_loans *loans = NULL;
    if (way == LENT) open_loans(&p, &loans);
    setup(&p, &grid, cuts);
    if (way != MESSAGES) ck_ok(trli_exchange_share(p.exchange, loans));
    const bool lent = lends(p.exchange);
    for (int i = 0; way != MESSAGES && i < p.exchange->sends.nmessages; ++i)
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
    ck_assert_msg(on_all_ranks(wrong == 0), "seed %d, %s: %ld wrong: %s", seed, name_of_way[way], (long)wrong,
                  test_messages());
    teardown(&p);
    close_loans(&p, &loans);
    return lent;
}

START_TEST(any_order_gives_the_same_ghosts)
{
    int lent = 0;
    for (int seed = 0; seed < SEEDS; ++seed) lent += check_seed(seed);
    ck_assert(ranks() == 1 || lent > 0);
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

static void check_labels(exchange_way way)
{
    enum { LABELS = 3 };
    random_source own = {(uint64_t)trl_context_rank(test_ctx) * 31337 + 7};
    trl_grid grid = make_grid(2, (trl_gidx[3]){24, 40, 1}, 3);
    problem p = {.nfields = 2, .field = {{.footprint = star(1, 2)}, {.footprint = cube(2, 2)}}};
    trl_exchange *plan;
    trli_loans *loans = NULL;
    int64_t wrong = 0;
    if (way == LENT) open_loans(&p, &loans);
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
    if (way != MESSAGES) ck_ok(trli_exchange_share(p.exchange, loans));
    ck_assert(ranks() == 1 || lends(p.exchange) == (way == LENT));
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
    close_loans(&p, &loans);
}

START_TEST(ranks_may_have_several_messages_for_one_another)
{
    for (exchange_way way = MESSAGES; way < WAYS; ++way) check_labels(way);
}
END_TEST

START_TEST(a_shared_exchange_that_some_ranks_began_can_be_destroyed)
{
    trl_grid grid = make_grid(2, (trl_gidx[3]){16, 64, 1}, 1);
    problem p = {.nfields = 1, .field = {{.footprint = star(1, 2)}}};
    bool posted = true;
    setup(&p, &grid, (int[3]){ranks(), 1, 1});
    ck_ok(trli_exchange_share(p.exchange, NULL));
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
