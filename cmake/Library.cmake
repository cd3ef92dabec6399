# libmicroscope.so: all modules of core/ in one library, with the surface its headers mark for
# Lua, and the cdef cut from the same headers.
find_program(LUAJIT_PROGRAM luajit REQUIRED)

get_property(modules GLOBAL PROPERTY MIC_MODULES)
set(headers)
set(objects)
set(libraries)
foreach(module ${modules})
  file(GLOB found CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/core/${module}/*.h")
  list(APPEND headers ${found})
  list(APPEND objects $<TARGET_OBJECTS:mic_${module}>)
  list(APPEND libraries mic_${module})
endforeach()

set(cdef_lua "${CMAKE_BINARY_DIR}/lua/microscope/cdef.lua")
set(cdef_c "${CMAKE_BINARY_DIR}/generated/api.c")
file(MAKE_DIRECTORY "${CMAKE_BINARY_DIR}/lua/microscope" "${CMAKE_BINARY_DIR}/generated")
add_custom_command(OUTPUT "${cdef_lua}" "${cdef_c}"
  COMMAND "${LUAJIT_PROGRAM}" "${CMAKE_SOURCE_DIR}/cmake/cut_cdef.lua" "${cdef_lua}" "${cdef_c}" ${headers}
  DEPENDS "${CMAKE_SOURCE_DIR}/cmake/cut_cdef.lua" ${headers}
  COMMENT "Cutting the FFI surface" VERBATIM)

# The modules' objects, not their archives: what only Lua calls must be kept.
add_library(mic_library SHARED "${cdef_c}" ${objects})
# Its handlers of signals stay in place: LuaJIT unloads libraries when it closes, and a signal that
# comes then would find no code.
target_link_options(mic_library PRIVATE -Wl,-z,nodelete)
set_target_properties(mic_library PROPERTIES OUTPUT_NAME microscope
  LIBRARY_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/lib")
target_link_libraries(mic_library PRIVATE ${libraries} mic_flags)
# What comes from static libraries of others stays inside.
target_link_options(mic_library PRIVATE -Wl,--exclude-libs,ALL)
if(NOT MIC_SANITIZE AND NOT MIC_FUZZ)
  target_link_options(mic_library PRIVATE -Wl,--no-undefined)
endif()

add_executable(mic_program "${CMAKE_SOURCE_DIR}/core/script/main.c")
set_target_properties(mic_program PROPERTIES OUTPUT_NAME microscope
  RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin" INSTALL_RPATH "$ORIGIN/../lib" ENABLE_EXPORTS OFF)
target_link_libraries(mic_program PRIVATE mic_flags PkgConfig::LUAJIT)

# The relocatable tree: bin/microscope, lib/libmicroscope.so, share/microscope/{lua,presets,queries,formats}.
install(TARGETS mic_program RUNTIME DESTINATION bin)
install(TARGETS mic_library LIBRARY DESTINATION lib)
install(DIRECTORY "${CMAKE_SOURCE_DIR}/lua/" DESTINATION share/microscope/lua
  FILES_MATCHING PATTERN "*.lua")
install(FILES "${cdef_lua}" DESTINATION share/microscope/lua/microscope)
install(DIRECTORY "${CMAKE_SOURCE_DIR}/presets/" DESTINATION share/microscope/presets
  FILES_MATCHING PATTERN "*.lua")
install(DIRECTORY "${CMAKE_SOURCE_DIR}/queries/" DESTINATION share/microscope/queries
  FILES_MATCHING PATTERN "*.lua")
# Formats are found by their folder, as a user's are.
install(DIRECTORY "${CMAKE_SOURCE_DIR}/lua/microscope/formats/" DESTINATION share/microscope/formats
  FILES_MATCHING PATTERN "*.lua")
