/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Kernels of one form share a function: which constants are part of its text is known once all kernels are known. */
#include <stdlib.h>
#include <string.h>

#include "codes_impl.h"
#include "memory_impl.h"

/* A kernel whose function has no text yet. */
typedef struct member {
    trli_code *code;
    trli_code_use *use;
    double *number; /* its constants, in the order of the signature's; then those that the function is given */
} member;

struct trli_codes {
    const trli_dialect *dialect;
    const trli_ir *ir;
    trli_walk *walk;
    trli_code **code;
    int32_t ncodes, codes_capacity;
    member *member;
    int32_t nmembers, members_capacity;
};

static trl_err no_memory(const trli_codes *c)
{
    return trli_no_memory(c->ir->ctx, NULL, "for the texts of kernels");
}

trl_err trli_codes_create(const trli_dialect *dialect, const trli_ir *ir, trli_walk *walk, trli_codes **codes)
{
    trli_codes *c = *codes = trli_new(ir->ctx, 1, sizeof *c);
    if (!c) return trli_no_memory(ir->ctx, NULL, "for the texts of kernels");
    c->dialect = dialect;
    c->ir = ir;
    c->walk = walk;
    return TRL_OK;
}

static void free_request(const trli_emit_request *request)
{
    trli_free((void *)request->layer);
    trli_free((void *)request->shape);
}

static void free_code(trli_code *code)
{
    if (!code) return;
    trli_signature_free(&code->signature);
    free_request(&code->request);
    trli_free(code->number);
    trli_free(code->given);
    trli_free(code->text);
    trli_free(code);
}

void trli_codes_destroy(trli_codes **codes)
{
    trli_codes *c = *codes;
    *codes = NULL;
    if (!c) return;
    for (int i = 0; i < c->ncodes; ++i) free_code(c->code[i]);
    for (int i = 0; i < c->nmembers; ++i) trli_free(c->member[i].number);
    trli_free(c->code);
    trli_free(c->member);
    trli_free(c);
}

/* The function of that form that has no text yet, or NULL: a function with a text takes no more kernels. */
static trli_code *find(const trli_codes *c, const trli_signature *signature)
{
    for (int i = 0; i < c->ncodes; ++i)
        if (!c->code[i]->emitted && trli_signatures_equal(&c->code[i]->signature, signature)) return c->code[i];
    return NULL;
}

static trl_err add_code(trli_codes *c, const trli_emit_request *request, const double *number,
                        const trli_signature *signature, trli_code **added)
{
    const size_t n = (size_t)signature->nnumbers;
    if (!trli_make_room(c->ir->ctx, &c->code, c->ncodes, 1, &c->codes_capacity, sizeof *c->code)) return no_memory(c);
    trli_code *code = *added = trli_new(c->ir->ctx, 1, sizeof *code);
    if (!code) return no_memory(c);
    code->number = trli_new(c->ir->ctx, n, sizeof *code->number);
    code->given = trli_new(c->ir->ctx, n, sizeof *code->given);
    if (!code->number || !code->given) {
        free_code(code);
        return no_memory(c);
    }
    memcpy(code->number, number, n * sizeof *number);
    code->signature = *signature;
    code->request = *request;
    c->code[c->ncodes++] = code;
    return TRL_OK;
}

static trl_err add_member(trli_codes *c, trli_code *code, double *number, trli_code_use *use)
{
    if (!trli_make_room(c->ir->ctx, &c->member, c->nmembers, 1, &c->members_capacity, sizeof *c->member))
        return no_memory(c);
    for (int i = 0; i < code->signature.nnumbers; ++i)
        code->given[i] |= memcmp(&number[i], &code->number[i], sizeof *number) != 0;
    c->member[c->nmembers++] = (member){code, use, number};
    *use = (trli_code_use){code, number};
    return TRL_OK;
}

trl_err trli_codes_add(trli_codes *c, const trli_emit_request *request, trli_code_use *use)
{
    trli_signature signature = {0};
    double *number = NULL;
    bool added = false;
    trl_err err = TRL_OK;
    TRL_TRY(trli_emit_signature(c->ir, c->walk, request, &signature));
    number = trli_new(c->ir->ctx, (size_t)signature.nnumbers, sizeof *number);
    if (!number) TRL_TRY(no_memory(c));
    for (int i = 0; i < signature.nnumbers; ++i) number[i] = trli_ir_node(c->ir, signature.number[i])->number;
    trli_code *code = find(c, &signature);
    if (!code) {
        TRL_TRY(add_code(c, request, number, &signature, &code));
        added = true;
    }
    TRL_TRY(add_member(c, code, number, use));
    number = NULL;
done:
    trli_free(number);
    if (!added) trli_signature_free(&signature);
    if (!added) free_request(request);
    return err;
}

static trl_err emit(const trli_codes *c, trli_code *code)
{
    const trli_signature *s = &code->signature;
    trli_emit_request request = code->request;
    trli_ir_value *number = trli_new(c->ir->ctx, (size_t)s->nnumbers, sizeof *number);
    trli_emitted emitted;
    trl_err err = TRL_OK;
    if (!number) return no_memory(c);
    for (int i = 0; i < s->nnumbers; ++i)
        if (code->given[i]) number[request.nnumbers++] = s->number[i];
    request.number = number;
    code->ngiven = request.nnumbers;
    TRL_TRY(trli_emit_kernel(c->dialect, c->ir, c->walk, &request, &emitted));
    code->text = emitted.text;
    code->why = emitted.why;
    code->interleave = emitted.interleave;
    code->emitted = true;
done:
    trli_free(number);
    return err;
}

trl_err trli_codes_emit(trli_codes *c)
{
    trl_err err = TRL_OK;
    for (int i = 0; i < c->nmembers; ++i) {
        const member *m = &c->member[i];
        int n = 0;
        if (m->code->emitted) continue;
        for (int k = 0; k < m->code->signature.nnumbers; ++k)
            if (m->code->given[k]) m->number[n++] = m->number[k];
    }
    for (int i = 0; i < c->ncodes; ++i)
        if (!c->code[i]->emitted) TRL_TRY(emit(c, c->code[i]));
done:
    return err;
}

static size_t length_of(const trli_code *code)
{
    return code->text ? strlen(code->text) : 0;
}

static int compare_lengths(const void *a, const void *b)
{
    const size_t x = length_of(*(trli_code *const *)a), y = length_of(*(trli_code *const *)b);
    return (x < y) - (x > y);
}

static void sort(trli_codes *c)
{
    if (c->ncodes > 0) qsort(c->code, (size_t)c->ncodes, sizeof *c->code, compare_lengths);
}

trl_err trli_codes_compile(trli_codes *c, trli_compiler *compiler)
{
    trl_err err = TRL_OK;
    sort(c);
    for (int i = 0; i < c->ncodes; ++i) {
        trli_code *code = c->code[i];
        if (code->text) TRL_TRY(trli_compiler_add(compiler, code->text, &code->native));
    }
done:
    return err;
}

trl_err trli_codes_compile_for_gpus(trli_codes *c, trli_gpu_kernels *kernels)
{
    trl_err err = TRL_OK;
    sort(c);
    for (int i = 0; i < c->ncodes; ++i) {
        trli_code *code = c->code[i];
        const trli_emit_request *of = &code->request;
        if (code->text)
            TRL_TRY(trli_gpu_kernels_add(kernels, code->text,
                                         of->reads->nfields + (of->merge ? of->nstored : of->nroots),
                                         of->reads->nscalars + code->ngiven, &code->gpu));
    }
done:
    return err;
}

int trli_codes_without_text(const trli_codes *codes, const char **why)
{
    const trli_code *code;
    int n = 0;
    for (int i = 0; (code = trli_codes_get(codes, i)); ++i)
        if (code->emitted && !code->text && n++ == 0) *why = code->why;
    return n;
}

const trli_code *trli_codes_get(const trli_codes *c, int i)
{
    return i < c->ncodes ? c->code[i] : NULL;
}
