/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* How boxes are cut into chunks for workers. */
#include "trl_test.h"

#include <chunks_impl.h>

enum { CUBE = 20, LARGE = 128, LONG = 4096 };

static trl_box box_of(trl_lidx nx, trl_lidx ny, trl_lidx nz)
{
    return (trl_box){{-1, 0, 3}, {nx - 1, ny, nz + 3}}; /* a box need not begin at 0 */
}

static int cut(const trl_box *box, int workers, int parts[3])
{
    return trli_box_cut(box, trli_chunks_wanted(trl_box_points(box), workers), parts);
}

static trl_lidx extent(const trl_box *box, int axis)
{
    return box->hi[axis] - box->lo[axis];
}

/* Chunks cover the box, each point once, and their extents differ by one point at most. */
static int check_cut(const trl_box *box, int workers, int parts[3])
{
    int n = cut(box, workers, parts);
    int64_t points = trl_box_points(box);
    char *covered = calloc((size_t)points, 1);
    ck_assert_ptr_nonnull(covered);
    ck_assert_int_eq(n, (intmax_t)parts[0] * parts[1] * parts[2]);
    for (int chunk = 0; chunk < n; ++chunk) {
        trl_box part = trli_box_part(box, parts, chunk);
        for (int a = 0; a < 3; ++a) {
            trl_lidx least = extent(box, a) / parts[a];
            ck_assert(part.lo[a] >= box->lo[a] && part.hi[a] <= box->hi[a]);
            ck_assert(extent(&part, a) == least || extent(&part, a) == least + 1);
        }
        for (int k = part.lo[2]; k < part.hi[2]; ++k)
            for (int j = part.lo[1]; j < part.hi[1]; ++j)
                for (int i = part.lo[0]; i < part.hi[0]; ++i)
                    ++covered[i - box->lo[0] +
                              extent(box, 0) * (j - box->lo[1] + extent(box, 1) * (ptrdiff_t)(k - box->lo[2]))];
    }
    int64_t once = 0; /* an assertion for each point would take longer than all else */
    for (int64_t p = 0; p < points; ++p) once += covered[p] == 1;
    ck_assert_int_eq(once, points);
    free(covered);
    return n;
}

START_TEST(chunks_cover_a_box_once_and_evenly)
{
    static const trl_lidx sizes[] = {1, 2, 7, 20, 33};
    static const int workers[] = {1, 2, 3, 7, 16, 64};
    int parts[3];
    for (int x = 0; x < 5; ++x)
        for (int y = 0; y < 5; ++y)
            for (int z = 0; z < 5; ++z)
                for (int w = 0; w < 6; ++w) {
                    trl_box box = box_of(sizes[x], sizes[y], sizes[z]);
                    check_cut(&box, workers[w], parts);
                }
}
END_TEST

static int64_t largest_chunk(const trl_box *box, const int parts[3], int n)
{
    int64_t most = 0;
    for (int chunk = 0; chunk < n; ++chunk) {
        const trl_box part = trli_box_part(box, parts, chunk);
        if (trl_box_points(&part) > most) most = trl_box_points(&part);
    }
    return most;
}

START_TEST(each_of_sixteen_workers_gets_a_like_chunk_of_a_small_cube)
{
    int parts[3];
    trl_box box = box_of(CUBE, CUBE, CUBE);
    int n = check_cut(&box, 16, parts);
    ck_assert_int_eq(n, 16);
    ck_assert_int_eq(parts[0], 1); /* rows stay whole */
    for (int chunk = 0; chunk < n; ++chunk) {
        trl_box part = trli_box_part(&box, parts, chunk);
        ck_assert_int_eq(trl_box_points(&part), CUBE * CUBE * CUBE / 16);
    }
    for (int workers = 2; workers <= 16; ++workers) {
        /* The largest share of a worker: less than a third above the mean. */
        n = check_cut(&box, workers, parts);
        ck_assert_int_ge(n, workers);
        const int64_t rounds = (n + workers - 1) / workers, most = largest_chunk(&box, parts, n);
        ck_assert_msg(3 * rounds * most * workers <= (int64_t)4 * CUBE * CUBE * CUBE,
                      "%d workers: %d chunks of up to %d points", workers, n, (int)most);
    }
}
END_TEST

START_TEST(workers_share_larger_cubes_evenly)
{
    int parts[3];
    for (int size = 33; size <= 65; ++size)
        for (int workers = 2; workers <= 4; ++workers) {
            const trl_box box = box_of(size, size, size);
            const int n = check_cut(&box, workers, parts);
            const int64_t rounds = (n + workers - 1) / workers, most = largest_chunk(&box, parts, n);
            ck_assert_msg(4 * rounds * most * workers <= 5 * trl_box_points(&box),
                          "%d^3, %d workers: %d chunks of up to %d points", size, workers, n, (int)most);
        }
}
END_TEST

START_TEST(a_caller_takes_more_planes_than_the_others)
{
    const trl_box cube = box_of(32, 32, 32), plane = box_of(100, 80, 1), line = box_of(LONG, 1, 1),
                  small = box_of(CUBE, CUBE, CUBE);
    ck_assert_int_eq(trli_planes_ahead(&cube, 2, 2), 17);
    ck_assert_int_eq(trli_planes_ahead(&cube, 2, 16), 0); /* what takes long is shared evenly */
    ck_assert_int_eq(trli_planes_ahead(&plane, 2, 2), 43);
    ck_assert_int_eq(trli_planes_ahead(&line, 2, 2), 0);   /* rows stay whole */
    ck_assert_int_eq(trli_planes_ahead(&small, 16, 2), 0); /* a plane is too much */
    for (int size = 1; size <= 40; ++size)
        for (int workers = 2; workers <= 16; ++workers) {
            const trl_box box = box_of(size, size + 3, size);
            const trl_lidx planes = trli_planes_ahead(&box, workers, 2);
            trl_box first, rest;
            if (planes == 0) continue;
            trli_box_split(&box, planes, &first, &rest);
            ck_assert_int_eq(trl_box_points(&first) + trl_box_points(&rest), trl_box_points(&box));
            ck_assert_int_ge(trl_box_points(&first) * (workers - 1), trl_box_points(&rest));
            ck_assert_int_le(4 * trl_box_points(&first) * workers, 5 * trl_box_points(&box));
        }
}
END_TEST

START_TEST(rows_are_cut_last)
{
    int parts[3];
    trl_box plane = box_of(LARGE, LARGE, 1), cube = box_of(LARGE, LARGE, LARGE), line = box_of(LONG, 1, 1);
    ck_assert_int_ge(check_cut(&plane, 8, parts), 8);
    ck_assert(parts[0] == 1 && parts[2] == 1);
    ck_assert_int_ge(check_cut(&cube, 8, parts), 64);
    ck_assert_int_eq(parts[0], 1);
    ck_assert_int_ge(check_cut(&line, 8, parts), 8);
    ck_assert(parts[1] == 1 && parts[2] == 1);
}
END_TEST

START_TEST(one_worker_and_a_few_points_need_no_chunks)
{
    int parts[3];
    trl_box cube = box_of(LARGE, LARGE, LARGE), few = box_of(5, 3, 2), none = box_of(0, 4, 4);
    ck_assert_int_eq(cut(&cube, 1, parts), 1);
    ck_assert_int_eq(cut(&few, 16, parts), 1);
    ck_assert_int_eq(cut(&none, 16, parts), 1);
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, chunks_cover_a_box_once_and_evenly);
    tcase_add_test(tc, each_of_sixteen_workers_gets_a_like_chunk_of_a_small_cube);
    tcase_add_test(tc, workers_share_larger_cubes_evenly);
    tcase_add_test(tc, a_caller_takes_more_planes_than_the_others);
    tcase_add_test(tc, rows_are_cut_last);
    tcase_add_test(tc, one_worker_and_a_few_points_need_no_chunks);
}

TRL_TEST_MAIN("chunks", add_tests)
