#include "simulation_impl.h"
trl_err trli_compile_limit(trl_simulation *sim, bool required){(void)sim;(void)required;return TRL_OK;}
trl_err trli_limit_step(trl_simulation *sim, double *dt){(void)sim;(void)dt;return TRL_OK;}
trl_err trli_limit_warn(trl_simulation *sim){(void)sim;return TRL_OK;}
