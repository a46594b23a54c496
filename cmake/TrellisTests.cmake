# SPDX-License-Identifier: Apache-2.0
# Part of Trellis, an expression-graph PDE solver framework.
# A test exists by existing: tests/*/test_*.c and test_*.py, tests/inputs/cli/*.sh, inputs/decks/*.yaml.
# A line "ctest: key=value ..." near its top says how it is run; the keys are those of trellis_read_directive's callers.
find_package(Python3 REQUIRED COMPONENTS Interpreter)
execute_process( # it may be one that looks for the interpreter in each call, which takes longer than most scripts
    COMMAND "${Python3_EXECUTABLE}" -c "import sys; print(sys.executable)"
    OUTPUT_VARIABLE python
    OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY
)
cmake_path(GET python PARENT_PATH python_folder)

# Kernels are not instrumented and do not depend on the build: presets share what their tests compile.
set(TRL_TEST_KERNELS "${PROJECT_BINARY_DIR}/kernel_cache" CACHE PATH "Folder of the kernels that tests compile")
set(tests_folder "${PROJECT_SOURCE_DIR}/tests")
set(scratch "${tests_folder}/scratch.sh")
set(test_environment
    "TRELLIS_CACHE_DIR=${TRL_TEST_KERNELS}"
    OMPI_ALLOW_RUN_AS_ROOT=1
    OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    OMPI_MCA_rmaps_base_oversubscribe=1
    OMPI_MCA_mpi_yield_when_idle=1 # ranks share the cores with each other and with other tests
    OMPI_MCA_ess_singleton_isolated=1 # one rank without mpirun starts no daemon
    OMPI_MCA_pml=ob1 # what it chooses on one host anyway, after 0.2 s of looking for networks in each process
    OPENBLAS_NUM_THREADS=1 # tasks are the parallelism
    OMPI_MCA_btl=self,vader # neither looks for network cards
    OMPI_MCA_btl_vader_single_copy_mechanism=none # containers forbid the others, loudly
    TRL_EXCHANGE=1e-5,1e-9,1e-6,1e-10 # tests choose how ranks exchange by settings, not by what a busy machine measures
    HWLOC_COMPONENTS=-linuxio,-pci,-opencl,-gl,-x86 # each process would look for devices, and visit each core
    "TRELLIS=${PROJECT_BINARY_DIR}/trellis"
    "TRELLIS_BUILD=${PROJECT_BINARY_DIR}"
    "TRELLIS_SOURCE=${PROJECT_SOURCE_DIR}"
)
set(suppressions "${tests_folder}/suppressions")
set(default_np 1)
set(default_timeout 300) # for what hangs: a busy machine is several times as slow
if(TRL_SANITIZE) # which see nothing of compiled kernels; the release tests what the optimiser makes of them
    list(APPEND test_environment "TRELLIS_CC=${tests_folder}/quick_cc.sh")
endif()
if(TRL_SANITIZE MATCHES "address")
    list(
        APPEND
        test_environment
        "ASAN_OPTIONS=detect_leaks=1:strict_string_checks=1"
        "LSAN_OPTIONS=suppressions=${suppressions}/lsan.txt:print_suppressions=0:use_tls=0"
        "UBSAN_OPTIONS=print_stacktrace=1"
    )
    set(default_timeout 600)
elseif(TRL_SANITIZE MATCHES "thread")
    list(APPEND test_environment "TSAN_OPTIONS=suppressions=${suppressions}/tsan.txt:second_deadlock_stack=1")
    set(default_timeout 600)
endif()

set(mpi_run "${MPIEXEC_EXECUTABLE}")
execute_process(COMMAND "${MPIEXEC_EXECUTABLE}" --version OUTPUT_VARIABLE mpi_version ERROR_QUIET)
if(mpi_version MATCHES "Open ?MPI|OpenRTE|Open MPI")
    list(APPEND mpi_run --oversubscribe --bind-to none)
endif()

# Read the line "ctest: ..." of a file into directive_<key>, which is default_<key> or empty where the line lacks it; a key
# outside the given ones stops configuration. found says whether there was a line at all; directive_none holds the reason
# of "ctest: none <reason>".
function(trellis_read_directive file found)
    foreach(key IN LISTS ARGN)
        set(directive_${key} "${default_${key}}" PARENT_SCOPE)
    endforeach()
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${file}")
    file(READ "${file}" text LIMIT 2000)
    string(REPLACE ";" "," text "${text}")
    string(REGEX MATCH "^([^\n]*\n)?([^\n]*\n)?([^\n]*\n)?([^\n]*\n)?([^\n]*\n)?([^\n]*\n)?([^\n]*\n)?([^\n]*\n)?([^\n]*\n)?[^\n]*"
                       head "${text}")
    set(${found} OFF PARENT_SCOPE)
    if(NOT head MATCHES "(^|\n)(//|#) ctest:([^\n]*)")
        return()
    endif()
    set(${found} ON PARENT_SCOPE)
    set(rest "${CMAKE_MATCH_3}")
    if(rest MATCHES "^ *none +([^ ].*)$")
        set(directive_none "${CMAKE_MATCH_1}" PARENT_SCOPE)
        return()
    endif()
    while(rest MATCHES "^ *([a-z]+)=(\"[^\"]*\"|[^ \"]+)(.*)$")
        set(key "${CMAKE_MATCH_1}")
        set(rest "${CMAKE_MATCH_3}")
        string(REPLACE "\"" "" value "${CMAKE_MATCH_2}")
        if(NOT key IN_LIST ARGN)
            message(FATAL_ERROR "${file}: unknown key '${key}' in its ctest line; allowed: ${ARGN}")
        endif()
        set(directive_${key} "${value}" PARENT_SCOPE)
    endwhile()
    string(STRIP "${rest}" rest)
    if(rest)
        message(FATAL_ERROR "${file}: cannot read '${rest}' in its ctest line; write key=value or key=\"value\"")
    endif()
endfunction()

# Whether this build does without a library that "needs" of a directive names, such as sundials.
function(trellis_lacks needs lacks)
    string(TOUPPER "${needs}" needs)
    set(${lacks} OFF PARENT_SCOPE)
    if(needs AND NOT TRL_HAVE_${needs})
        set(${lacks} ON PARENT_SCOPE)
    endif()
endfunction()

# trellis_add_test(NAME name [LONG] [NP ranks] [LABELS label...] [TIMEOUT seconds] COMMAND ...): in a scratch folder of its own.
# LONG: only "ctest -C long" runs it.
function(trellis_add_test)
    cmake_parse_arguments(PARSE_ARGV 0 arg "LONG" "NAME;NP;TIMEOUT" "LABELS;COMMAND")
    if(NOT arg_NP)
        set(arg_NP ${default_np})
    endif()
    if(NOT arg_TIMEOUT)
        set(arg_TIMEOUT ${default_timeout})
    endif()
    set(cost ${arg_TIMEOUT})
    if(cost LESS default_timeout) # which says when it hangs, not how long it takes
        set(cost ${default_timeout})
    endif()
    set(configurations)
    if(arg_LONG)
        set(configurations CONFIGURATIONS long)
    endif()
    set(environment "${test_environment}")
    if(NOT "${arg_LABELS}" MATCHES "gpu|sanitizer") # other tests mean the cores, on machines with GPUs, too
        list(APPEND environment "CUDA_VISIBLE_DEVICES=")
    endif()
    add_test(NAME ${arg_NAME} ${configurations} COMMAND bash "${scratch}" "${PROJECT_BINARY_DIR}/scratch/${arg_NAME}"
                                                        ${arg_COMMAND})
    set_tests_properties(
        ${arg_NAME}
        PROPERTIES ENVIRONMENT "${environment}"
                   ENVIRONMENT_MODIFICATION "PATH=path_list_prepend:${python_folder}"
                   PROCESSORS ${arg_NP}
                   TIMEOUT ${arg_TIMEOUT}
                   COST ${cost} # the longest begin first, so that none of them ends alone
                   LABELS "${arg_LABELS}"
                   SKIP_RETURN_CODE 77
    )
    if("alone" IN_LIST arg_LABELS) # it measures: nothing runs beside it
        set_tests_properties(${arg_NAME} PROPERTIES RUN_SERIAL ON)
    endif()
endfunction()

# Plugins of the tests: good and bad ones.
set(test_plugin_output "${PROJECT_BINARY_DIR}/test_plugins")
file(GLOB sources CONFIGURE_DEPENDS "${tests_folder}/plugins/*.c")
foreach(source IN LISTS sources)
    cmake_path(GET source STEM name)
    trellis_add_plugin(test_plugin_${name} "${source}")
    set_target_properties(
        test_plugin_${name} PROPERTIES OUTPUT_NAME ${name} LIBRARY_OUTPUT_DIRECTORY "${test_plugin_output}"
    )
    target_link_libraries(test_plugin_${name} PRIVATE trellis_flags)
endforeach()

# Libraries that tests load before a program, in place of what it calls.
file(GLOB sources CONFIGURE_DEPENDS "${tests_folder}/preload/*.c")
foreach(source IN LISTS sources)
    cmake_path(GET source STEM name)
    add_library(preload_${name} MODULE "${source}")
    target_link_libraries(preload_${name} PRIVATE trellis_flags MPI::MPI_C)
    target_compile_options(preload_${name} PRIVATE -fvisibility=default)
    set_target_properties(
        preload_${name} PROPERTIES PREFIX "" OUTPUT_NAME ${name} LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/preload"
    )
endforeach()

# trellis_link_emulated(target): the layers without the GPUs' backend, in whose place tests/emulated is.
function(trellis_link_emulated target)
    list(REMOVE_ITEM TRL_LAYER_OBJECTS "$<TARGET_OBJECTS:trl_scheduler>")
    list(APPEND TRL_LAYER_OBJECTS "$<FILTER:$<TARGET_OBJECTS:trl_scheduler>,EXCLUDE,/device_(cuda|none)\\.>")
    trellis_link_layers(${target})
    foreach(part gpu memory fibers)
        target_sources(${target} PRIVATE "${tests_folder}/emulated/${part}.c")
    endforeach()
endfunction()
if(TRL_SANITIZE MATCHES "thread") # which would see calls begin on one stack and end on another
    set_property(SOURCE "${tests_folder}/emulated/fibers.c" PROPERTY COMPILE_OPTIONS -fno-sanitize=thread)
endif()

# The command with GPUs that are the processor, and the compiler of their kernels.
if(TARGET trellis)
    add_library(emulated_nvrtc MODULE "${tests_folder}/emulated/nvrtc.c")
    target_link_libraries(emulated_nvrtc PRIVATE trellis_flags)
    target_compile_options(emulated_nvrtc PRIVATE -fvisibility=default)
    set_target_properties(
        emulated_nvrtc PROPERTIES PREFIX "" OUTPUT_NAME nvrtc LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/emulated"
    )
    add_executable(trellis_emulated inputs/main.c)
    trellis_link_emulated(trellis_emulated)
    set_target_properties(
        trellis_emulated PROPERTIES OUTPUT_NAME trellis RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/emulated"
    )
    add_dependencies(trellis_emulated emulated_nvrtc)
endif()

# C programs: tests/<folder>/test_<thing>.c. Those of a folder are linked once, into tests/<folder>, which tests/programs.c begins; a
# link of the name <folder>_test_<thing> to it is that program.
set(test_folders)
set(emulated_sources)
file(MAKE_DIRECTORY "${PROJECT_BINARY_DIR}/tests")
file(GLOB sources CONFIGURE_DEPENDS "${tests_folder}/*/test_*.c")
foreach(source IN LISTS sources)
    cmake_path(GET source STEM name)
    cmake_path(GET source PARENT_PATH folder)
    cmake_path(GET folder FILENAME folder)
    if(NOT TARGET tests_${folder})
        add_executable(tests_${folder} "${tests_folder}/programs.c")
        trellis_link_layers(tests_${folder})
        target_include_directories(tests_${folder} PRIVATE "${tests_folder}" "${PROJECT_BINARY_DIR}/test_programs/${folder}")
        target_link_libraries(tests_${folder} PRIVATE PkgConfig::CHECK)
        target_compile_definitions(
            tests_${folder} PRIVATE TRL_TEST_SOURCE_DIR="${tests_folder}" TRL_TEST_PLUGIN_DIR="${test_plugin_output}"
        )
        # The optimiser costs more than these sources save it in runs. Check's varargs macros are not pedantic C17.
        target_compile_options(tests_${folder} PRIVATE -O0 $<$<C_COMPILER_ID:Clang>:-Wno-gnu-zero-variadic-macro-arguments>)
        set_target_properties(
            tests_${folder} PROPERTIES OUTPUT_NAME ${folder} RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/tests"
        )
        list(APPEND test_folders ${folder})
    endif()
    target_sources(tests_${folder} PRIVATE "${source}")
    set_property(SOURCE "${source}" APPEND PROPERTY COMPILE_DEFINITIONS main=${name}_main)
    string(APPEND test_programs_${folder} "TRL_PROGRAM(${name})\n")
    file(CREATE_LINK ${folder} "${PROJECT_BINARY_DIR}/tests/${folder}_${name}" SYMBOLIC)
    if(LAPACKE_FOUND AND name STREQUAL "test_app_qr")
        target_link_libraries(tests_${folder} PRIVATE PkgConfig::LAPACKE)
        set_property(SOURCE "${source}" APPEND PROPERTY COMPILE_DEFINITIONS TRL_TEST_LAPACKE)
    endif()
    if(TRL_HAVE_CUDA AND name MATCHES "^test_(emit|gpu_text)$")
        set_property(SOURCE "${source}" APPEND PROPERTY COMPILE_DEFINITIONS TRL_TEST_NVRTC="$<TARGET_FILE:CUDA::nvrtc>")
    endif()
    trellis_read_directive("${source}" found np short sanitize timeout labels optimise emulated needs)
    trellis_lacks("${directive_needs}" lacks)
    if(lacks)
        continue()
    endif()
    if(directive_emulated)
        list(APPEND emulated_sources "${source}")
    endif()
    if(directive_optimise) # else -O0
        set_property(SOURCE "${source}" APPEND PROPERTY COMPILE_OPTIONS -O${directive_optimise})
    endif()
    string(REPLACE "," ";" ranks "${directive_np}")
    string(REPLACE "," ";" labels "${directive_labels}")
    list(APPEND labels ${folder})
    if(folder STREQUAL "scheduler")
        list(APPEND labels threads)
    endif()
    # The rank counts that the short form tests. Sanitizers are slow: two find what they look for.
    set(few "${directive_np}")
    if(directive_short)
        set(few "${directive_short}")
    endif()
    if(TRL_SANITIZE AND directive_sanitize)
        set(few "${directive_sanitize}")
    endif()
    string(REPLACE "," ";" few "${few}")
    list(LENGTH few count)
    if(TRL_SANITIZE AND count GREATER 2)
        list(SUBLIST few 0 2 few)
    endif()
    foreach(np IN LISTS ranks)
        set(launch)
        if(np GREATER 1)
            set(launch ${mpi_run} -n ${np})
        endif()
        set(long)
        if(NOT np IN_LIST few)
            set(long LONG)
        endif()
        trellis_add_test(
            NAME ${folder}.${name}.np${np}
            ${long}
            NP ${np}
            TIMEOUT ${directive_timeout}
            LABELS ${labels}
            COMMAND ${launch} "${PROJECT_BINARY_DIR}/tests/${folder}_${name}"
        )
    endforeach()
endforeach()
foreach(folder IN LISTS test_folders)
    file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/test_programs/${folder}/programs.list" CONTENT "${test_programs_${folder}}")
endforeach()

# Those of "emulated=1" again, with GPUs that are the processor.
if(emulated_sources AND TARGET trellis)
    set(test_programs_emulated)
    add_executable(tests_emulated "${tests_folder}/programs.c" ${emulated_sources})
    trellis_link_emulated(tests_emulated)
    target_include_directories(tests_emulated PRIVATE "${tests_folder}" "${PROJECT_BINARY_DIR}/test_programs/emulated")
    target_link_libraries(tests_emulated PRIVATE PkgConfig::CHECK)
    target_compile_definitions(tests_emulated PRIVATE TRL_TEST_SOURCE_DIR="${tests_folder}")
    target_compile_options(tests_emulated PRIVATE -O0 $<$<C_COMPILER_ID:Clang>:-Wno-gnu-zero-variadic-macro-arguments>)
    set_target_properties(
        tests_emulated PROPERTIES OUTPUT_NAME emulated RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/tests"
    )
    add_dependencies(tests_emulated emulated_nvrtc)
    foreach(source IN LISTS emulated_sources)
        cmake_path(GET source STEM name)
        string(APPEND test_programs_emulated "TRL_PROGRAM(${name})\n")
        file(CREATE_LINK emulated "${PROJECT_BINARY_DIR}/tests/emulated_${name}" SYMBOLIC)
        trellis_read_directive("${source}" found np short sanitize timeout labels optimise emulated needs)
        string(REPLACE "," ";" ranks "${directive_np}")
        if(TRL_SANITIZE AND directive_sanitize)
            string(REPLACE "," ";" ranks "${directive_sanitize}")
        endif()
        set(lazy 1) # the first of them: what is enqueued is done when somebody waits for it
        foreach(np IN LISTS ranks)
            set(launch)
            if(np GREATER 1)
                set(launch ${mpi_run} -n ${np})
            endif()
            trellis_add_test(
                NAME emulated.${name}.np${np}
                NP ${np}
                TIMEOUT ${directive_timeout}
                LABELS emulated
                COMMAND env "TRELLIS_NVRTC=${PROJECT_BINARY_DIR}/emulated/nvrtc.so" TRL_EMULATED_LAZY=${lazy} ${launch}
                        "${PROJECT_BINARY_DIR}/tests/emulated_${name}"
            )
            set(lazy 0)
        endforeach()
    endforeach()
    file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/test_programs/emulated/programs.list" CONTENT "${test_programs_emulated}")
endif()

# Python programs; they look at sources and need no sanitizer.
file(GLOB sources CONFIGURE_DEPENDS "${tests_folder}/*/test_*.py")
foreach(source IN LISTS sources)
    if(TRL_SANITIZE)
        continue()
    endif()
    cmake_path(GET source STEM name)
    cmake_path(GET source PARENT_PATH folder)
    cmake_path(GET folder FILENAME folder)
    trellis_read_directive("${source}" found timeout labels needs)
    trellis_lacks("${directive_needs}" lacks)
    if(lacks)
        continue()
    endif()
    string(REPLACE "," ";" labels "${directive_labels}")
    trellis_add_test(
        NAME ${folder}.${name}
        LABELS ${folder} ${labels}
        TIMEOUT ${directive_timeout}
        COMMAND "${python}" "${source}"
    )
endforeach()

# Scripts that use the command as a user does. They and the decks count as one processor: most of their runs have one rank.
file(GLOB sources CONFIGURE_DEPENDS "${tests_folder}/inputs/cli/*.sh")
foreach(source IN LISTS sources)
    if(NOT TARGET trellis)
        continue()
    endif()
    cmake_path(GET source STEM name)
    trellis_read_directive("${source}" found sanitize timeout)
    set(long)
    if(TRL_SANITIZE AND directive_sanitize STREQUAL "none")
        set(long LONG)
    endif()
    trellis_add_test(
        NAME cli.${name}
        ${long}
        LABELS cli
        TIMEOUT ${directive_timeout}
        COMMAND bash "${source}"
    )
endforeach()

# Decks. np: rank counts whose results must agree to the bit, 1 and 4 among them. tol: bound of every errors.<tag>.linf.
# args: more arguments of the run. short: more arguments that make a run short, for all runs under a sanitizer and those that
# the short form compares; tol is not checked with them because they change the problem. after: the deck with whose output,
# after 20 steps, this one begins; {after} in args is its folder. needs: a library that builds may do without.
# optimise=1: the short form, too, compiles its kernels as users do.
file(GLOB decks CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/inputs/decks/*.yaml")
foreach(deck IN LISTS decks)
    cmake_path(GET deck STEM name)
    trellis_read_directive("${deck}" found none np tol timeout args short after needs optimise)
    if(NOT found)
        message(FATAL_ERROR "${deck}: no ctest line; begin the deck with '# ctest: np=1,4 tol=1e-10' or "
                            "'# ctest: none <reason>'")
    endif()
    if(directive_none OR NOT TARGET trellis)
        continue()
    endif()
    if(NOT ",${directive_np}," MATCHES ",1,.*4,")
        message(FATAL_ERROR "${deck}: np=${directive_np}; each deck runs on 1 and on 4 ranks")
    endif()
    trellis_lacks("${directive_needs}" lacks)
    if(lacks)
        continue()
    endif()
    set(options)
    if(directive_tol)
        list(APPEND options --tol ${directive_tol})
    endif()
    if(TRL_SANITIZE)
        list(APPEND options --few)
    endif()
    if(directive_optimise)
        list(APPEND options --optimise)
    endif()
    if(directive_after)
        list(APPEND options --after "${PROJECT_SOURCE_DIR}/inputs/decks/${directive_after}.yaml")
    endif()
    string(REPLACE ";" " " launch "${mpi_run}")
    trellis_add_test(
        NAME deck.${name}
        LABELS deck
        TIMEOUT ${directive_timeout}
        COMMAND
            "${python}" "${tests_folder}/deck_test.py" "--mpirun=${launch}" "--np=${directive_np}"
            "--args=${directive_args}" "--short=${directive_short}" ${options} $<TARGET_FILE:trellis> "${deck}"
    )
endforeach()

# Models of protocols, for Spin.
file(GLOB models CONFIGURE_DEPENDS "${tests_folder}/scheduler/models/*.pml")
foreach(model IN LISTS models)
    if(TRL_SANITIZE)
        continue()
    endif()
    cmake_path(GET model STEM name)
    trellis_add_test(NAME models.${name} LABELS scheduler COMMAND bash "${tests_folder}/scheduler/models/check.sh" "${model}")
endforeach()
