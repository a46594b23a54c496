# SPDX-License-Identifier: Apache-2.0
# Part of Trellis, an expression-graph PDE solver framework.

# trellis_add_plugin(name source...): a plugin library name.so that a deck names in its list `plugins`. Its trl_ functions are
# those of the program that loads it, so it links with no Trellis library.
function(trellis_add_plugin name)
    add_library(${name} MODULE ${ARGN})
    set_target_properties(${name} PROPERTIES PREFIX "" SUFFIX .so C_VISIBILITY_PRESET default)
    target_link_libraries(${name} PRIVATE Trellis::plugin m)
    target_compile_options(${name} PRIVATE $<$<COMPILE_LANGUAGE:C>:-ffp-contract=off>)
endfunction()
