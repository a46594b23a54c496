/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The program `trellis`: MPI around the command. */
#include "command_impl.h"

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include <hdf5.h>

static const char component[] = "OMPI_MCA_pml"; /* which Open MPI sends messages with */

/* A process without a launcher sends none, but Open MPI would look for networks for 0.2 s. Returns whether it is told
 * not to; who says which component it is to take is heard. */
static bool needs_no_network(void)
{
    static const char *const launchers[] = {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMIX_NAMESPACE", "PMI_RANK", "PMI_FD",
                                            "SLURM_PROCID"};
    for (size_t i = 0; i < sizeof launchers / sizeof *launchers; ++i)
        if (getenv(launchers[i])) return false;
    return !getenv(component) && setenv(component, "ob1", 0) == 0;
}

int main(int argc, char **argv)
{
    int provided;
    signal(SIGPIPE, SIG_IGN); /* a run goes on when the reader of its output ends */
    signal(SIGXFSZ, SIG_IGN); /* a file that outgrows its limit is an error of the write, not the end of the program */
    /* HDF5 closes what is open when MPI or the program ends, and crashes where a disk refused its data. What it has
     * been given is closed by then: without MPI around at its start, and told so, it does nothing. */
    if (H5dont_atexit() < 0 || H5open() < 0) fputs("trellis: HDF5 cannot be started\n", stderr);
    if (argc > 1 && trli_command_is_collective(argv[1])) trli_signals_install(); /* MPI takes its time to start */
    const bool alone = needs_no_network();
    if (MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided) != MPI_SUCCESS) {
        int started = 0;
        fputs("trellis: MPI cannot be started\n", stderr);
        if (MPI_Initialized(&started) == MPI_SUCCESS && started) /* the launcher waits for its end */
            MPI_Abort(MPI_COMM_WORLD, trl_err_exit_code(TRL_ERR_MPI));
        return trl_err_exit_code(TRL_ERR_MPI);
    }
    if (alone) (void)unsetenv(component); /* programs that it starts may be launchers */
    if (provided < MPI_THREAD_SERIALIZED) {
        fputs("trellis: this MPI does not let one thread at a time call it (MPI_THREAD_SERIALIZED)\n", stderr);
        MPI_Abort(MPI_COMM_WORLD, trl_err_exit_code(TRL_ERR_MPI));
    }
    int status = trli_command_main(argc, argv);
    if (MPI_Finalize() != MPI_SUCCESS) {
        fputs("trellis: MPI cannot be ended: MPI_Finalize failed\n", stderr);
        return trl_err_exit_code(TRL_ERR_MPI);
    }
    return status;
}
