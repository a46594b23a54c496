// ctest: np=1 labels=threads
/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Random calls and copies of three mock devices, ordered by fences, against serial execution. */
#include "mock_support.h"

enum { MOCKS = 3, SPACES = MOCKS + 1, VALUES = 5, WORDS = 16, COMMANDS = 400 };

/* A value in a space, what serial execution has there, and the commands that used it since, with the last that wrote
 * it. */
typedef struct instance {
    uint64_t *at, serial[WORDS];
    int users, user[COMMANDS + 1]; /* the first: the writer */
} instance;

typedef struct command {
    trl_device *device;
    trli_stream stream;
    trli_fence *fence;
    uint64_t *to, *from; /* of a call */
    double seconds;
} command;

static instance instances[SPACES][VALUES];
static command commands[COMMANDS];
static uint64_t random_state;

static int any(int n)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (int)((random_state >> 33) % (uint64_t)n);
}

static void mix(uint64_t *to, const uint64_t *from)
{
    for (int i = 0; i < WORDS; ++i) to[i] = 5 * to[i] + from[(i + 1) % WORDS];
}

static trl_err call_mix(void *data, const trl_task_args *args, bool *done)
{
    command *c = data;
    mix(c->to, c->from);
    return work_for(&c->seconds, args, done);
}

static void wait_for(const command *c, const command *other)
{
    if (c->device != other->device || c->stream != other->stream)
        ck_ok(c->device->ops->wait(c->device, c->stream, other->fence));
}

/* Wait for what used the instances, and be their user. */
static void order(int number, instance *to, instance *from)
{
    const command *c = &commands[number];
    if (from->users > 0) wait_for(c, &commands[from->user[0]]);
    for (int i = 0; i < to->users; ++i) wait_for(c, &commands[to->user[i]]);
    if (from->users == 0) from->user[from->users++] = number; /* no writer: a reader stands in for it */
    from->user[from->users++] = number;
    to->users = 1;
    to->user[0] = number;
}

static void give(int number)
{
    command *c = &commands[number];
    const bool is_call = any(2) == 0;
    const int space = 1 + any(MOCKS), other = any(SPACES);
    instance *to = &instances[space][any(VALUES)], *from = &instances[is_call ? space : other][any(VALUES)];
    if (to == from) return;
    if (!is_call && any(2) == 0) {
        instance *swapped = to;
        to = from;
        from = swapped;
    }
    c->device = mock(space - 1);
    c->stream = is_call ? TRLI_STREAM_COMPUTE : (trli_stream)any(TRLI_STREAMS);
    c->fence = new_fence(c->device);
    order(number, to, from);
    if (is_call) {
        c->to = to->at;
        c->from = from->at;
        c->seconds = any(3) == 0 ? 2e-5 * any(5) : 0;
        ck_ok(give_call(c->device, call_mix, c));
        mix(to->serial, from->serial);
    } else {
        const int to_space = (int)((to - instances[0]) / VALUES), from_space = (int)((from - instances[0]) / VALUES);
        ck_ok(give_copy(c->device, c->stream, to->at, to_space, from->at, from_space, sizeof to->serial));
        memcpy(to->serial, from->serial, sizeof to->serial);
    }
    ck_ok(c->device->ops->set(c->device, c->stream, c->fence));
}

static void check_random(uint64_t seed)
{
    uint64_t host[VALUES][WORDS], back[WORDS];
    random_state = seed;
    memset(instances, 0, sizeof instances);
    memset(commands, 0, sizeof commands);
    open_mocks(seed % 2 ? "1:rate=100M;1:speed=0.5;1:latency=20us" : "3:clock=virtual");
    for (int s = 0; s < SPACES; ++s)
        for (int v = 0; v < VALUES; ++v) {
            instance *x = &instances[s][v];
            for (int i = 0; i < WORDS; ++i) x->serial[i] = (uint64_t)any(1 << 30);
            x->at = s == 0 ? memcpy(host[v], x->serial, sizeof back) : allocate(mock(s - 1), sizeof back);
            if (s == 0) continue;
            ck_ok(give_copy(mock(s - 1), TRLI_STREAM_IN, x->at, s, x->serial, 0, sizeof back));
            ck_ok(wait_stream(mock(s - 1), TRLI_STREAM_IN));
        }
    for (int i = 0; i < COMMANDS; ++i) give(i);
    for (int i = 0; i < COMMANDS; ++i)
        if (commands[i].fence) commands[i].device->ops->fence_destroy(commands[i].device, commands[i].fence);
    for (int d = 0; d < MOCKS; ++d) mock(d)->ops->finish(mock(d));
    for (int s = 0; s < SPACES; ++s)
        for (int v = 0; v < VALUES; ++v) {
            if (s > 0) {
                ck_ok(give_copy(mock(s - 1), TRLI_STREAM_OUT, back, 0, instances[s][v].at, s, sizeof back));
                ck_ok(wait_stream(mock(s - 1), TRLI_STREAM_OUT));
            }
            ck_assert_msg(memcmp(s > 0 ? back : host[v], instances[s][v].serial, sizeof back) == 0,
                          "value %d in space %d differs, seed %d", v, s, (int)seed);
        }
    close_mocks();
}

START_TEST(random_commands_of_three_devices_give_what_serial_ones_do)
{
    const int seeds = test_long() ? 200 : 20;
    for (int seed = 1; seed <= seeds; ++seed) check_random((uint64_t)seed);
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, random_commands_of_three_devices_give_what_serial_ones_do);
}
TRL_TEST_MAIN("device random", add_tests)
