/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Runs of direct solutions on GPUs. Each GPU takes values out of the memory of others of its rank, once these are
 * there, and writes to its own alone. What goes to other ranks is packed into memory of the host, and unpacked from
 * there, by kernels. */
#include "arithmetic_impl.h"
#include "context_impl.h"
#include "slabs_gpu_impl.h"

enum { ARRAYS = TRLI_LINES_ARRAYS, SCALARS = TRLI_LINES_SCALARS, BLOCKS_MOST = 1 << 14 /* that move values */ };

/* Where values are: in slabs of members, or in patches. */
typedef enum place { PATCHES, PLANES, LINES } place;

static int member_of(const trli_slab_job *r, place of, int array)
{
    const trli_team *team = r->memory->team;
    if (of != PATCHES) return array;
    int m = 0;
    while (trli_team_member(team, m)->space != r->space[array]) ++m;
    return m;
}

static const trli_view *view_of(const trli_slab_job *r, place of, bool out, int array)
{
    const trli_slab_member *m = &r->memory->member[of == PATCHES ? 0 : array];
    if (of == PATCHES) return out ? &r->solution[array] : &r->residual[array];
    return of == PLANES ? &m->planes.view : &m->lines.view;
}

/* ---- moves ---- */

/* Values between two places, by kernels of a member. */
typedef struct moving {
    const trli_slab_job *run;
    const trli_shuffle *shuffle;
    trli_shuffle_way way;
    trli_shuffle_kind kind;
    place from, to;
    bool add;
    int member;
} moving;

static trl_kernel_array array_at(const trli_view *v, const int lo[3])
{
    trl_kernel_array a = {.at = v->at, .stride = {v->stride[0], v->stride[1], v->stride[2]}};
    for (int k = 0; k < 3; ++k) a.at += lo[k] * v->stride[k];
    return a;
}

static trl_err launch_move(const moving *v, const trli_common *part, const trl_task_args *args)
{
    const bool back = v->way != TRLI_SHUFFLE_THERE;
    const trli_view message =
        v->kind == TRLI_SHUFFLE_OWN ? (trli_view){0} : trli_shuffle_message(v->shuffle, v->way, v->kind, part);
    const trli_view *from = &message, *to = &message;
    trl_kernel_array array[ARRAYS] = {{0}};
    double scalar[SCALARS] = {v->add && v->kind != TRLI_SHUFFLE_SENT};
    trli_gpu_layout layout = {.blocks = {1, 1, 1}, .threads = TRLI_SLAB_THREADS};
    trli_gpu_call call = {
        .label = "move values", .array = array, .scalar = scalar, .shape = TRLI_GPU_GIVEN, .layout = &layout};
    int64_t points = 1;
    if (v->kind != TRLI_SHUFFLE_RECEIVED) from = view_of(v->run, v->from, false, part->array[back]);
    if (v->kind != TRLI_SHUFFLE_SENT) to = view_of(v->run, v->to, true, part->array[!back]);
    array[0] = array_at(from, part->lo);
    array[1] = array_at(to, part->lo);
    for (int a = 0; a < 3; ++a) {
        call.launch.hi[a] = part->hi[a] - part->lo[a];
        points *= call.launch.hi[a];
    }
    const int64_t blocks = trli_ceil_div(points, TRLI_SLAB_THREADS);
    layout.blocks[0] = (unsigned)(blocks < BLOCKS_MOST ? blocks : BLOCKS_MOST);
    return trli_gpu_launch(v->run->compiled, v->run->kernels->move, &call, args->space, args->stream);
}

/* Who has the values packs them; who gets values fetches or unpacks them. */
static trl_err move_parts(void *data, const trl_task_args *args, bool *done)
{
    const moving *v = data;
    const bool back = v->way != TRLI_SHUFFLE_THERE, sent = v->kind == TRLI_SHUFFLE_SENT;
    const trli_common *part;
    const int n = trli_shuffle_parts(v->shuffle, v->way, v->kind, &part);
    trl_err err = TRL_OK;
    (void)done;
    for (int i = 0; i < n; ++i) {
        if (member_of(v->run, sent ? v->from : v->to, part[i].array[sent ? back : !back]) != v->member) continue;
        TRL_TRY(launch_move(v, &part[i], args));
    }
done:
    return err;
}

static trl_err move_all(moving *v, trli_shuffle_kind kind)
{
    const trli_team *team = v->run->memory->team;
    trl_err err = TRL_OK;
    v->kind = kind;
    for (v->member = 0; v->member < trli_team_members(team); ++v->member)
        TRL_TRY(trli_team_call(team, v->member, move_parts, v));
done:
    return err;
}

/* *err: of this rank so far. Returns how messages went. */
static trl_err shuffle(moving *v, trli_shuffle *s, trl_err *err)
{
    trl_err exchanged = TRL_OK;
    if (!s) return TRL_OK;
    const bool messages = trli_shuffle_has_messages(s);
    v->shuffle = s;
    if (*err == TRL_OK && messages) *err = move_all(v, TRLI_SHUFFLE_SENT);
    if (*err == TRL_OK && messages) *err = trli_team_wait(v->run->memory->team);
    if (*err == TRL_OK && !messages && v->from != PATCHES) *err = trli_team_meet(v->run->memory->team);
    if (*err == TRL_OK) *err = move_all(v, TRLI_SHUFFLE_OWN);
    if (messages) exchanged = trli_shuffle_exchange(s, v->way);
    if (*err == TRL_OK && exchanged == TRL_OK && messages) *err = move_all(v, TRLI_SHUFFLE_RECEIVED);
    return exchanged;
}

/* ---- stages ---- */

/* Some stages, on the planes or lines of a member. */
typedef struct staging {
    const trli_slab_job *run;
    int begin, end, member;
} staging;

/* Strides along the axes of a stage. */
static trl_kernel_array turned(const trli_view *v, const trli_slab_stage *s)
{
    return (trl_kernel_array){.at = v->at, .stride = {v->stride[s->axis], v->stride[s->across], v->stride[s->rest]}};
}

static double *table_at(const trli_slab_member *m, size_t begin, int first)
{
    return begin > 0 ? m->memory + begin + first : NULL;
}

/* As trl_lines_body.h wants them. */
static void set_tables(const staging *g, const trli_slab_stage *s, const trli_gpu_slab *slab, trl_kernel_array *array)
{
    const trli_slab_member *m = &g->run->memory->member[g->member];
    const trli_axis_tables *table = g->run->memory->table;
    double *const first = table_at(m, table[s->across].value, slab->lo[s->across]);
    double *const second = table_at(m, table[s->rest].value, slab->lo[s->rest]);
    if (s->work == TRLI_SLAB_ELIMINATE) {
        array[1] = turned(&m->above, s);
        for (int k = 0; k < 3; ++k) array[2 + k].at = table_at(m, table[k].row, 0);
        array[5].at = first;
        array[6].at = second;
        array[7].at = table_at(m, table[s->across].weight, 0);
        array[8].at = table_at(m, table[s->rest].weight, 0);
        return;
    }
    array[2].at = table_at(m, table[s->axis].transform, 0);
    array[3].at = table_at(m, table[s->axis].index, 0);
    if (trli_slab_stage_has_planes(s)) {
        array[4].at = table_at(m, table[s->across].transform, 0);
        array[5].at = table_at(m, table[s->across].index, 0);
        return;
    }
    array[4].at = table_at(m, table[s->axis].value, 0);
    array[5].at = first;
    array[6].at = second;
}

static void set_scalars(const trli_slab_job *r, const trli_slab_stage *s, const trli_gpu_slab *slab, bool add,
                        double scalar[SCALARS])
{
    const trli_direct_plan *p = r->kernels->plan;
    const bool null = p->singular && slab->lo[s->across] == 0 && slab->lo[s->rest] == 0; /* it has the first line */
    if (s->work == TRLI_SLAB_ELIMINATE) {
        scalar[0] = p->scale;
        scalar[1] = null;
        scalar[2] = p->sets_mean;
        scalar[3] = p->balanced;
    } else {
        scalar[0] = add;
        scalar[1] = p->scale;
        scalar[2] = p->centre;
        scalar[3] = null;
    }
    scalar[4] = r->request->mean;
}

static trl_err launch_stage(const staging *g, int number, const trl_task_args *args)
{
    static const char *const label[TRLI_SLAB_WORKS] = {[TRLI_SLAB_PLANES_THERE] = "transform planes",
                                                       [TRLI_SLAB_PLANES_BACK] = "transform planes back",
                                                       [TRLI_SLAB_THERE] = "transform",
                                                       [TRLI_SLAB_SOLVE] = "transform and divide",
                                                       [TRLI_SLAB_ELIMINATE] = "eliminate",
                                                       [TRLI_SLAB_BACK] = "transform back"};
    const trli_slab_job *r = g->run;
    const trli_slab_stage *s = &r->kernels->stage[number];
    const trli_slab_member *m = &r->memory->member[g->member];
    const trli_gpu_slab *slab = number == r->kernels->solve ? &m->lines : &m->planes;
    const bool first = r->memory->direct && number == 0, last = r->memory->direct && number == r->kernels->n - 1;
    const int n[3] = {slab->n[s->axis], slab->n[s->across], slab->n[s->rest]};
    trli_gpu_layout layout = {.blocks = {(unsigned)trli_ceil_div(n[1], s->shape.lanes), (unsigned)n[2], 1},
                              .threads = (unsigned)(s->shape.lanes * s->shape.workers),
                              .shared = s->shape.shared};
    trl_kernel_array array[ARRAYS] = {{0}};
    double scalar[SCALARS];
    trli_gpu_call call = {
        .label = label[s->work], .array = array, .scalar = scalar, .shape = TRLI_GPU_GIVEN, .layout = &layout};
    for (int a = 0; a < 3; ++a) call.launch.hi[a] = n[a];
    if (trli_slab_stage_has_planes(s)) {
        layout.blocks[0] = (unsigned)n[2];
        layout.blocks[1] = 1;
    }
    array[0] = turned(first ? &r->residual[0] : &slab->local, s);
    array[1] = turned(last ? &r->solution[0] : &slab->local, s);
    set_tables(g, s, slab, array);
    set_scalars(r, s, slab, last && r->request->add, scalar);
    return trli_gpu_launch(r->compiled, s->kernel, &call, args->space, args->stream);
}

static trl_err do_stages(void *data, const trl_task_args *args, bool *done)
{
    const staging *g = data;
    trl_err err = TRL_OK;
    (void)done;
    for (int i = g->begin; i < g->end; ++i) TRL_TRY(launch_stage(g, i, args));
done:
    return err;
}

static void stages(const trli_slab_job *r, int begin, int end, trl_err *err)
{
    staging g = {.run = r, .begin = begin, .end = end};
    for (; g.member < trli_team_members(r->memory->team) && *err == TRL_OK; ++g.member)
        *err = trli_team_call(r->memory->team, g.member, do_stages, &g);
}

/* ---- a run ---- */

trl_err trli_slab_job_do(trli_slab_job *r, trl_err local)
{
    trli_slab_memory *m = r->memory;
    const int solve = r->kernels->solve, n = r->kernels->n;
    moving in = {.run = r, .way = TRLI_SHUFFLE_THERE, .from = PATCHES, .to = PLANES};
    moving across = {.run = r, .way = TRLI_SHUFFLE_THERE, .from = PLANES, .to = LINES};
    moving back = {.run = r, .way = TRLI_SHUFFLE_BACK, .from = LINES, .to = PLANES};
    moving out = {.run = r, .way = TRLI_SHUFFLE_BACK, .from = PLANES, .to = PATCHES, .add = r->request->add};
    const trl_err begun = trli_team_begin(m->team);
    trl_err err;
    if (local == TRL_OK) local = begun;
    TRL_TRY(shuffle(&in, m->outside, &local));
    stages(r, 0, solve, &local);
    TRL_TRY(shuffle(&across, m->inside, &local));
    stages(r, solve, solve + 1, &local);
    TRL_TRY(shuffle(&back, m->inside, &local));
    r->wrote = local == TRL_OK;
    stages(r, solve + 1, n, &local);
    TRL_TRY(shuffle(&out, m->outside, &local));
done:
    if (err == TRL_OK) err = local;
    const trl_err ended = trli_team_end(m->team);
    return err != TRL_OK ? err : ended;
}
