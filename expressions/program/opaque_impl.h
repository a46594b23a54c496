/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Opaque expressions, as steps and sides call them: what they need of an entry and of its type's descriptor, copied. */
#ifndef TRLI_OPAQUE_IMPL_H
#define TRLI_OPAQUE_IMPL_H

#include <trl_plugin.h>

/* What has a CUDA form, if its type has one. */
typedef enum trli_form { TRLI_FORM_EVALUATE, TRLI_FORM_STABLE_DT, TRLI_FORMS } trli_form;

/* Owned by the model, one for each entry that has a type. The functions are code of a library that the registry keeps
 * open, the state is the entry's: the registry outlives the model, and the model its runs. */
typedef struct trli_opaque {
    int number;              /* 0, 1, ... among those of the model */
    const char *name, *type; /* of the entry and of its type, for messages */
    trl_place place;         /* of the entry */
    unsigned flags;          /* TRL_EXPR_... */
    size_t scratch_bytes;    /* per thread */
    const void *state;
    trl_err (*evaluate)(const void *state, const trl_eval_args *args, const trl_box *box);
    trl_err (*stable_dt)(const void *state, const trl_eval_args *args, double *dt); /* NULL: it has none */
    const trl_cuda_form *cuda[TRLI_FORMS]; /* NULL: it has none, or is not to be done by GPUs */
    bool cuda_only;                        /* evaluate is to be done by its CUDA form where there are GPUs */
    trl_location location;                 /* of its first result */
    int ninputs, noutputs;
    bool one_location;    /* of all results */
    trl_footprint *reach; /* [ninputs] offsets at which an input is read */
} trli_opaque;

#endif
