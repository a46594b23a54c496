# cmake -D TRELLIS=program -D DECK=file -D TOLERANCE=number -P test.cmake: run a deck; every error must be below the tolerance.
set(output "${CMAKE_CURRENT_BINARY_DIR}/test")
execute_process(
    COMMAND "${TRELLIS}" run "${DECK}" --set "output.directory=${output}" --quiet
    COMMAND_ERROR_IS_FATAL ANY
)
file(READ "${output}/report.json" report)
string(JSON tags LENGTH "${report}" errors)
if(tags EQUAL 0)
    message(FATAL_ERROR "the deck gives no exact solution")
endif()
math(EXPR last "${tags} - 1")
foreach(i RANGE ${last})
    string(JSON tag MEMBER "${report}" errors ${i})
    string(JSON error GET "${report}" errors ${tag} linf)
    message(STATUS "${tag}: error ${error}, tolerance ${TOLERANCE}")
    if(NOT error LESS TOLERANCE)
        message(FATAL_ERROR "${tag} differs too much from its exact solution")
    endif()
endforeach()
