# The files that `cmake --install` and `cpack` install, by component. `program`: the command, its man page and its
# completion scripts. `library`: headers and libraries for find_package(heed). For each MPI, a further component
# contains the library for distributed runs.
include(CMakePackageConfigHelpers)
set(heed_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/heed)

file(CONFIGURE OUTPUT heed-config.cmake @ONLY CONTENT [[
include(CMakeFindDependencyMacro)
foreach(package IN ITEMS PkgConfig Threads ZLIB OpenSSL fmt nlohmann_json)
  find_dependency(${package})
endforeach()
# Each further argument is PREFIX=MODULE. Defines a target PkgConfig::PREFIX for each pkg-config module that exists, and
# sets ${result} to the names of the missing modules.
macro(heed_find_modules result)
  set(${result} "")
  foreach(module IN ITEMS ${ARGN})
    string(REGEX REPLACE "=.*" "" heed_prefix "${module}")
    string(REGEX REPLACE ".*=" "" heed_module "${module}")
    pkg_check_modules(${heed_prefix} QUIET IMPORTED_TARGET ${heed_module})
    if(NOT ${heed_prefix}_FOUND)
      list(APPEND ${result} ${heed_module})
    endif()
  endforeach()
endmacro()
heed_find_modules(missing OPENBLAS=openblas HWY=libhwy)
if(missing)
  set(heed_FOUND FALSE)
  set(heed_NOT_FOUND_MESSAGE "pkg-config cannot find: ${missing}")
  return()
endif()
include(${CMAKE_CURRENT_LIST_DIR}/heed-targets.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/heed_add_plugin.cmake)
# heed::data and the packages that only this library needs.
heed_find_modules(missing SENTENCEPIECE=sentencepiece PCRE2=libpcre2-8 PNG=libpng TURBOJPEG=libturbojpeg)
if(NOT missing)
  include(${CMAKE_CURRENT_LIST_DIR}/heed-data-targets.cmake)
  set(heed_data_FOUND TRUE)
elseif(heed_FIND_REQUIRED_data)
  set(heed_FOUND FALSE)
  set(heed_NOT_FOUND_MESSAGE "heed::data is not available, because pkg-config cannot find: ${missing}")
elseif(NOT heed_FIND_QUIETLY)
  message(STATUS "heed::data is not available, because pkg-config cannot find: ${missing}")
endif()
]])
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/heed-config-version.cmake
                                 COMPATIBILITY SameMinorVersion)

# `./heed` builds only the program; an installation first builds the targets that it installs, without the tests.
set(CMAKE_SKIP_INSTALL_ALL_DEPENDENCY ON)
set(built ${heed_libraries} heed_data)
list(FILTER built EXCLUDE REGEX "^heed_(plugin_)?f(32|64)$")   # interface libraries: nothing to build
set(components program library)
set(targets_of_program heed)
set(targets_of_library ${built})
if(TARGET heed_python)
  list(APPEND components python)
  set(targets_of_python heed_python)
endif()
foreach(component IN LISTS components)
  install(CODE "execute_process(
    COMMAND \"${CMAKE_COMMAND}\" --build \"${CMAKE_BINARY_DIR}\" --target ${targets_of_${component}}
    COMMAND_ERROR_IS_FATAL ANY)" COMPONENT ${component})
endforeach()

# ---- library -------------------------------------------------------------------------------------
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/heed-config.cmake
              ${CMAKE_CURRENT_BINARY_DIR}/heed-config-version.cmake
              train/heed_add_plugin.cmake
        DESTINATION ${heed_package_dir} COMPONENT library)
install(TARGETS ${heed_libraries} EXPORT heed-targets COMPONENT library)
install(TARGETS heed_data EXPORT heed-data-targets COMPONENT library)
foreach(export IN ITEMS heed-targets heed-data-targets)
  install(EXPORT ${export} NAMESPACE heed:: DESTINATION ${heed_package_dir} COMPONENT library)
endforeach()
install(DIRECTORY autograd nn optim data train DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/heed
        COMPONENT library FILES_MATCHING PATTERN "*.h"
        PATTERN multi30k EXCLUDE PATTERN tinyshakespeare EXCLUDE PATTERN mnist EXCLUDE)
# Installed headers include one another as "heed/nn/…", so that a user's file
# nn/parameters.h cannot shadow heed's.
install(CODE "set(heed_headers \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_INCLUDEDIR}/heed\")"
        COMPONENT library)
install(CODE [[
  file(GLOB_RECURSE headers "${heed_headers}/*.h")
  foreach(header IN LISTS headers)
    file(READ "${header}" text)
    string(REGEX REPLACE "(#include \")(autograd|nn|optim|data|train)/" "\\1heed/\\2/" text "${text}")
    file(WRITE "${header}" "${text}")
  endforeach()]] COMPONENT library)

# ---- program -------------------------------------------------------------------------------------
install(TARGETS heed COMPONENT program)
# The files of `heed course`: without the tests of the course itself.
install(DIRECTORY tests/course/ DESTINATION ${CMAKE_INSTALL_DATADIR}/heed/course COMPONENT program
        FILES_MATCHING PATTERN "*.h" PATTERN check.cpp PATTERN my_test.cpp PATTERN chapter.json PATTERN "bugs/*.txt")
foreach(name IN LISTS HEED_MPI)
  install(TARGETS heed_mpi_${name} DESTINATION ${CMAKE_INSTALL_LIBDIR}/heed COMPONENT ${name})
endforeach()
# The program prints its man page and completion scripts.
foreach(printed IN ITEMS "heed.1:man" "heed.bash:completion bash" "_heed:completion zsh")
  string(REGEX MATCH "^([^:]*):(.*)$" printed "${printed}")
  install(CODE "execute_process(COMMAND \"$<TARGET_FILE:heed>\" ${CMAKE_MATCH_2}
    OUTPUT_FILE \"${CMAKE_CURRENT_BINARY_DIR}/${CMAKE_MATCH_1}\" COMMAND_ERROR_IS_FATAL ANY)"
    COMPONENT program)
endforeach()
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/heed.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1
        COMPONENT program)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/heed.bash RENAME heed
        DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions COMPONENT program)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/_heed
        DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions COMPONENT program)

# ---- Python module -------------------------------------------------------------------------------
set(HEED_PYTHON_FOLDER lib/python3/dist-packages CACHE STRING "Folder of the Python module, relative to the prefix")
if(TARGET heed_python)
  install(TARGETS heed_python DESTINATION ${HEED_PYTHON_FOLDER} COMPONENT python)
endif()

# ---- Debian packages: `cpack` makes heed, libheed-dev, python3-heed and, for each MPI, heed-NAME ----
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_PACKAGE_CONTACT "the developers of heed <heed@localhost>")
set(CPACK_PACKAGE_DIRECTORY ${CMAKE_BINARY_DIR}/packages)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_ALL ${components} ${HEED_MPI})
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_NAME heed)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_RECOMMENDS "ca-certificates, curl, librsvg2-bin")
set(CPACK_COMPONENT_PROGRAM_DESCRIPTION "Trains Transformers from a YAML file, on the CPU")
set(CPACK_DEBIAN_LIBRARY_PACKAGE_NAME libheed-dev)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_DEPENDS "g++, pkg-config, libopenblas-dev, libhwy-dev, libfmt-dev, \
nlohmann-json3-dev, zlib1g-dev, libssl-dev")
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SUGGESTS "heed, cmake, libboost-test-dev, libsentencepiece-dev, libpcre2-dev, libpng-dev, \
libturbojpeg0-dev")
set(CPACK_COMPONENT_LIBRARY_DESCRIPTION "Autograd, layers and a gradient checker in C++20 (headers and static libraries)")
set(CPACK_DEBIAN_PYTHON_PACKAGE_NAME python3-heed)
set(CPACK_DEBIAN_PYTHON_PACKAGE_SECTION python)
set(CPACK_DEBIAN_PYTHON_PACKAGE_SHLIBDEPS ON)
math(EXPR next "${Python3_VERSION_MINOR} + 1")
set(CPACK_DEBIAN_PYTHON_PACKAGE_DEPENDS
    "python3 (>= 3.${Python3_VERSION_MINOR}), python3 (<< 3.${next}), python3-numpy")
set(CPACK_DEBIAN_PYTHON_PACKAGE_SUGGESTS "heed, python3-ipykernel, librsvg2-bin")
set(CPACK_COMPONENT_PYTHON_DESCRIPTION "heed as a Python module")
foreach(name IN LISTS HEED_MPI)
  string(TOUPPER ${name} upper)
  set(CPACK_DEBIAN_${upper}_PACKAGE_NAME heed-${name})
  set(CPACK_DEBIAN_${upper}_PACKAGE_SHLIBDEPS ON)
  set(CPACK_DEBIAN_${upper}_PACKAGE_DEPENDS "heed (= ${PROJECT_VERSION})")
  set(CPACK_COMPONENT_${upper}_DESCRIPTION "Distributed runs of heed under ${name}")
endforeach()
include(CPack)
