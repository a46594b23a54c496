/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Error codes, places in a user's files, and how a function fails. */
#ifndef TRL_ERR_H
#define TRL_ERR_H

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define TRL_API __attribute__((visibility("default")))
#define TRL_NODISCARD __attribute__((warn_unused_result))
#define TRL_PRINTF(f, a) __attribute__((format(printf, f, a)))
#else
#define TRL_API
#define TRL_NODISCARD
#define TRL_PRINTF(f, a)
#endif

/* X(name, exit code of the command, meaning). Larger values win when ranks disagree. */
#define TRL_ERR_LIST(X)                                                    \
    X(OK, 0, "no error")                                                   \
    X(INPUT, 2, "the deck, a formula or a command-line value is wrong")    \
    X(PLUGIN, 2, "a plugin is missing, incompatible or returned an error") \
    X(INTERRUPTED, 3, "stopped by a signal")                               \
    X(NUMERICS, 3, "a value of the solution is not finite")                \
    X(IO, 3, "a file could not be read or written")                        \
    X(MEMORY, 3, "memory ran out")                                         \
    X(MPI, 3, "a communication failed")                                    \
    X(DEVICE, 3, "a device failed or is missing")                          \
    X(USAGE, 4, "an interface was used against its contract")              \
    X(BUG, 4, "a defect in Trellis")

typedef enum trl_err {
#define TRL_ERR_ENUM(name, status, doc) TRL_ERR_##name,
    TRL_ERR_LIST(TRL_ERR_ENUM)
#undef TRL_ERR_ENUM
        TRL_ERR_COUNT,
    TRL_OK = TRL_ERR_OK
} trl_err;

/* A place in a user's file. All zero: no place. The strings belong to whoever made the place and outlive it. */
typedef struct trl_place {
    const char *file;   /* as the user named it, or NULL */
    int line, column;   /* from 1; 0: unknown */
    const char *source; /* text of that line for underlining, up to a newline or NUL; or NULL */
    int length;         /* characters to underline from column, 0: one */
} trl_place;

/* Evaluate an expression of type trl_err; on failure keep the code in the local `err` and go to `done`. */
#define TRL_TRY(expr)                 \
    do {                              \
        err = (expr);                 \
        if (err != TRL_OK) goto done; \
    } while (0)

/* Name of a code ("INPUT"), its meaning, and the exit code of the command. Thread: any. */
TRL_API const char *trl_err_name(trl_err err);
TRL_API const char *trl_err_meaning(trl_err err);
TRL_API int trl_err_exit_code(trl_err err);

#ifdef __cplusplus
}
#endif
#endif
