# SPDX-License-Identifier: Apache-2.0
# Part of Trellis, an expression-graph PDE solver framework.
# Where no launcher has started the program, Open MPI looks for no networks, unless somebody says what it is to use.
. "$(dirname "$0")/lib/common.bash"

unset OMPI_MCA_pml PMIX_RANK PMIX_NAMESPACE PMI_RANK PMI_FD SLURM_PROCID OMPI_COMM_WORLD_SIZE

# What can send messages, as Open MPI opens it.
opened() {
    env OMPI_MCA_pml_base_verbose=100 "$@" "$TRELLIS" help 2>&1 |
        sed -n 's/.*components_open: found loaded component //p' | sort -u | tr '\n' ' '
}

[ "$(opened SLURM_PROCID=0)" ] || exit 0 # another MPI
[ "$(opened)" = "ob1 " ] || fail "alone it opens $(opened)"
for more in SLURM_PROCID=0 OMPI_MCA_pml=^cm; do
    [ "$(opened "$more")" != "ob1 " ] || fail "with $more it opens no more than ob1"
done
