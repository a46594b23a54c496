# SPDX-License-Identifier: Apache-2.0
# Part of Trellis, an expression-graph PDE solver framework.
# cmake -DNAME=symbol -DOUTPUT=file.c -DINPUTS=a.h;b.h -P TrellisEmbed.cmake: the text of files, one after the other, as an array of C.
set(bytes "")
foreach(input IN LISTS INPUTS)
    file(READ "${input}" hex HEX)
    string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," hex "${hex}")
    string(APPEND bytes "${hex}")
endforeach()
file(WRITE "${OUTPUT}" "extern const char ${NAME}[];\nconst char ${NAME}[] = {${bytes}0};\n")
