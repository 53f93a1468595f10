# SPDX-License-Identifier: Apache-2.0
# How a room becomes a library. A new .c file in a room, a kernel file, a family folder or a test is found by itself.

set(OCTET_ROOMS "" CACHE INTERNAL "")

# The instruction set of a kernel file is the last word of its name.
function(oct_kernel_flags)
  foreach(file ${ARGN})
    if(file MATCHES "_avx2\\.c$")
      set_source_files_properties(${file} PROPERTIES COMPILE_OPTIONS "-mavx2;-mfma;-mf16c")
    elseif(file MATCHES "_avx512\\.c$")
      set_source_files_properties(${file} PROPERTIES COMPILE_OPTIONS
        "-mavx512f;-mavx512bw;-mavx512dq;-mavx512vl;-mavx2;-mfma;-mf16c;-mprefer-vector-width=512")
    elseif(file MATCHES "_vnni\\.c$")
      set_source_files_properties(${file} PROPERTIES COMPILE_OPTIONS
        "-mavx512f;-mavx512bw;-mavx512dq;-mavx512vl;-mavx512vnni;-mavx2;-mfma;-mf16c;-mprefer-vector-width=512")
    elseif(file MATCHES "_amx\\.c$")
      set_source_files_properties(${file} PROPERTIES COMPILE_OPTIONS
        "-mavx512f;-mavx512bw;-mavx512dq;-mavx512vl;-mavx512vnni;-mavx512bf16;-mamx-tile;-mamx-int8;-mamx-bf16;-mavx2;-mfma;-mf16c")
    endif()
  endforeach()
endfunction()

# oct_room(NAME ROOMS a b LIBRARIES x y): src/NAME as static library room_NAME, seeing only the rooms it names.
function(oct_room name)
  cmake_parse_arguments(ROOM "" "" "ROOMS;LIBRARIES" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${name}/*.c ${PROJECT_SOURCE_DIR}/src/${name}/*/*.c)
  if(NOT sources)
    return()
  endif()
  oct_kernel_flags(${sources})
  add_library(room_${name} STATIC ${sources})
  target_include_directories(room_${name} PUBLIC ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
  foreach(other ${ROOM_ROOMS})
    if(TARGET room_${other})
      target_link_libraries(room_${name} PUBLIC room_${other})
    endif()
  endforeach()
  target_link_libraries(room_${name} PUBLIC ${ROOM_LIBRARIES})
  set(OCTET_ROOMS ${OCTET_ROOMS} ${name} CACHE INTERNAL "")
endfunction()

# Every families/NAME/family.c, and a list of them with their manifests' text, made at build time.
function(oct_families)
  cmake_parse_arguments(ROOM "" "" "ROOMS" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/families/*/family.c)
  file(GLOB manifests CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/families/*/manifest.yaml)
  if(NOT sources)
    return()
  endif()
  set(list ${PROJECT_BINARY_DIR}/generated/families_list.c)
  add_custom_command(OUTPUT ${list}
    COMMAND ${CMAKE_COMMAND} -DOUTPUT=${list} -DFAMILIES=${PROJECT_SOURCE_DIR}/families
            -P ${PROJECT_SOURCE_DIR}/cmake/families_list.cmake
    DEPENDS ${sources} ${manifests} ${PROJECT_SOURCE_DIR}/cmake/families_list.cmake
    COMMENT "listing families")
  add_library(room_families STATIC ${sources} ${list})
  target_include_directories(room_families PUBLIC ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
  foreach(other ${ROOM_ROOMS})
    if(TARGET room_${other})
      target_link_libraries(room_families PUBLIC room_${other})
    endif()
  endforeach()
  set(OCTET_ROOMS ${OCTET_ROOMS} families CACHE INTERNAL "")
endfunction()

# liboctet, shared and static, of all rooms.
function(oct_library)
  if(NOT TARGET room_runtime)
    return()
  endif()
  set(objects "")
  foreach(name ${OCTET_ROOMS})
    list(APPEND objects $<TARGET_OBJECTS:room_${name}>)
  endforeach()
  add_library(octet SHARED ${objects})
  set_target_properties(octet PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION 0)
  target_include_directories(octet PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:include>)
  target_link_libraries(octet PRIVATE PkgConfig::JANSSON PkgConfig::YAML PkgConfig::CRYPTO PkgConfig::JPEG PkgConfig::PNG
    PkgConfig::WEBP PkgConfig::CAIRO ${PTHREADPOOL_LIBRARY} Threads::Threads m)
endfunction()

function(oct_command)
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/cli/*.c)
  if(NOT sources OR NOT TARGET octet)
    return()
  endif()
  add_executable(octet_command ${sources})
  set_target_properties(octet_command PROPERTIES OUTPUT_NAME octet)
  target_include_directories(octet_command PRIVATE ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(octet_command PRIVATE octet)
endfunction()

# tests/unit/ROOM/NAME.c is a cmocka program that sees ROOM and what ROOM sees.
function(oct_tests)
  pkg_check_modules(CMOCKA REQUIRED IMPORTED_TARGET cmocka)
  foreach(name ${OCTET_ROOMS})
    file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/unit/${name}/*.c)
    foreach(source ${sources})
      get_filename_component(test ${source} NAME_WE)
      add_executable(test_${name}_${test} ${source})
      target_include_directories(test_${name}_${test} PRIVATE ${PROJECT_SOURCE_DIR}/tests ${PROJECT_SOURCE_DIR}/include)
      target_link_libraries(test_${name}_${test} PRIVATE room_${name} PkgConfig::CMOCKA)
      target_compile_definitions(test_${name}_${test} PRIVATE OCTET_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
      add_test(NAME ${name}/${test} COMMAND test_${name}_${test})
    endforeach()
  endforeach()
endfunction()
