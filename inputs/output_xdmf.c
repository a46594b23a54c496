/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include <stdlib.h>
#include <string.h>

#include "files_impl.h"
#include "output_hdf5_impl.h"

enum { NAME_ROOM = 512 };

/* What the iteration over a step's datasets needs. */
typedef struct xdmf_scope {
    const char *file_name; /* of the HDF5 file, in the same folder */
    const char *averages;  /* group of the step's averages, or NULL */
    hid_t file;
    FILE *out;
} xdmf_scope;

static void put_escaped(FILE *out, const char *text)
{
    for (; *text; ++text) {
        switch (*text) {
        case '&':
            fputs("&amp;", out);
            break;
        case '<':
            fputs("&lt;", out);
            break;
        case '>':
            fputs("&gt;", out);
            break;
        case '"':
            fputs("&quot;", out);
            break;
        default:
            fputc(*text, out);
        }
    }
}

/* One attribute of cells from a dataset of three axes, or four for a vector. */
static herr_t put_attribute(hid_t group, const char *name, const xdmf_scope *s)
{
    char where[NAME_ROOM];
    hsize_t shape[4];
    hid_t data = H5Dopen2(group, name, H5P_DEFAULT);
    if (data < 0) return -1;
    hid_t space = H5Dget_space(data);
    int rank = H5Sget_simple_extent_ndims(space);
    bool good = (rank == 3 || rank == 4) && H5Sget_simple_extent_dims(space, shape, NULL) == rank &&
                H5Iget_name(data, where, sizeof where) > 0;
    H5Sclose(space);
    H5Dclose(data);
    if (!good) return -1;
    fputs("        <Attribute Name=\"", s->out);
    put_escaped(s->out, name);
    fprintf(s->out, "\" AttributeType=\"%s\" Center=\"Cell\">\n          <DataItem Dimensions=\"",
            rank == 4 ? "Vector" : "Scalar");
    for (int a = 0; a < rank; ++a) fprintf(s->out, "%s%llu", a ? " " : "", (unsigned long long)shape[a]);
    fprintf(s->out, "\" NumberType=\"Float\" Precision=\"8\" Format=\"HDF\">%s:", s->file_name);
    put_escaped(s->out, where);
    fputs("</DataItem>\n        </Attribute>\n", s->out);
    return 0;
}

static herr_t put_average(hid_t group, const char *name, const H5L_info_t *info, void *data)
{
    (void)info;
    return put_attribute(group, name, data);
}

/* A field is shown by its own dataset if that is at cells and no vector contains it. */
static herr_t put_field(hid_t group, const char *name, const H5L_info_t *info, void *data)
{
    const xdmf_scope *s = data;
    char vector[2 * NAME_ROOM];
    trl_location location;
    (void)info;
    hid_t set = H5Dopen2(group, name, H5P_DEFAULT);
    if (set < 0) return -1;
    bool good = trli_hdf5_get_location(set, &location);
    H5Dclose(set);
    if (!good) return -1;
    if (location != TRL_CELL) return 0;
    const char *dot = strrchr(name, '.');
    if (dot && s->averages) {
        snprintf(vector, sizeof vector, "%s/%.*s", s->averages, (int)(dot - name), name);
        if (H5Lexists(s->file, vector, H5P_DEFAULT) > 0) return 0;
    }
    return put_attribute(group, name, s);
}

/* Always a three-dimensional mesh, one cell thick along absent axes: readers disagree on the plane that two-dimensional
 * ones lie in. */
static void put_mesh(FILE *out, const trl_grid *grid)
{
    double spacing[3], origin[3];
    for (int a = 0; a < 3; ++a) {
        spacing[a] = a < grid->dim ? grid->spacing[a] : grid->spacing[0];
        origin[a] = a < grid->dim ? grid->origin[a] : 0;
    }
    fprintf(out,
            "        <Topology TopologyType=\"3DCoRectMesh\" Dimensions=\"%" TRL_GIDX_FMT " %" TRL_GIDX_FMT
            " %" TRL_GIDX_FMT "\"/>\n",
            grid->cells[2] + 1, grid->cells[1] + 1, grid->cells[0] + 1);
    fputs("        <Geometry GeometryType=\"ORIGIN_DXDYDZ\">\n", out);
    const double *triple[] = {origin, spacing};
    for (int i = 0; i < 2; ++i)
        fprintf(out,
                "          <DataItem Dimensions=\"3\" NumberType=\"Float\" Precision=\"8\" Format=\"XML\">%.17g %.17g "
                "%.17g</DataItem>\n",
                triple[i][2], triple[i][1], triple[i][0]);
    fputs("        </Geometry>\n", out);
}

trl_err trli_xdmf_step(trl_context *ctx, const trl_grid *grid, hid_t file, const char *path, trl_gidx step, FILE *out)
{
    char name[TRLI_STEP_ROOM], averages[sizeof TRLI_CELLS_GROUP + TRLI_STEP_ROOM + 1];
    const char *slash = strrchr(path, '/');
    xdmf_scope s = {.file_name = slash ? slash + 1 : path, .file = file, .out = out};
    double time;
    trli_step_name(step, name);
    snprintf(averages, sizeof averages, "/" TRLI_CELLS_GROUP "/%s", name);
    if (H5Lexists(file, TRLI_CELLS_GROUP, H5P_DEFAULT) > 0 && H5Lexists(file, averages, H5P_DEFAULT) > 0)
        s.averages = averages;
    hid_t fields = H5Gopen2(file, name, H5P_DEFAULT), cells = s.averages ? H5Gopen2(file, averages, H5P_DEFAULT) : -1;
    bool good =
        fields >= 0 && (!s.averages || cells >= 0) && trli_hdf5_get(fields, "time", H5T_NATIVE_DOUBLE, 1, &time);
    if (good) {
        fprintf(out, "      <Grid Name=\"%s\" GridType=\"Uniform\">\n        <Time Value=\"%.17g\"/>\n", name, time);
        put_mesh(out, grid);
        if (grid->dim == 3) good = H5Literate(fields, H5_INDEX_CRT_ORDER, H5_ITER_INC, NULL, put_field, &s) >= 0;
        if (good && s.averages) good = H5Literate(cells, H5_INDEX_CRT_ORDER, H5_ITER_INC, NULL, put_average, &s) >= 0;
        fputs("      </Grid>\n", out);
    }
    trl_err err = good ? TRL_OK : trli_hdf5_fail(ctx, "read a step of", path);
    if (cells >= 0) H5Gclose(cells);
    if (fields >= 0) H5Gclose(fields);
    return err;
}

trl_err trli_xdmf_write(trl_context *ctx, const char *path, const char *steps)
{
    static const char head[] =
        "<?xml version=\"1.0\"?>\n<!DOCTYPE Xdmf SYSTEM \"Xdmf.dtd\" []>\n<Xdmf Version=\"2.0\">\n  <Domain>\n"
        "    <Grid Name=\"fields\" GridType=\"Collection\" CollectionType=\"Temporal\">\n";
    static const char tail[] = "    </Grid>\n  </Domain>\n</Xdmf>\n";
    char *text;
    trl_err err = trli_format(ctx, &text, "%s%s%s", head, steps, tail);
    if (err == TRL_OK) err = trli_file_replace(ctx, path, text, strlen(text));
    free(text);
    return err;
}
