/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* fields.xdmf: what ParaView shows of the files of fields, at cells. Values of other locations, and vectors, are
 * functions of parts of the same data. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "files_impl.h"
#include "memory_impl.h"
#include "output_hdf5_impl.h"

/* Begins each step's text, the step's digits behind it. */
#define STEP_BEGINS "      <Grid Name=\"step "
#define STEP_ENDS "      </Grid>\n"

static const char head[] =
    "<?xml version=\"1.0\"?>\n<!DOCTYPE Xdmf SYSTEM \"Xdmf.dtd\" []>\n<Xdmf Version=\"2.0\">\n  <Domain>\n"
    "    <Grid Name=\"fields\" GridType=\"Collection\" CollectionType=\"Temporal\">\n";
static const char tail[] = "    </Grid>\n  </Domain>\n</Xdmf>\n";

/* A box of cells that is one mesh. */
typedef struct block {
    trl_gidx lo[3], hi[3];
} block;

typedef struct xdmf_scope {
    const trl_grid *grid;
    const char *link; /* to the step's file, from that of fields.xdmf */
    hid_t file;       /* open where values are wanted, else -1 */
    FILE *out;
} xdmf_scope;

/* "4 5 6": the cells of a block, z first. */
static void put_cells(const xdmf_scope *s, const block *b)
{
    fprintf(s->out, "%" TRL_GIDX_FMT " %" TRL_GIDX_FMT " %" TRL_GIDX_FMT, b->hi[2] - b->lo[2], b->hi[1] - b->lo[1],
            b->hi[0] - b->lo[0]);
}

/* The values at a corner of each cell: a part of the variable, as large as the block. A block that ends at a periodic
 * side is one cell thick there, so that the point behind it is point 0 for all of it. */
static void put_corner(const xdmf_scope *s, const block *b, const trli_output_field *field, int corner)
{
    const trl_grid *grid = s->grid;
    fputs("<DataItem ItemType=\"HyperSlab\" Type=\"HyperSlab\" Dimensions=\"", s->out);
    put_cells(s, b);
    fprintf(s->out, "\"><DataItem Dimensions=\"3 %d\" NumberType=\"Int\" Format=\"XML\">0", grid->dim + 1);
    for (int a = grid->dim - 1; a >= 0; --a) {
        trl_gidx first = b->lo[a] + (corner >> a & 1), points = trl_grid_points(grid, field->location, a);
        fprintf(s->out, " %" TRL_GIDX_FMT, first % points);
    }
    for (int a = 0; a <= grid->dim; ++a) fputs(" 1", s->out);
    fputs(" 1", s->out);
    for (int a = grid->dim - 1; a >= 0; --a) fprintf(s->out, " %" TRL_GIDX_FMT, b->hi[a] - b->lo[a]);
    fputs("</DataItem><DataItem Dimensions=\"1", s->out);
    for (int a = grid->dim - 1; a >= 0; --a)
        fprintf(s->out, " %" TRL_GIDX_FMT, trl_grid_points(grid, field->location, a));
    fprintf(s->out, "\" NumberType=\"Float\" Precision=\"8\" Format=\"HDF\">%s:/%s</DataItem></DataItem>\n", s->link,
            field->name);
}

/* The mean over a cell's corners of a field that is not at cells. */
static void put_scalar(const xdmf_scope *s, const block *b, const trli_output_field *field)
{
    const int bits = (int)field->location;
    if (!bits) {
        put_corner(s, b, field, 0);
        return;
    }
    int n = 0;
    for (int corner = 0; corner < 8; ++corner) n += !(corner & ~bits);
    fprintf(s->out, "<DataItem ItemType=\"Function\" Function=\"%g * ($0", 1.0 / n);
    for (int i = 1; i < n; ++i) fprintf(s->out, " + $%d", i);
    fputs(")\" Dimensions=\"", s->out);
    put_cells(s, b);
    fputs("\">\n", s->out);
    for (int corner = 0; corner < 8; ++corner)
        if (!(corner & ~bits)) put_corner(s, b, field, corner);
    fputs("</DataItem>\n", s->out);
}

/* One value of the step's file; NaN: HDF5 failed. */
static double value_at(const xdmf_scope *s, const trli_output_field *field, const trl_gidx at[3])
{
    const int dim = s->grid->dim;
    hsize_t start[4] = {0}, count[4] = {1, 1, 1, 1};
    double value = NAN;
    for (int a = 0; a < dim; ++a) start[dim - a] = (hsize_t)(at[a] % trl_grid_points(s->grid, field->location, a));
    hid_t data = H5Dopen2(s->file, field->name, H5P_DEFAULT), space = data >= 0 ? H5Dget_space(data) : -1;
    hid_t here = H5Screate(H5S_SCALAR);
    if (space >= 0 && here >= 0 && H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, count, NULL) >= 0)
        (void)H5Dread(data, H5T_NATIVE_DOUBLE, here, space, H5P_DEFAULT, &value);
    if (here >= 0) H5Sclose(here);
    if (space >= 0) H5Sclose(space);
    if (data >= 0) H5Dclose(data);
    return value;
}

/* The means of a cell as numbers: ParaView's functions fail on arrays of one value. */
static void put_cell(const xdmf_scope *s, const block *b, int n, const trli_output_field *const component[3])
{
    fprintf(s->out, "<DataItem Dimensions=\"1 1 1%s\" NumberType=\"Float\" Precision=\"8\" Format=\"XML\">",
            n > 1 ? " 3" : "");
    for (int c = 0; c < n; ++c) {
        double sum = 0;
        int corners = 0;
        for (int corner = 0; component[c] && corner < 8; ++corner) {
            if (corner & ~(int)component[c]->location) continue;
            const trl_gidx at[3] = {b->lo[0] + (corner & 1), b->lo[1] + (corner >> 1 & 1), b->lo[2] + (corner >> 2)};
            sum += value_at(s, component[c], at);
            ++corners;
        }
        fprintf(s->out, "%s%.17g", c ? " " : "", corners ? sum / corners : 0);
    }
    fputs("</DataItem>\n", s->out);
}

static bool is_cell(const block *b)
{
    return (b->hi[0] - b->lo[0]) * (b->hi[1] - b->lo[1]) * (b->hi[2] - b->lo[2]) == 1;
}

/* Three components in one piece; zeros along axes that the grid lacks. */
static void put_vector(const xdmf_scope *s, const block *b, const trli_output_field *const component[3])
{
    static const char *const join[] = {"JOIN($0, 0 * $0, 0 * $0)", "JOIN($0, $1, 0 * $0)", "JOIN($0, $1, $2)"};
    fprintf(s->out, "<DataItem ItemType=\"Function\" Function=\"%s\" Dimensions=\"", join[s->grid->dim - 1]);
    put_cells(s, b);
    fputs(" 3\">\n", s->out);
    for (int a = 0; a < s->grid->dim; ++a) put_scalar(s, b, component[a]);
    fputs("</DataItem>\n", s->out);
}

static const trli_output_field *find_field(int n, const trli_output_field *fields, const char *stem, int length,
                                           char axis)
{
    for (int i = 0; i < n; ++i) {
        const char *name = fields[i].name;
        if (strncmp(name, stem, (size_t)length) == 0 && name[length] == '.' && name[length + 1] == axis &&
            !name[length + 2])
            return &fields[i];
    }
    return NULL;
}

/* Whether a field is a component of a vector of which every component is there. */
static bool find_vector(int dim, int n, const trli_output_field *fields, const trli_output_field *field,
                        const trli_output_field *component[3], int *length)
{
    const char *dot = strrchr(field->name, '.');
    if (!dot || !dot[1] || !strchr("xyz", dot[1]) || dot[2]) return false;
    *length = (int)(dot - field->name);
    for (int a = 0; a < dim; ++a) {
        component[a] = find_field(n, fields, field->name, *length, (char)('x' + a));
        if (!component[a]) return false;
    }
    return true;
}

static void put_attributes(const xdmf_scope *s, const block *b, int n, const trli_output_field *fields)
{
    for (int i = 0; i < n; ++i) {
        const trli_output_field *component[3] = {NULL};
        int length;
        bool vector = find_vector(s->grid->dim, n, fields, &fields[i], component, &length);
        if (vector && component[0] != &fields[i]) continue;
        if (!vector) length = (int)strlen(fields[i].name);
        fprintf(s->out, "<Attribute Name=\"%.*s\" AttributeType=\"%s\" Center=\"Cell\">\n", length, fields[i].name,
                vector ? "Vector" : "Scalar");
        if (!vector) component[0] = &fields[i];
        if (is_cell(b))
            put_cell(s, b, vector ? 3 : 1, component);
        else if (vector)
            put_vector(s, b, component);
        else
            put_scalar(s, b, &fields[i]);
        fputs("</Attribute>\n", s->out);
    }
}

/* Always a three-dimensional mesh, one cell thick along absent axes: readers disagree on the plane that two-dimensional
 * ones lie in. */
static void put_mesh(const xdmf_scope *s, const block *b)
{
    const trl_grid *grid = s->grid;
    double spacing[3], origin[3];
    for (int a = 0; a < 3; ++a) {
        spacing[a] = a < grid->dim ? grid->spacing[a] : grid->spacing[0];
        origin[a] = a < grid->dim ? grid->origin[a] + (double)b->lo[a] * spacing[a] : 0;
    }
    fprintf(s->out,
            "<Topology TopologyType=\"3DCoRectMesh\" Dimensions=\"%" TRL_GIDX_FMT " %" TRL_GIDX_FMT " %" TRL_GIDX_FMT
            "\"/>\n<Geometry GeometryType=\"ORIGIN_DXDYDZ\">\n",
            b->hi[2] - b->lo[2] + 1, b->hi[1] - b->lo[1] + 1, b->hi[0] - b->lo[0] + 1);
    const double *triple[] = {origin, spacing};
    for (int i = 0; i < 2; ++i)
        fprintf(s->out,
                "<DataItem Dimensions=\"3\" NumberType=\"Float\" Precision=\"8\" Format=\"XML\">%.17g %.17g "
                "%.17g</DataItem>\n",
                triple[i][2], triple[i][1], triple[i][0]);
    fputs("</Geometry>\n", s->out);
}

/* Along which axes the last cells are blocks of their own: periodic ones that some field has points on faces of. */
static int split_axes(const trl_grid *grid, int n, const trli_output_field *fields)
{
    int split = 0;
    for (int i = 0; i < n; ++i)
        for (int a = 0; a < grid->dim; ++a)
            if ((int)fields[i].location >> a & 1 && grid->periodic[a] && grid->cells[a] > 1) split |= 1 << a;
    return split;
}

static block block_of(const trl_grid *grid, int split, int part)
{
    block b;
    for (int a = 0; a < 3; ++a) {
        const bool last = part >> a & 1, cut = split >> a & 1;
        b.lo[a] = last ? grid->cells[a] - 1 : 0;
        b.hi[a] = cut && !last ? grid->cells[a] - 1 : grid->cells[a];
    }
    return b;
}

static void put_blocks(const xdmf_scope *s, int split, int n, const trli_output_field *fields)
{
    for (int part = 0; part < 8; ++part) {
        if (part & ~split) continue;
        const block b = block_of(s->grid, split, part);
        if (split) fprintf(s->out, "<Grid Name=\"part %d\" GridType=\"Uniform\">\n", part);
        put_mesh(s, &b);
        put_attributes(s, &b, n, fields);
        if (split) fputs("</Grid>\n", s->out);
    }
}

trl_err trli_xdmf_step(trl_context *ctx, const trl_grid *grid, const char *path, const char *link, trli_step_key key,
                       double time, int n, const trli_output_field *fields, FILE *out)
{
    xdmf_scope s = {.grid = grid, .link = link, .file = -1, .out = out};
    const int split = split_axes(grid, n, fields);
    const block last = block_of(grid, split, split);
    char name[TRLI_STEP_ROOM];
    trl_err err = is_cell(&last) ? trli_hdf5_open(ctx, path, &s.file) : TRL_OK;
    if (err != TRL_OK) return err;
    trli_step_name(key, name);
    fprintf(out, STEP_BEGINS "%s\" GridType=\"%s\">\n<Time Value=\"%.17g\"/>\n", name,
            split ? "Collection\" CollectionType=\"Spatial" : "Uniform", time);
    put_blocks(&s, split, n, fields);
    fputs(STEP_ENDS, out);
    if (s.file >= 0) H5Fclose(s.file);
    return TRL_OK;
}

trl_err trli_xdmf_begin(trl_context *ctx, const char *path, const char *steps, trli_new_file *file)
{
    char *text = NULL;
    trl_err err = trli_format(ctx, &text, "%s%s%s", head, steps, tail);
    *file = (trli_new_file){.file = -1};
    TRL_TRY(err);
    TRL_TRY(trli_file_begin(ctx, path, false, file));
    const int number = trli_file_put(file->file, text, strlen(text), 0);
    if (number) err = trli_file_end(file, trli_file_fail(ctx, "write", path, number));
done:
    trli_free(text);
    return err;
}

trl_err trli_xdmf_write(trl_context *ctx, const char *path, const char *steps)
{
    trli_new_file file;
    trl_err err = trli_xdmf_begin(ctx, path, steps, &file);
    return err == TRL_OK ? trli_file_end(&file, TRL_OK) : err;
}

trl_err trli_xdmf_read(trl_context *ctx, const char *path, trl_gidx last, char **steps)
{
    char *text = NULL, *kept, *next;
    size_t size;
    trl_err err = TRL_OK;
    if (access(path, F_OK) == 0) TRL_TRY(trli_file_read(ctx, TRL_ERR_IO, NULL, path, INT64_MAX, &text, &size));
    *steps = kept = trli_new(ctx, (text ? size : 0) + 1, 1);
    if (!kept) TRL_TRY(trli_no_memory(ctx, NULL, "to read '%s'", path));
    next = text ? strstr(text, STEP_BEGINS) : NULL;
    while (next) {
        const trl_gidx step = strtoll(next + strlen(STEP_BEGINS), NULL, 10);
        char *end = strstr(next, STEP_ENDS);
        if (!end || step > last) break;
        end += strlen(STEP_ENDS);
        kept = mempcpy(kept, next, (size_t)(end - next));
        next = strncmp(end, STEP_BEGINS, strlen(STEP_BEGINS)) == 0 ? end : NULL;
    }
done:
    trli_free(text);
    return err;
}
