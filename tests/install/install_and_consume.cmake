# cmake -DHEED_BUILD=… -DCONSUMER=… -DCXX=… -DGENERATOR=… -DSANITIZE=… -DPYTHON=… -DLIBRARY_PAGE=…
#       -P install_and_consume.cmake
# Works in a temporary folder, which it removes.
cmake_minimum_required(VERSION 3.25)
execute_process(COMMAND mktemp -d OUTPUT_VARIABLE dir OUTPUT_STRIP_TRAILING_WHITESPACE
                COMMAND_ERROR_IS_FATAL ANY)

function(fail what)
  file(REMOVE_RECURSE ${dir})
  message(FATAL_ERROR "${what}")
endfunction()

function(step)
  execute_process(COMMAND ${ARGN} WORKING_DIRECTORY ${dir} RESULT_VARIABLE status
                  OUTPUT_VARIABLE out ERROR_VARIABLE out)
  if(status)
    fail("${ARGN}\nexit status ${status}\n${out}")
  endif()
  set(out "${out}" PARENT_SCOPE)
endfunction()

# Fails unless the last step printed this text.
function(expect text)
  string(FIND "${out}" "${text}" at)
  if(at EQUAL -1)
    fail("expected \"${text}\" in:\n${out}")
  endif()
endfunction()

# `./heed` does not build all libraries; installing must succeed without one.
set(library ${HEED_BUILD}/optim/libheed_optim_f64.a)
file(RENAME ${library} ${library}.aside)
execute_process(COMMAND ${CMAKE_COMMAND} --install ${HEED_BUILD} --prefix ${dir}/first
                RESULT_VARIABLE status OUTPUT_VARIABLE out ERROR_VARIABLE out)
file(RENAME ${library}.aside ${library})   # keeps its time stamp, so that nothing is linked again
if(status)
  fail("installing fails if one library is not built: exit status ${status}\n${out}")
endif()
# An installed tree can be moved and must not refer to the sources or the build.
file(RENAME ${dir}/first "${dir}/the prefix")
file(GLOB_RECURSE configs "${dir}/the prefix/*.cmake")
foreach(config IN LISTS configs)
  file(READ ${config} text)
  cmake_path(GET CMAKE_CURRENT_LIST_DIR PARENT_PATH tests_dir)
  cmake_path(GET tests_dir PARENT_PATH source_dir)
  string(FIND "${text}" "${source_dir}/" in_source)
  string(FIND "${text}" "${HEED_BUILD}" in_build)
  if(NOT in_source EQUAL -1 OR NOT in_build EQUAL -1)
    fail("${config} refers to the sources or to the build folder")
  endif()
endforeach()

file(COPY ${CONSUMER}/ DESTINATION ${dir}/source)
set(flags "")
if(SANITIZE)
  set(flags "-DCMAKE_CXX_FLAGS=-fsanitize=${SANITIZE}")
endif()
step(${CMAKE_COMMAND} -S ${dir}/source -B ${dir}/build -G ${GENERATOR} "-DCMAKE_PREFIX_PATH=${dir}/the prefix"
     -DCMAKE_CXX_COMPILER=${CXX} -DCMAKE_BUILD_TYPE=Release ${flags})
step(${CMAKE_COMMAND} --build ${dir}/build)
# Without SentencePiece, libpng and libjpeg-turbo, find_package still finds heed::f32 and heed::f64.
find_program(PKG_CONFIG pkg-config REQUIRED)
foreach(module IN ITEMS openblas libhwy)
  step(${PKG_CONFIG} --variable=pcfiledir ${module})
  string(STRIP "${out}" folder)
  file(COPY ${folder}/${module}.pc DESTINATION ${dir}/modules)
endforeach()
set(without ${CMAKE_COMMAND} -E env PKG_CONFIG_LIBDIR=${dir}/modules ${CMAKE_COMMAND} -S ${dir}/source -G ${GENERATOR}
            "-DCMAKE_PREFIX_PATH=${dir}/the prefix" -DCMAKE_CXX_COMPILER=${CXX})
set(reason "heed::data is not available, because pkg-config cannot find: sentencepiece")
step(${without} -B ${dir}/without)
expect("${reason}")
execute_process(COMMAND ${without} -B ${dir}/with -DCOMPONENTS=data RESULT_VARIABLE status
                OUTPUT_VARIABLE out ERROR_VARIABLE out)
if(NOT status)
  fail("find_package(heed COMPONENTS data) succeeds without SentencePiece")
endif()
string(REGEX REPLACE "[ \n]+" " " out "${out}")
expect("${reason}")
step(${dir}/build/train_gate)
expect("in the last")
step(${dir}/build/check_gate)
expect("No errors detected")
step(${dir}/build/tokens)
expect("9 tokens")

if(PYTHON)
  set(flags "")
  if(SANITIZE)
    set(flags "-fsanitize=${SANITIZE}")
  endif()
  # The commands of the page contain the prefix without quotes, so its name must not contain a space.
  file(RENAME "${dir}/the prefix" ${dir}/prefix)
  # The page's cmake commands name no generator, and the default generator requires make.
  step(${CMAKE_COMMAND} -E env CMAKE_GENERATOR=${GENERATOR}
       ${PYTHON} -B ${CMAKE_CURRENT_LIST_DIR}/library_page.py ${LIBRARY_PAGE} ${dir}/prefix ${CXX} ${flags})
  message(STATUS "${out}")
  file(RENAME ${dir}/prefix "${dir}/the prefix")
endif()

if(EXISTS "${dir}/the prefix/bin/heed")
  step("${dir}/the prefix/bin/heed" --help)
  expect(gradcheck)
  foreach(printed IN ITEMS "share/man/man1/heed.1:gradcheck" "share/bash-completion/completions/heed:complete -F _heed heed"
                           "share/zsh/site-functions/_heed:#compdef heed")
    string(REGEX MATCH "^([^:]*):(.*)$" printed "${printed}")
    file(READ "${dir}/the prefix/${CMAKE_MATCH_1}" out)
    expect("${CMAKE_MATCH_2}")
  endforeach()
  # The course: an exercise is checked with the installed headers, and compiled by the project that `start` writes (the
  # test of the course compiles the others).
  step("${dir}/the prefix/bin/heed" course start course --solutions)
  step(${CMAKE_COMMAND} -E env CXX=${CXX} ${CMAKE_COMMAND} -E chdir course "${dir}/the prefix/bin/heed" course check 3)
  expect("passed  gradients: attention")
  step(${CMAKE_COMMAND} -S course -B course/build -G ${GENERATOR} -DCMAKE_CXX_COMPILER=${CXX})
  step(${CMAKE_COMMAND} --build course/build --target 03-attention)
  cmake_path(GET CMAKE_CURRENT_LIST_DIR PARENT_PATH tests_dir)
  cmake_path(GET tests_dir PARENT_PATH source_dir)
  string(REGEX REPLACE "^-DCMAKE_CXX_FLAGS=" "" flags "${flags}")
  step(sh ${CMAKE_CURRENT_LIST_DIR}/test_plugins.sh "${dir}/the prefix/bin/heed" "${dir}/the prefix"
       ${source_dir}/docs/PLUGINS.md ${CXX} ${GENERATOR} "${flags}")
endif()
file(REMOVE_RECURSE ${dir})
