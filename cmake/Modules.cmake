# How a module of core/ is built.
#
# A module's include path holds itself and the modules it links to, nothing else: each
# module has a folder of its own under build/floor/ with one link to its sources in it.
# Including from a module that is not linked does not compile, so the floors of
# docs/internals/architecture.md hold by construction.

add_library(mic_flags INTERFACE)
target_compile_definitions(mic_flags INTERFACE _GNU_SOURCE)
target_compile_options(mic_flags INTERFACE
  -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wconversion
  -fno-omit-frame-pointer -g)
if(MIC_WERROR)
  target_compile_options(mic_flags INTERFACE -Werror)
endif()
if(MIC_SANITIZE)
  target_compile_options(mic_flags INTERFACE -fsanitize=${MIC_SANITIZE} -fno-sanitize-recover=undefined)
  target_link_options(mic_flags INTERFACE -fsanitize=${MIC_SANITIZE})
endif()
if(MIC_FUZZ)
  target_compile_options(mic_flags INTERFACE -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined)
  target_link_options(mic_flags INTERFACE -fsanitize=address,undefined)
endif()
if(MIC_COVERAGE)
  target_compile_options(mic_flags INTERFACE --coverage)
  target_link_options(mic_flags INTERFACE --coverage)
endif()

# mic_module(NAME LINKS target... [LIBRARIES target...])
#   NAME       the folder under core/; every *.c in it but *_test.c, *_fuzz.c and a program's
#              main.c is built in
#   LINKS      modules on floors below that it may see
#   LIBRARIES  libraries of others
# Makes mic_NAME (static), NAME_test from *_test.c when there are any (cmocka, one main
# each, registered with ctest under the label NAME), and NOUN_fuzz from each NOUN_fuzz.c.
function(mic_module name)
  cmake_parse_arguments(ARG "" "" "LINKS;LIBRARIES" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/*.c")
  set(tests ${sources})
  set(fuzzers ${sources})
  list(FILTER sources EXCLUDE REGEX "(_test|_fuzz|/main)\\.c$")
  list(FILTER tests INCLUDE REGEX "_test\\.c$")
  list(FILTER fuzzers INCLUDE REGEX "_fuzz\\.c$")

  if(NOT sources)
    # A module may be headers only for a while; CMake wants a source of every library.
    set(sources "${CMAKE_BINARY_DIR}/generated/${name}_empty.c")
    file(WRITE "${sources}" "")
  endif()

  set(floor "${CMAKE_BINARY_DIR}/floor/${name}")
  file(MAKE_DIRECTORY "${floor}")
  file(CREATE_LINK "${CMAKE_CURRENT_SOURCE_DIR}" "${floor}/${name}" SYMBOLIC)

  add_library(mic_${name} STATIC ${sources})
  target_include_directories(mic_${name} PUBLIC "${floor}")
  list(TRANSFORM ARG_LINKS PREPEND "mic_")
  target_link_libraries(mic_${name} PUBLIC ${ARG_LINKS} PRIVATE mic_flags ${ARG_LIBRARIES})
  set_property(GLOBAL APPEND PROPERTY MIC_MODULES ${name})

  foreach(test ${tests})
    get_filename_component(noun "${test}" NAME_WE)
    add_executable(${name}_${noun} "${test}")
    target_link_libraries(${name}_${noun} PRIVATE mic_${name} mic_flags ${ARG_LIBRARIES} PkgConfig::CMOCKA)
    set_target_properties(${name}_${noun} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/tests/${name}")
  endforeach()
  if(MIC_FUZZ)
    foreach(fuzzer ${fuzzers})
      get_filename_component(noun "${fuzzer}" NAME_WE)
      add_executable(${noun} "${fuzzer}")
      target_link_libraries(${noun} PRIVATE mic_${name} mic_flags ${ARG_LIBRARIES})
      target_link_options(${noun} PRIVATE -fsanitize=fuzzer)
      set_target_properties(${noun} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/fuzzers")
    endforeach()
  else()
    # The same entry points over the committed corpus, as plain tests.
    foreach(fuzzer ${fuzzers})
      get_filename_component(noun "${fuzzer}" NAME_WE)
      add_executable(${noun}_replay "${fuzzer}" "${CMAKE_SOURCE_DIR}/core/replay/main.c")
      target_link_libraries(${noun}_replay PRIVATE mic_${name} mic_flags ${ARG_LIBRARIES})
      set_target_properties(${noun}_replay PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/tests/${name}")
    endforeach()
  endif()
endfunction()
