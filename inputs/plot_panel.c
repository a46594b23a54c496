/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include <math.h>
#include <string.h>

#include <output_hdf5_impl.h>
#include <plot_impl.h>

#include "memory_impl.h"

/* IO error with the reason that HDF5 gives. */
static trl_err fail_hdf5(const trli_plot_file *f)
{
    return trli_hdf5_fail(f->ctx, "read", f->path);
}

/* The points along each axis from the shape, which must be that of the location. */
static trl_err read_shape(const trli_plot_file *f, hid_t dataset, const char *field, trli_plot_axis axis[3])
{
    const trl_place place = {.file = f->path};
    trl_location location;
    hsize_t shape[H5S_MAX_RANK];
    if (!trli_hdf5_get_location(dataset, &location))
        return trl_fail(f->ctx, TRL_ERR_IO, &place, "field '%s' has no attribute 'location' that names one", field);
    hid_t space = H5Dget_space(dataset);
    int rank = H5Sget_simple_extent_dims(space, shape, NULL);
    H5Sclose(space);
    bool fits = rank == f->grid.dim + 1 && (hsize_t)f->index < shape[0];
    for (int a = 0; a < f->grid.dim && fits; ++a) {
        bool on_face = (int)location >> a & 1;
        trl_gidx points = (trl_gidx)shape[f->grid.dim - a];
        double h = f->grid.length[a] / (double)f->grid.cells[a];
        axis[a] = (trli_plot_axis){.axis = a,
                                   .low = f->grid.origin[a],
                                   .high = f->grid.origin[a] + f->grid.length[a],
                                   .spacing = h,
                                   .points = points,
                                   .first = f->grid.origin[a] + (on_face ? 0 : 0.5 * h),
                                   .wraps = on_face && points == f->grid.cells[a]};
        fits = points == f->grid.cells[a] || (on_face && points == f->grid.cells[a] + 1);
    }
    if (fits) return TRL_OK;
    return trl_fail(f->ctx, TRL_ERR_IO, &place,
                    "field '%s' at location '%s' has a shape that does not fit the attribute 'cells'", field,
                    trl_location_name(location));
}

/* Index of the points nearest to the plane. */
static trl_err cut(const trli_plot_file *f, const trli_plot_axis *axis, double at, trl_gidx *index)
{
    double slack = 1e-9 * (axis->high - axis->low);
    if (!(at >= axis->low - slack && at <= axis->high + slack))
        return trl_fail(f->ctx, TRL_ERR_INPUT, NULL,
                        "--slice %c=%g lies outside the domain, where %c goes from %g to %g", 'x' + axis->axis, at,
                        'x' + axis->axis, axis->low, axis->high);
    double nearest = floor((at - axis->first) / axis->spacing + 0.5);
    *index = (trl_gidx)fmax(nearest, 0);
    if (axis->wraps) *index %= axis->points;
    if (*index > axis->points - 1) *index = axis->points - 1;
    return TRL_OK;
}

/* Split the axes into those of the picture and the planes that cut it out; index: the points on the planes. */
static trl_err arrange(const trli_plot_file *f, const trli_plot_request *request, const trli_plot_axis axis[3],
                       trli_plot_data *data, trl_gidx index[3])
{
    int asked = 0;
    for (int a = 0; a < 3; ++a) {
        if (request->sliced[a] && a >= f->grid.dim)
            return trl_fail(f->ctx, TRL_ERR_INPUT, NULL, "--slice %c: the grid of '%s' has no axis %c", 'x' + a,
                            f->path, 'x' + a);
        asked += request->sliced[a];
    }
    if (asked >= f->grid.dim)
        return trl_fail(f->ctx, TRL_ERR_INPUT, NULL, "--slice: %d of %d axes are cut, which leaves nothing to draw",
                        asked, f->grid.dim);
    for (int a = 0; a < f->grid.dim; ++a) {
        bool middle = f->grid.dim == 3 && asked == 0 && a == 2;
        if (!request->sliced[a] && !middle) {
            data->axis[data->naxes++] = axis[a];
            continue;
        }
        trl_err err = cut(f, &axis[a], middle ? 0.5 * (axis[a].low + axis[a].high) : request->slice[a], &index[a]);
        if (err != TRL_OK) return err;
        data->plane[data->nplanes].axis = a;
        data->plane[data->nplanes++].at = axis[a].first + (double)index[a] * axis[a].spacing;
    }
    return TRL_OK;
}

/* No more than the points of the picture: a plane of a large field is read fast. */
static trl_err read_values(const trli_plot_file *f, hid_t dataset, const trl_gidx index[3], trli_plot_data *data)
{
    hsize_t start[4] = {(hsize_t)f->index}, count[4] = {1, 1, 1, 1}, total = 1;
    for (int k = 0; k < data->nplanes; ++k)
        start[f->grid.dim - data->plane[k].axis] = (hsize_t)index[data->plane[k].axis];
    for (int k = 0; k < data->naxes; ++k) {
        count[f->grid.dim - data->axis[k].axis] = (hsize_t)data->axis[k].points;
        total *= (hsize_t)data->axis[k].points;
    }
    data->value = trli_new(f->ctx, total, sizeof *data->value);
    if (!data->value)
        return trli_no_memory(f->ctx, NULL, "for %llu values of '%s'", (unsigned long long)total, data->name);
    hid_t file_space = H5Dget_space(dataset), memory_space = H5Screate_simple(1, &total, NULL);
    bool good = H5Sselect_hyperslab(file_space, H5S_SELECT_SET, start, NULL, count, NULL) >= 0 &&
                H5Dread(dataset, H5T_NATIVE_DOUBLE, memory_space, file_space, H5P_DEFAULT, data->value) >= 0;
    hid_t reason = trli_hdf5_keep_reason();
    H5Sclose(memory_space);
    H5Sclose(file_space);
    trli_hdf5_restore_reason(reason);
    if (!good) return fail_hdf5(f);
    trli_plot_data_scan(data);
    return TRL_OK;
}

trl_err trli_plot_panel_read(const trli_plot_file *f, const trli_plot_request *request, const char *wanted,
                             trli_plot_data *data)
{
    const trl_place place = {.file = f->path};
    trl_err err = TRL_OK;
    trli_plot_axis axis[3] = {{0}};
    trl_gidx index[3] = {0};
    hid_t dataset = -1;
    int tag;
    if (f->ntags == 0) return trl_fail(f->ctx, TRL_ERR_IO, &place, "has no fields");
    TRL_TRY(trli_plot_choose(f->ctx, f->path, "field", wanted, f->ntags, f->tag, &tag));
    data->step = f->step;
    data->time = f->time;
    data->name = trli_copy_text(f->ctx, f->tag[tag]);
    if (!data->name) return trli_no_memory(f->ctx, NULL, "for the name of a field");
    dataset = H5Dopen2(f->file, data->name, H5P_DEFAULT);
    if (dataset < 0) return fail_hdf5(f);
    TRL_TRY(read_shape(f, dataset, data->name, axis));
    TRL_TRY(arrange(f, request, axis, data, index));
    TRL_TRY(read_values(f, dataset, index, data));
done:
    if (dataset >= 0) H5Dclose(dataset);
    return err;
}
