# heed_add_plugin(NAME [SOURCE...] [TASKS SOURCE...]) adds the libraries of a plugin (docs/PLUGINS.md):
# libNAME.so, with real = float, and libNAME_f64.so, with real = double, which `heed gradcheck` also loads.
# Sources under TASKS register tasks, which run with real = float only. They belong to libNAME.so; without
# other sources, there is no libNAME_f64.so. Building NAME builds all of its libraries.
function(heed_add_plugin name)
  cmake_parse_arguments(arg "" "" "TASKS" ${ARGN})
  set(layers ${arg_UNPARSED_ARGUMENTS})
  if(NOT layers AND NOT arg_TASKS)
    message(FATAL_ERROR "heed_add_plugin(${name}): no sources")
  endif()
  add_library(${name} MODULE ${layers} ${arg_TASKS})
  target_link_libraries(${name} PRIVATE heed::plugin_f32)
  set(libraries ${name})
  if(layers)
    add_library(${name}_f64 MODULE ${layers})
    target_link_libraries(${name}_f64 PRIVATE heed::plugin_f64)
    add_dependencies(${name} ${name}_f64)
    list(APPEND libraries ${name}_f64)
  endif()
  set_target_properties(${libraries} PROPERTIES PREFIX lib SUFFIX .so CXX_EXTENSIONS OFF)
endfunction()
