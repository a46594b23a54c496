/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Ranks take themselves for those of several nodes: TRL_NODE_RANKS=2 the ranks that follow one another on each. */
#include <mpi.h>
#include <stdlib.h>

int MPI_Comm_split_type(MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm *part)
{
    const char *text = getenv("TRL_NODE_RANKS");
    int rank, status;
    if (type != MPI_COMM_TYPE_SHARED || !text) return PMPI_Comm_split_type(comm, type, key, info, part);
    status = PMPI_Comm_rank(comm, &rank);
    return status != MPI_SUCCESS ? status : PMPI_Comm_split(comm, rank / atoi(text), key, part);
}
