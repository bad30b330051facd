# find_package(dftracer) with Weftline's drop-in. It defines what DFTracer's own package does:
#   dftracer::dftracer_core, dftracer   libdftracer_core.so, dftracer/dftracer.h
#   dftracer::dftracer_core_dbg         the same: there is one build
#   DFTRACER_INCLUDE_DIRS, DFTRACER_LIBRARY_DIRS, DFTRACER_LIBRARIES, DFTRACER_VERSION, DFTRACER_LIBRARY_VERSION
#   DFTRACER_FUNCTION_FLAGS             empty: functions are annotated, or woven by `weft weave`

get_filename_component(_dftracer_here "${CMAKE_CURRENT_LIST_DIR}" REALPATH)
get_filename_component(_dftracer_compat "${_dftracer_here}/../../weftline/compat" ABSOLUTE)
set(_dftracer_library "${_dftracer_compat}/lib/libdftracer_core.so.4.3.0")
if(NOT EXISTS "${_dftracer_library}")
    message(FATAL_ERROR "${_dftracer_library} is missing: the installation of Weftline is not complete")
endif()

foreach(_dftracer_target dftracer_core dftracer_core_dbg)
    if(NOT TARGET dftracer::${_dftracer_target})
        add_library(dftracer::${_dftracer_target} SHARED IMPORTED)
        set_target_properties(dftracer::${_dftracer_target} PROPERTIES
            IMPORTED_LOCATION "${_dftracer_library}"
            IMPORTED_SONAME libdftracer_core.so.4.3.0
            INTERFACE_INCLUDE_DIRECTORIES "${_dftracer_compat}/include")
    endif()
endforeach()
# Not an alias: CMake before 3.18 has none of imported targets.
if(NOT TARGET dftracer)
    add_library(dftracer INTERFACE IMPORTED)
    set_target_properties(dftracer PROPERTIES INTERFACE_LINK_LIBRARIES dftracer::dftracer_core)
endif()

set(DFTRACER_INCLUDE_DIRS "${_dftracer_compat}/include")
set(DFTRACER_LIBRARY_DIRS "${_dftracer_compat}/lib")
set(DFTRACER_LIBRARIES dftracer)
set(DFTRACER_LIBRARY_VERSION 4.3.0)
set(DFTRACER_VERSION ${DFTRACER_LIBRARY_VERSION})
set(DFTRACER_FUNCTION_FLAGS)

unset(_dftracer_here)
unset(_dftracer_compat)
unset(_dftracer_library)
unset(_dftracer_target)
