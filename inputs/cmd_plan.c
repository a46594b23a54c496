/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* `trellis plan`: what a deck would run, without running it. */
#include "command_impl.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include <trl_simulation.h>

#include "clock_impl.h"
#include "context_impl.h"
#include "files_impl.h"
#include "memory_impl.h"
#include "memstream_impl.h"

static void print_line(void *data, const char *line)
{
    size_t length = strlen(line);
    fputs(line, data);
    if (!length || line[length - 1] != '\n') fputc('\n', data);
}

static trl_err write_graph(trl_context *ctx, const trl_simulation *sim, const char *prefix, const char *kind,
                           bool tasks)
{
    char *path = NULL;
    trli_new_file file = {.file = -1};
    FILE *out = NULL;
    trl_err err;
    if (!prefix[0] || prefix[strlen(prefix) - 1] == '/')
        TRL_TRY(trl_fail(ctx, TRL_ERR_INPUT, NULL,
                         "trellis plan: --dot '%s' is no beginning of names of files; use one as --dot graph", prefix));
    TRL_TRY(trli_format(ctx, &path, "%s.%s.dot", prefix, kind));
    TRL_TRY(trli_file_begin(ctx, path, true, &file));
    TRL_TRY(trli_file_stream(&file, &out));
    TRL_TRY(trl_simulation_write_dot(sim, tasks, out));
    if (fflush(out) != 0) err = trli_file_fail(ctx, "write", path, errno);
done:
    if (out) fclose(out);
    err = trli_file_end(&file, err);
    if (err == TRL_OK) printf("wrote %s\n", path);
    trli_free(path);
    return err;
}

/* The description is that of rank 0; the memory of the others follows from their own plans. */
static trl_err print_memory_of_ranks(trl_context *ctx, const trl_simulation *sim)
{
    trl_simulation_stats stats;
    trl_simulation_get_stats(sim, &stats);
    int64_t all[2] = {stats.planned_bytes, -stats.planned_bytes};
    trl_err err = trli_agree_max(ctx, TRL_OK, 2, all);
    if (err != TRL_OK) return err;
    if (trl_context_rank(ctx) == 0 && trl_context_ranks(ctx) > 1)
        printf("planned memory of a rank: %" PRId64 " to %" PRId64 " bytes on %d ranks\n", -all[1], all[0],
               trl_context_ranks(ctx));
    return TRL_OK;
}

/* Bytes of the points that this rank has of some fields. */
static int64_t bytes_of(const trl_simulation *sim, bool equations)
{
    const trl_layout *layout = trl_simulation_layout(sim);
    int64_t points = 0;
    for (int f = 0; f < trl_simulation_fields(sim); ++f) {
        const trl_field_info *info = trl_simulation_field(sim, f);
        if (!(equations ? info->equation : info->output)) continue;
        for (int p = 0; p < layout->nlocal; ++p) {
            const trl_box box = trl_patch_owned(layout, &layout->patch[p], info->location);
            points += (int64_t)(box.hi[0] - box.lo[0]) * (box.hi[1] - box.lo[1]) * (box.hi[2] - box.lo[2]);
        }
    }
    return points * (int64_t)sizeof(double);
}

/* What is copied while files are written. */
static void print_copies(trl_context *ctx, const trl_simulation *sim, const trli_deck_options *options)
{
    const int64_t fields = bytes_of(sim, false), state = options->has_checkpoint ? bytes_of(sim, true) : 0;
    if (trl_context_rank(ctx) > 0 || !options->beside_steps || fields + state == 0) return;
    printf("copies       %" PRId64 " bytes of fields and %" PRId64
           " of checkpoints on this rank, while they are written beside steps\n",
           fields, state);
}

static trl_err write_graphs(trl_context *ctx, const trl_simulation *sim, const char *prefix)
{
    trl_err err = TRL_OK;
    if (!prefix || trl_context_rank(ctx) != 0) return TRL_OK;
    TRL_TRY(write_graph(ctx, sim, prefix, "expressions", false));
    TRL_TRY(write_graph(ctx, sim, prefix, "tasks", true));
done:
    return err;
}

/* Steps until the means of the kernels' times say something: at least so many, and so long that compilers have ended.
 */
static trl_err measure(trl_context *ctx, trl_simulation *sim)
{
    const int least = 25;
    const double seconds = 2, start = trli_clock();
    int more = 1;
    trl_err err = TRL_OK;
    for (int n = 1; more && !trl_simulation_done(sim); ++n) {
        TRL_TRY(trl_simulation_step(sim));
        more = n < least || trli_clock() - start < seconds;
        TRL_TRY(trli_broadcast(ctx, &more, 1, MPI_INT, 0));
    }
done:
    return err;
}

/* ---- placement ---- */

enum { PLACEMENT_TAG = 0x706c };

static trl_err compose_placement(trl_context *ctx, const trl_simulation *sim, trli_memstream *stream)
{
    trl_err err;
    if (!trli_memstream_open(ctx, stream)) return trli_no_memory(ctx, NULL, "for the text of a placement");
    if (trl_context_ranks(ctx) > 1)
        fprintf(stream->out, "rank %d of %d\n", trl_context_rank(ctx), trl_context_ranks(ctx));
    TRL_TRY(trl_simulation_write_placement_file(sim, stream->out));
    if (!trli_memstream_close(stream)) err = trli_no_memory(ctx, NULL, "for the text of a placement");
done:
    return err;
}

/* What the file is of, in comments. */
static void write_head(const trl_simulation *sim, const char *deck, FILE *out)
{
    const trl_devices *devices = trl_simulation_devices(sim);
    fprintf(out, "# placement of the tasks of a step of %s\n# executors: workers", deck);
    for (int i = 0; devices && i < trl_devices_opened(devices); ++i)
        fprintf(out, "; device %d: %s", i, trl_devices_info(devices, i)->name);
    fputs("\n# task, which of that name, executor; tasks that are not named are done by the workers\n", out);
}

static trl_err open_placement(trl_context *ctx, const char *path, trli_new_file *file, FILE **out)
{
    trl_err err;
    TRL_TRY(trli_folder_create_for(ctx, path));
    TRL_TRY(trli_file_begin(ctx, path, true, file));
    TRL_TRY(trli_file_stream(file, out));
done:
    return err;
}

/* The lines of another rank. */
static trl_err append_placement(trl_context *ctx, int rank, FILE *out)
{
    int length;
    MPI_Status status;
    MPI_Comm comm = trl_context_comm(ctx);
    char *text = NULL;
    trl_err err;
    TRL_TRY(trli_mpi_check(ctx, MPI_Probe(rank, PLACEMENT_TAG, comm, &status), "MPI_Probe"));
    TRL_TRY(trli_mpi_check(ctx, MPI_Get_count(&status, MPI_CHAR, &length), "MPI_Get_count"));
    text = trli_new(ctx, (size_t)length + 1, 1);
    if (!text) TRL_TRY(trli_no_memory(ctx, NULL, "for the placement of rank %d", rank));
    TRL_TRY(trli_mpi_check(ctx, MPI_Recv(text, length, MPI_CHAR, rank, PLACEMENT_TAG, comm, MPI_STATUS_IGNORE),
                           "MPI_Recv"));
    fputs(text, out);
done:
    trli_free(text);
    return err;
}

/* Rank 0 writes the tasks of all ranks. */
static trl_err write_placement(trl_context *ctx, const trl_simulation *sim, const char *deck, const char *path)
{
    const bool root = trl_context_rank(ctx) == 0;
    trli_memstream stream = {0};
    trli_new_file file = {.file = -1};
    FILE *out = NULL;
    trl_err err;
    if (!path) return TRL_OK;
    err = compose_placement(ctx, sim, &stream);
    if (root && err == TRL_OK) err = open_placement(ctx, path, &file, &out);
    err = trl_context_agree(ctx, err);
    if (err == TRL_OK && !root)
        err = trli_mpi_check(
            ctx, MPI_Send(stream.text, (int)stream.length, MPI_CHAR, 0, PLACEMENT_TAG, trl_context_comm(ctx)),
            "MPI_Send");
    if (err == TRL_OK && root) {
        write_head(sim, deck, out);
        fputs(stream.text, out);
        for (int rank = 1; err == TRL_OK && rank < trl_context_ranks(ctx); ++rank)
            err = append_placement(ctx, rank, out);
        if (err == TRL_OK && fflush(out) != 0) err = trli_file_fail(ctx, "write", path, errno);
    }
    if (out) fclose(out);
    if (root) err = trli_file_end(&file, err);
    trli_memstream_discard(&stream);
    if (root && err == TRL_OK) printf("wrote %s\n", path);
    return trl_context_agree(ctx, err);
}

/* Only where there is a choice. */
static trl_err print_placement(trl_context *ctx, const trl_simulation *sim)
{
    const trl_devices *devices = trl_simulation_devices(sim);
    if (trl_context_rank(ctx) > 0 || !devices || trl_devices_opened(devices) == 0) return TRL_OK;
    return trl_simulation_write_placement(sim, stdout);
}

static trl_err check_options(trl_context *ctx, const trli_arguments *arguments)
{
    if (!trli_arguments_value(arguments, "--devices") || !trli_arguments_value(arguments, "--measure")) return TRL_OK;
    return trl_fail(ctx, TRL_ERR_INPUT, NULL,
                    "trellis plan: --measure cannot run steps on devices that are not there; leave out --measure or "
                    "--devices");
}

/* What is predicted is said to be so before anything else is. */
static void announce(trl_context *ctx, const char *devices)
{
    if (devices && trl_context_rank(ctx) == 0)
        printf("prediction   for %s, which need not be there: no step was run, and times are those of a table of "
               "machines (docs/hybrid.md)\n",
               devices);
}

int trli_cmd_plan(trl_context *ctx, const trli_arguments *arguments)
{
    bool verbose = trli_arguments_value(arguments, "--verbose") != NULL;
    trl_registry *registry = NULL;
    trli_deck *deck = NULL;
    trl_simulation *sim = NULL;
    trl_problem problem;
    const char *devices = trli_arguments_value(arguments, "--devices");
    trl_err err = TRL_OK, found;
    trl_context_begin_phase(ctx);
    trl_context_set_stop(ctx, trli_signals_name);
    TRL_TRY(check_options(ctx, arguments));
    TRL_TRY(trli_command_deck(ctx, arguments, &registry, &deck));
    problem = *trli_deck_problem(deck);
    problem.model_devices = devices;
    TRL_TRY(trl_simulation_create(ctx, &problem, &sim));
    found = trl_simulation_initialise(sim); /* a plan is shown all the same, with what bounds dt */
    if (found == TRL_OK && trli_arguments_value(arguments, "--measure")) TRL_TRY(measure(ctx, sim));
    announce(ctx, devices);
    if (trl_context_rank(ctx) == 0) err = trl_simulation_describe(sim, verbose, print_line, stdout);
    TRL_TRY(err);
    TRL_TRY(print_placement(ctx, sim));
    TRL_TRY(print_memory_of_ranks(ctx, sim));
    print_copies(ctx, sim, trli_deck_options_of(deck));
    TRL_TRY(write_graphs(ctx, sim, trli_arguments_value(arguments, "--dot")));
    TRL_TRY(write_placement(ctx, sim, arguments->operand[0], trli_arguments_value(arguments, "--placement")));
    err = found;
done:
    err = trl_context_end_phase(ctx, err);
    trl_simulation_destroy(&sim);
    trli_deck_destroy(&deck);
    trl_registry_destroy(&registry);
    return trli_command_finish(ctx, err);
}
