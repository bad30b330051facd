# find_package(Weft) defines:
#   Weft::weft           libweft.so, weft.h, weft.hpp
#   Weft::weft_static    the same as libweft.a, where that is installed
#   Weft::dftracer_core  the drop-in for programs annotated for DFTracer
#   Weft::perfflow_runtime  the drop-in for programs woven for PerfFlowAspect

get_filename_component(_weft_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
set(_weft_compat "${_weft_prefix}/lib/weftline/compat")

function(_weft_library target kind location)
    if(TARGET ${target})
        return()
    endif()
    if(NOT EXISTS "${location}")
        message(FATAL_ERROR "${location} is missing: the installation of Weftline is not complete")
    endif()
    add_library(${target} ${kind} IMPORTED)
    set_target_properties(${target} PROPERTIES IMPORTED_LOCATION "${location}")
    if(ARGN)
        set_target_properties(${target} PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "${ARGN}")
    endif()
endfunction()

# By the names that programs load: in a Python package, which cannot hold links, those without a version are texts for the linker.
_weft_library(Weft::weft SHARED "${_weft_prefix}/lib/libweft.so.0" "${_weft_prefix}/include")
# A Python package has no static library.
if(EXISTS "${_weft_prefix}/lib/libweft.a")
    _weft_library(Weft::weft_static STATIC "${_weft_prefix}/lib/libweft.a" "${_weft_prefix}/include")
    set_target_properties(Weft::weft_static PROPERTIES INTERFACE_LINK_LIBRARIES "gcc_s;util;rt;pthread;m;dl;c")
endif()
_weft_library(Weft::dftracer_core SHARED "${_weft_compat}/lib/libdftracer_core.so.4.3.0" "${_weft_compat}/include")
_weft_library(Weft::perfflow_runtime SHARED "${_weft_compat}/lib/libperfflow_runtime.so")

unset(_weft_prefix)
unset(_weft_compat)
