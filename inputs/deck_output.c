/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include <trl_policy.h>

#include "deck_build_impl.h"
#include "memory_impl.h"
#include "output_impl.h"

/* Steps whose dt follows from the error land on times of lists. */
static trl_err add_landings(trli_deck *deck, int n, const double *at)
{
    trl_time_entry *time = &deck->problem.time;
    double *all;
    trl_err err = trli_arena_alloc(deck->arena, (size_t)(time->nlandings + n) * sizeof *all, &all);
    if (err != TRL_OK) return err;
    for (int i = 0; i < time->nlandings; ++i) all[i] = time->landing[i];
    for (int i = 0; i < n; ++i) all[time->nlandings + i] = at[i];
    time->landing = all;
    time->nlandings += n;
    return TRL_OK;
}

/* The times of a list. One outside the problem's time is never met, which the user may not have meant. */
static trl_err read_times(trli_deck *deck, const trli_yaml *list, trl_every *every)
{
    const trl_time_entry *time = &deck->problem.time;
    double *at;
    trl_err err;
    if (list->n == 0)
        return trl_fail(deck->ctx, TRL_ERR_INPUT, trli_yaml_place(list),
                        "'every.at' is an empty list: name at least one time, such as `at: [0.1, 0.5]`");
    TRL_TRY(trli_arena_alloc(deck->arena, (size_t)list->n * sizeof *at, &at));
    for (int i = 0; i < list->n; ++i) {
        at[i] = trli_yaml_number(list->item[i]);
        if (at[i] < time->start || (time->has_end && at[i] > time->end))
            trl_warn(deck->ctx, trli_yaml_place(list->item[i]),
                     "t = %g is never met: time goes from %g to %g; remove it, or change time.start or time.end", at[i],
                     time->start, time->has_end ? time->end : HUGE_VAL);
    }
    every->nat = list->n;
    every->at = at;
    err = add_landings(deck, list->n, at);
done:
    return err;
}

trl_err trli_every_read(trli_deck *deck, const trli_yaml *parent, trl_every *every)
{
    const trli_yaml *node = trli_yaml_get(parent, "every"), *time = trli_yaml_get(node, "time");
    const trli_yaml *at = trli_yaml_get(node, "at");
    *every = (trl_every){.steps = trli_yaml_whole(trli_yaml_get(node, "steps"), 0),
                         .log = (int)trli_yaml_whole(trli_yaml_get(node, "log"), 0)};
    if (time) every->time = trli_yaml_number(time);
    return at ? read_times(deck, at, every) : TRL_OK;
}

/* Files of fields have variables of their own. */
static trl_err check_name(trli_deck *deck, const char *name, const trl_place *place)
{
    static const char *const taken[] = {"time", "step", "xf", "yf", "zf"};
    for (size_t i = 0; i < sizeof taken / sizeof *taken; ++i)
        if (strcmp(name, taken[i]) == 0)
            return trl_fail(
                deck->ctx, TRL_ERR_INPUT, place,
                "'%s' cannot be written: it is a variable that files of fields have for themselves, as time "
                "step xf yf zf are; choose another name",
                name);
    return TRL_OK;
}

/* The default, written out: all equations, in their order. */
static trl_err write_fields(trli_deck *deck, trli_yaml *output, trli_yaml **fields)
{
    const trl_problem *problem = &deck->problem;
    trli_yaml *key, *item;
    trl_err err;
    TRL_TRY(trli_yaml_scalar(deck->arena, "fields", trli_yaml_place(output), &key));
    TRL_TRY(trli_yaml_create(deck->arena, TRLI_LIST_NODE, trli_yaml_place(output), fields));
    for (int i = 0; i < problem->nequations; ++i) {
        TRL_TRY(trli_yaml_scalar(deck->arena, problem->equation[i].name, &problem->equation[i].place, &item));
        TRL_TRY(trli_yaml_append(deck->arena, *fields, item));
    }
    TRL_TRY(trli_yaml_put(deck->arena, output, key, *fields));
done:
    return err;
}

/* The names in a list of fields, no name twice. */
static trl_err read_names(trli_deck *deck, const trli_yaml *list, trli_words *words)
{
    trli_map seen = {0};
    trl_err err = TRL_OK, kept = TRL_OK;
    for (int i = 0; i < list->n; ++i)
        kept = trli_worse(kept, trli_names_expand(deck, &list->item[i]->text, deck->problem.parameters, false, words));
    for (int i = 0; i < words->n; ++i) {
        if (trli_map_find(&seen, words->word[i]) >= 0)
            kept = trli_worse(kept, trl_fail(deck->ctx, TRL_ERR_INPUT, &words->place[i], "field '%s' is listed twice",
                                             words->word[i]));
        else
            TRL_TRY(trli_map_add(deck->arena, &seen, words->word[i], i));
    }
    err = kept;
done:
    return err;
}

static trl_err read_fields(trli_deck *deck, trli_yaml *output)
{
    trl_problem *problem = &deck->problem;
    trli_yaml *fields = trli_yaml_get(output, "fields"), *keep = trli_yaml_get(output, "keep");
    trli_words words = {0}, kept = {0};
    trl_err err = TRL_OK;
    if (!fields) TRL_TRY(write_fields(deck, output, &fields));
    err = read_names(deck, fields, &words);
    if (keep) err = trli_worse(err, read_names(deck, keep, &kept));
    for (int i = 0; i < problem->nequations; ++i)
        err = trli_worse(err, check_name(deck, problem->equation[i].name, &problem->equation[i].place));
    for (int i = 0; i < words.n; ++i) err = trli_worse(err, check_name(deck, words.word[i], &words.place[i]));
    problem->noutputs = words.n;
    problem->writes_nothing = words.n == 0;
    problem->output = words.word;
    problem->output_place = words.place;
    problem->nkept = kept.n;
    problem->keep = kept.word;
    problem->keep_place = kept.place;
done:
    return err;
}

/* A name heads a column of series.csv. */
static trl_err check_column(trli_deck *deck, const char *name, const trl_place *place)
{
    if (strcmp(name, "step") == 0 || strcmp(name, "time") == 0)
        return trl_fail(deck->ctx, TRL_ERR_INPUT, place,
                        "'%s' is a column of its own in series.csv; choose another name", name);
    if (name[strcspn(name, ",\"\n\r")])
        return trl_fail(deck->ctx, TRL_ERR_INPUT, place,
                        "the name of a column cannot contain commas, quotes or line breaks");
    return TRL_OK;
}

/* Columns of a family are names; that of one value is any text. */
static trl_err read_column(trli_deck *deck, const trli_yaml *key, const trli_yaml *value, trli_words *columns,
                           trli_map *seen, trl_series_entry **entry, int *capacity)
{
    trl_problem *problem = &deck->problem;
    const char *open = strchr(key->text.chars, '{');
    const int before = columns->n;
    trl_err err = TRL_OK;
    const bool family = open && strstr(open, "..");
    if (family) TRL_TRY(trli_names_expand(deck, &key->text, problem->parameters, false, columns));
    for (int i = before; i < (family ? columns->n : before + 1); ++i) {
        const trl_series_entry one = {.name = family ? columns->word[i] : key->text.chars,
                                      .value = value->text,
                                      .names = family ? columns->indices[i] : problem->parameters};
        if (trli_map_find(seen, one.name) >= 0)
            return trl_fail(deck->ctx, TRL_ERR_INPUT, trli_yaml_place(key),
                            "two values of the series are named '%s'; choose another name", one.name);
        TRL_TRY(trli_map_add(deck->arena, seen, one.name, problem->nseries));
        TRL_TRY(check_column(deck, one.name, trli_yaml_place(key)));
        TRL_TRY(trli_arena_grow(deck->arena, entry, problem->nseries, capacity, sizeof **entry));
        (*entry)[problem->nseries++] = one;
    }
done:
    return err;
}

static trl_err read_spectrum(trli_deck *deck, const trli_yaml *key, const trli_yaml *value, trli_map *seen,
                             trl_spectrum_entry *entry)
{
    const trli_yaml *of = trli_yaml_get(value, "of"), *along = trli_yaml_get(value, "along");
    trli_words words = {0};
    trl_err err = TRL_OK;
    if (trli_map_find(seen, key->text.chars) >= 0)
        return trl_fail(deck->ctx, TRL_ERR_INPUT, trli_yaml_place(key),
                        "a value of the series is named '%s', too; choose another name", key->text.chars);
    TRL_TRY(check_column(deck, key->text.chars, trli_yaml_place(key)));
    TRL_TRY(trli_map_add(deck->arena, seen, key->text.chars, 0));
    if (of->kind == TRLI_SCALAR_NODE)
        TRL_TRY(trli_names_expand(deck, &of->text, deck->problem.parameters, false, &words));
    else
        TRL_TRY(read_names(deck, of, &words));
    *entry = (trl_spectrum_entry){.name = key->text.chars,
                                  .nfields = words.n,
                                  .field = words.word,
                                  .axis = strcmp(along->text.chars, "all") == 0 ? -1 : along->text.chars[0] - 'x',
                                  .place = *trli_yaml_place(key)};
done:
    return err;
}

static trl_err read_spectra(trli_deck *deck, const trli_yaml *spectra, trli_map *seen)
{
    trl_spectrum_entry *entry;
    trl_err err = TRL_OK;
    if (!spectra) return TRL_OK;
    TRL_TRY(trli_arena_alloc(deck->arena, ((size_t)spectra->n + 1) * sizeof *entry, &entry));
    for (int i = 0; i < spectra->n; ++i)
        err = trli_worse(err, read_spectrum(deck, spectra->key[i], spectra->item[i], seen, &entry[i]));
    deck->problem.nspectra = spectra->n;
    deck->problem.spectrum = entry;
done:
    return err;
}

static trl_err read_profile(trli_deck *deck, const trli_yaml *key, const trli_yaml *value, trli_map *seen,
                            trl_profile_entry *entry)
{
    trl_err err = TRL_OK;
    if (trli_map_find(seen, key->text.chars) >= 0)
        return trl_fail(deck->ctx, TRL_ERR_INPUT, trli_yaml_place(key),
                        "a value or a spectrum of the series is named '%s', too; choose another name", key->text.chars);
    TRL_TRY(check_column(deck, key->text.chars, trli_yaml_place(key)));
    *entry = (trl_profile_entry){.name = key->text.chars,
                                 .value = trli_yaml_get(value, "of")->text,
                                 .axis = trli_yaml_get(value, "along")->text.chars[0] - 'x',
                                 .place = *trli_yaml_place(key)};
done:
    return err;
}

static trl_err read_profiles(trli_deck *deck, const trli_yaml *profiles, trli_map *seen)
{
    trl_profile_entry *entry;
    trl_err err = TRL_OK;
    if (!profiles) return TRL_OK;
    TRL_TRY(trli_arena_alloc(deck->arena, ((size_t)profiles->n + 1) * sizeof *entry, &entry));
    for (int i = 0; i < profiles->n; ++i)
        err = trli_worse(err, read_profile(deck, profiles->key[i], profiles->item[i], seen, &entry[i]));
    deck->problem.nprofiles = profiles->n;
    deck->problem.profile = entry;
done:
    return err;
}

static void read_means(trli_deck *deck, const trli_yaml *from)
{
    const trl_time_entry *time = &deck->problem.time;
    deck->options.has_means = true;
    deck->options.means_from = trli_yaml_number(from);
    if (time->has_end && deck->options.means_from >= time->end)
        trl_warn(deck->ctx, trli_yaml_place(from),
                 "there are no means from t = %g on: time ends at %g; begin earlier, or change time.end",
                 deck->options.means_from, time->end);
}

static trl_err read_series(trli_deck *deck, const trli_yaml *series)
{
    const trli_yaml *values = trli_yaml_get(series, "values");
    trl_series_entry *entry = NULL;
    trli_words columns = {.indexed = true};
    trli_map seen = {0};
    int capacity = 0;
    trl_err err = trli_every_read(deck, series, &deck->options.series_every);
    for (int i = 0; values && i < values->n; ++i)
        err = trli_worse(err, read_column(deck, values->key[i], values->item[i], &columns, &seen, &entry, &capacity));
    deck->problem.series = entry;
    deck->problem.series_solvers = series && trli_yaml_is_true(trli_yaml_get(series, "solvers"));
    if (series && !values && !trli_yaml_get(series, "spectra") && !trli_yaml_get(series, "profiles") &&
        !deck->problem.series_solvers)
        return trl_fail(deck->ctx, TRL_ERR_INPUT, trli_yaml_place(series),
                        "'output.series' has no columns: add `values: {...}`, `spectra: {...}`, `profiles: {...}` or "
                        "`solvers: true`");
    if (series) err = trli_worse(err, read_spectra(deck, trli_yaml_get(series, "spectra"), &seen));
    if (series) err = trli_worse(err, read_profiles(deck, trli_yaml_get(series, "profiles"), &seen));
    if (trli_yaml_get(series, "means")) read_means(deck, trli_yaml_get(trli_yaml_get(series, "means"), "from"));
    return err;
}

/* receivers.nc has variables and dimensions of its own. */
static trl_err check_received(trli_deck *deck, const char *name, const trl_place *place)
{
    static const char *const taken[] = {"time", "step", "receiver"};
    for (size_t i = 0; i < sizeof taken / sizeof *taken; ++i)
        if (strcmp(name, taken[i]) == 0)
            return trl_fail(deck->ctx, TRL_ERR_INPUT, place,
                            "'%s' cannot be a value of receivers: receivers.nc has time, step and receiver for itself; "
                            "choose another name",
                            name);
    return TRL_OK;
}

/* The path of a file that the deck names; in the deck as used it no longer depends on where the deck lies. */
static trl_err read_path(trli_deck *deck, trli_yaml *mapping, const char *name, const char **path)
{
    const int at = trli_yaml_find(mapping, name);
    const trli_yaml *node = mapping->item[at];
    trli_yaml *written;
    trl_err err;
    *path = node->text.chars;
    TRL_TRY(trli_path_join(deck->arena, trli_loaded_folder(&deck->loaded, trli_yaml_place(node)), *path, path));
    TRL_TRY(trli_yaml_scalar(deck->arena, *path, trli_yaml_place(node), &written));
    written->literal = true;
    TRL_TRY(trli_yaml_put(deck->arena, mapping, mapping->key[at], written));
done:
    return err;
}

/* Collective. */
static trl_err read_points(trli_deck *deck, trli_yaml *receivers, trl_receivers_entry *entry)
{
    const trli_yaml *path = trli_yaml_get(receivers, "path"), *dataset = trli_yaml_get(receivers, "dataset");
    trli_dataset_name from = {
        .name = dataset->text.chars, .path_place = *trli_yaml_place(path), .name_place = *trli_yaml_place(dataset)};
    double *read = NULL, *points;
    const int dim = deck->problem.grid.dim;
    trl_err err;
    entry->place = from.name_place;
    TRL_TRY(read_path(deck, receivers, "path", &from.path));
    TRL_TRY(trli_dataset_points(deck->ctx, &from, dim, &read, &entry->n));
    TRL_TRY(trli_arena_alloc(deck->arena, (size_t)entry->n * (size_t)dim * sizeof *points, &points));
    memcpy(points, read, (size_t)entry->n * (size_t)dim * sizeof *points);
    entry->at = points;
done:
    trli_free(read);
    return err;
}

static trl_err read_receivers(trli_deck *deck, trli_yaml *receivers)
{
    trl_receivers_entry *entry = &deck->problem.receivers;
    trl_every *every = &deck->options.receivers_every;
    trli_words words = {0};
    if (!receivers) return TRL_OK;
    const trli_yaml *values = trli_yaml_get(receivers, "values");
    trl_err err = trli_every_read(deck, receivers, every);
    if (!trli_yaml_get(receivers, "every")) every->steps = 1;
    err = trli_worse(err, read_names(deck, values, &words));
    for (int i = 0; i < words.n; ++i) err = trli_worse(err, check_received(deck, words.word[i], &words.place[i]));
    if (err == TRL_OK) err = read_points(deck, receivers, entry);
    entry->nvalues = words.n;
    entry->value = words.word;
    entry->value_place = words.place;
    return err;
}

static int read_compression(const trli_yaml *node)
{
    return strcmp(node->text.chars, "off") == 0 ? 0 : (int)trli_yaml_whole(node, 0);
}

trl_err trli_output_read(trli_deck *deck)
{
    trli_yaml *output = trli_yaml_get(deck->root, "output");
    const trli_yaml *directory = trli_yaml_get(output, "directory"), *checkpoint = trli_yaml_get(output, "checkpoint");
    trli_deck_options *options = &deck->options;
    trl_err err = TRL_OK;
    options->directory = directory->text.chars;
    options->directory_place = *trli_yaml_place(directory);
    if (!*options->directory)
        err = trl_fail(deck->ctx, TRL_ERR_INPUT, &options->directory_place, "'output.directory' is empty");
    err = trli_worse(err, trli_every_read(deck, output, &options->every));
    options->compression = read_compression(trli_yaml_get(output, "compression"));
    options->beside_steps = trli_yaml_is_true(trli_yaml_get(output, "beside_steps"));
    options->has_checkpoint = checkpoint != NULL;
    if (checkpoint) options->checkpoint_place = *trli_yaml_place(checkpoint);
    err = trli_worse(err, trli_every_read(deck, checkpoint, &options->checkpoint_every));
    options->checkpoint_keep = (int)trli_yaml_whole(trli_yaml_get(checkpoint, "keep"), 0);
    err = trli_worse(err, read_fields(deck, output));
    err = trli_worse(err, read_receivers(deck, trli_yaml_get(output, "receivers")));
    err = trli_worse(err, read_series(deck, trli_yaml_get(output, "series")));
    deck->problem.time.dense =
        options->every.time > 0 || options->series_every.time > 0 || options->receivers_every.time > 0;
    return err;
}

/* "0,1" */
static trl_err write_devices(trli_deck *deck, int n, const int *gpu)
{
    enum { DIGITS = 12 };
    char *text;
    int at = 0;
    trl_err err = TRL_OK;
    TRL_TRY(trli_arena_alloc(deck->arena, (size_t)n * DIGITS, &text));
    for (int i = 0; i < n; ++i) at += snprintf(text + at, DIGITS, "%s%d", i ? "," : "", gpu[i]);
    deck->problem.devices = text;
done:
    return err;
}

static trl_err read_devices(trli_deck *deck, const trli_yaml *devices)
{
    trli_device_choice *to = &deck->options.devices;
    int *gpu;
    trl_err err = TRL_OK;
    deck->problem.devices_place = *trli_yaml_place(devices);
    if (devices->kind == TRLI_SCALAR_NODE) {
        to->target = (trl_target)trli_deck_word(deck, "run", "devices");
        deck->problem.devices = devices->text.chars;
        return TRL_OK;
    }
    if (devices->n == 0)
        return trl_fail(deck->ctx, TRL_ERR_INPUT, trli_yaml_place(devices), "'run.devices' is an empty list");
    TRL_TRY(trli_arena_alloc(deck->arena, (size_t)devices->n * sizeof *gpu, &gpu));
    for (int i = 0; i < devices->n; ++i) gpu[i] = (int)trli_yaml_whole(devices->item[i], 0);
    *to = (trli_device_choice){TRL_TARGET_GPU, devices->n, gpu};
    err = write_devices(deck, devices->n, gpu);
done:
    return err;
}

/* A word that placement knows, or else a file, whose text all ranks get. */
static trl_err read_placement(trli_deck *deck, trli_yaml *run)
{
    trl_problem *problem = &deck->problem;
    const trli_yaml *placement = trli_yaml_get(run, "placement");
    const char *text = placement->text.chars;
    trli_file file;
    trl_err err;
    problem->placement_place = *trli_yaml_place(placement);
    if (strcmp(text, "auto") == 0) return TRL_OK;
    if (trl_placement_is_known(text)) {
        problem->placement = text;
        return TRL_OK;
    }
    if (!strpbrk(text, "./"))
        return trl_fail(deck->ctx, TRL_ERR_INPUT, trli_yaml_place(placement),
                        "'run.placement' is no known way to place tasks: '%s'; use auto, finish_time, round_robin, "
                        "min_load, devices, random:SEED, or a file, with a '.' or '/' in its name",
                        text);
    TRL_TRY(read_path(deck, run, "placement", &problem->placement));
    err = trli_deck_file_read(deck->ctx, deck->arena, problem->placement, trli_yaml_place(placement), &file);
    if (err == TRL_ERR_INPUT) trl_advise(deck->ctx, "write the file with: trellis plan DECK --placement FILE");
    TRL_TRY(err);
    problem->placement_text = file.text;
done:
    return err;
}

static trl_err read_owners(trli_deck *deck, const trli_yaml *owners)
{
    trl_problem *problem = &deck->problem;
    const char *text = owners->text.chars;
    problem->owners_auto = strcmp(text, "auto") == 0;
    if (problem->owners_auto || trl_owners_parse(text, &problem->owners)) return TRL_OK;
    return trl_fail(deck->ctx, TRL_ERR_INPUT, trli_yaml_place(owners),
                    "'run.owners' is no known way to deal patches to ranks: '%s'; use auto, blocks, curve, or "
                    "random:SEED with a number for SEED",
                    text);
}

/* The cells that each rank gets: a word, or a number for each. */
static trl_err read_shares(trli_deck *deck, const trli_yaml *shares)
{
    trl_problem *problem = &deck->problem;
    const bool list = shares->kind == TRLI_LIST_NODE;
    trl_err err = TRL_OK;
    problem->shares_place = *trli_yaml_place(shares);
    problem->shares_auto = !list && strcmp(shares->text.chars, "auto") == 0;
    if (!list) return TRL_OK;
    double *share;
    TRL_TRY(trli_arena_alloc(deck->arena, (size_t)shares->n * sizeof *share, &share));
    for (int i = 0; i < shares->n; ++i) share[i] = trli_yaml_number(shares->item[i]);
    problem->owners.share = share;
    problem->nshares = shares->n;
done:
    return err;
}

/* A built-in policy, or a plugin. */
static trl_err read_scheduler(trli_deck *deck, trli_yaml *run)
{
    const trli_yaml *scheduler = trli_yaml_get(run, "scheduler");
    const char *text = deck->problem.scheduler = scheduler->text.chars;
    deck->problem.scheduler_place = *trli_yaml_place(scheduler);
    return trl_policy_is_known(text) ? TRL_OK : read_path(deck, run, "scheduler", &deck->problem.scheduler);
}

/* How many workers, or how many prefer tasks and operators. */
static trl_err read_threads(trli_deck *deck, const trli_yaml *threads)
{
    trl_problem *problem = &deck->problem;
    problem->threads_place = *trli_yaml_place(threads);
    if (threads->kind != TRLI_MAPPING_NODE) {
        deck->options.threads = (int)trli_yaml_whole(threads, 0);
        problem->adapt_workers = deck->options.threads == 0;
        return TRL_OK;
    }
    problem->task_workers = (int)trli_yaml_whole(trli_yaml_get(threads, "tasks"), 0);
    problem->operator_workers = (int)trli_yaml_whole(trli_yaml_get(threads, "operators"), 0);
    deck->options.threads = problem->task_workers + problem->operator_workers;
    if (deck->options.threads > 0) return TRL_OK;
    return trl_fail(deck->ctx, TRL_ERR_INPUT, trli_yaml_place(threads),
                    "'run.threads' has no workers: 'tasks' and 'operators' are both 0");
}

static void read_time_blocking(trl_problem *problem, const trli_yaml *node)
{
    const bool automatic = strcmp(node->text.chars, "auto") == 0;
    problem->time_blocking = automatic ? 0 : (int)trli_yaml_whole(node, 0);
    problem->time_blocking_place = *trli_yaml_place(node);
}

static size_t memory_of(const trli_yaml *node)
{
    const double most = (double)(SIZE_MAX / 2);
    return strcmp(node->text.chars, "auto") == 0 ? 0 : (size_t)fmin(trli_yaml_number(node), most);
}

static unsigned disabled_passes(const trli_yaml *passes)
{
    unsigned set = 0;
#define READ(NAME, name, bit, doc) set |= trli_yaml_is_true(trli_yaml_get(passes, #name)) ? 0 : (bit);
    TRL_PASS_LIST(READ)
#undef READ
    return set;
}

trl_err trli_run_read(trli_deck *deck)
{
    trl_err err;
    trli_yaml *run = trli_yaml_get(deck->root, "run");
    trl_problem *problem = &deck->problem;
    trli_deck_options *options = &deck->options;
    options->title = trli_yaml_get(deck->root, "title")->text.chars;
    read_time_blocking(problem, trli_yaml_get(run, "time_blocking"));
    TRL_TRY(read_scheduler(deck, run));
    problem->fusion = (trl_fusion)trli_deck_word(deck, "run", "fusion");
    problem->compile = (trl_compile)trli_deck_word(deck, "run", "compile");
    const trli_yaml *balance = trli_yaml_get(run, "balance");
    problem->balance = strcmp(balance->text.chars, "auto") == 0 ? 0 : trli_yaml_number(balance);
    problem->disabled_passes = disabled_passes(trli_yaml_get(run, "passes"));
    problem->nan_check = trli_yaml_is_true(trli_yaml_get(run, "nan_check"));
    problem->fast_math = trli_yaml_is_true(trli_yaml_get(trli_yaml_get(deck->root, "numerics"), "fast_math"));
    options->memory = memory_of(trli_yaml_get(run, "memory"));
    TRL_TRY(read_threads(deck, trli_yaml_get(run, "threads")));
    TRL_TRY(read_devices(deck, trli_yaml_get(run, "devices")));
    problem->no_prefetch = !trli_yaml_is_true(trli_yaml_get(run, "prefetch"));
    TRL_TRY(read_owners(deck, trli_yaml_get(run, "owners")));
    TRL_TRY(read_shares(deck, trli_yaml_get(run, "shares")));
    TRL_TRY(read_placement(deck, run));
done:
    return err;
}
