# find_package(Weftline) defines:
#   weft_weave(<target> [ABI weft|perfflow] [RULES <file>] [ALL [<instructions>]])
#       compiles the target's C and C++ sources with `weft weave` and links what woven code calls
#   and all targets of find_package(Weft)
#
# Needs clang 14 or later and its plugin (`weft weave --setup -- <compiler>`). With another compiler the target is built as it is, and a
# message says so.

include("${CMAKE_CURRENT_LIST_DIR}/../Weft/WeftConfig.cmake")
get_filename_component(WEFTLINE_PREFIX "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)

# The flags of one kind for one compiler, as a list in the variable `result`.
function(_weftline_flags result kind compiler)
    execute_process(
        COMMAND "${WEFTLINE_PREFIX}/bin/weft" weave ${ARGN} --print-flags=${kind} -- "${compiler}"
        OUTPUT_VARIABLE said ERROR_VARIABLE why RESULT_VARIABLE code OUTPUT_STRIP_TRAILING_WHITESPACE)
    if(NOT code EQUAL 0)
        message(FATAL_ERROR "weft_weave: ${why}")
    endif()
    set(${result} "${said}" PARENT_SCOPE)
endfunction()

function(weft_weave target)
    cmake_parse_arguments(PARSE_ARGV 1 given "" "ABI;RULES" "ALL")
    if(given_UNPARSED_ARGUMENTS)
        message(FATAL_ERROR "weft_weave: unknown words: ${given_UNPARSED_ARGUMENTS}")
    endif()
    set(options "")
    if(given_ABI)
        list(APPEND options --abi ${given_ABI})
    endif()
    if(given_RULES)
        get_filename_component(rules "${given_RULES}" ABSOLUTE BASE_DIR "${CMAKE_CURRENT_SOURCE_DIR}")
        list(APPEND options --rules "${rules}")
        # The compiler does not tell what it read besides sources: a changed list changes the command line instead.
        set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${rules}")
        file(SHA1 "${rules}" content)
        target_compile_definitions(${target} PRIVATE "WEFT_WEAVE_RULES_${content}")
    endif()
    if(given_ALL)
        list(APPEND options --all=${given_ALL})
    elseif("ALL" IN_LIST ARGN)
        list(APPEND options --all)
    endif()

    set(woven FALSE)
    foreach(language C CXX)
        if(NOT CMAKE_${language}_COMPILER)
            continue()
        endif()
        get_filename_component(command "${CMAKE_${language}_COMPILER}" NAME)
        if(command STREQUAL "weft")
            message(STATUS "weft_weave: ${language} sources are compiled with `weft weave` as it is, which decides what is woven")
            continue()
        endif()
        if(NOT CMAKE_${language}_COMPILER_ID STREQUAL "Clang")
            message(STATUS "weft_weave: ${CMAKE_${language}_COMPILER} is not clang, ${language} sources of ${target} are built as they are; "
                           "weft.h and weft.hpp have macros for them")
            continue()
        endif()
        _weftline_flags(flags compile "${CMAKE_${language}_COMPILER}" ${options})
        # As one shell text: CMake would drop the second -Xclang and -mllvm as repetitions.
        target_compile_options(${target} PRIVATE "$<$<COMPILE_LANGUAGE:${language}>:SHELL:${flags}>")
        set(woven TRUE)
    endforeach()
    if(woven AND given_ABI STREQUAL "perfflow")
        target_link_libraries(${target} PRIVATE Weft::perfflow_runtime)
    elseif(woven)
        target_link_libraries(${target} PRIVATE Weft::weft)
    endif()
endfunction()
