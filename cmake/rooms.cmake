# SPDX-License-Identifier: Apache-2.0
# How a room becomes a library. A new .c file in a room, a kernel file, a family folder, a tool or a test is found by
# itself; a room without files yet is passed over.

set(OCTET_ROOMS "" CACHE INTERNAL "")
set(OCTET_CLIENT_ROOMS "" CACHE INTERNAL "")

# The instruction set of a kernel file is the last word of its name.
function(oct_kernel_flags)
  set(avx2 -mavx2 -mfma -mf16c)
  set(avx512 -mavx512f -mavx512bw -mavx512dq -mavx512vl ${avx2} -mprefer-vector-width=512)
  set(vnni ${avx512} -mavx512vnni)
  set(amx ${vnni} -mavx512bf16 -mamx-tile -mamx-int8 -mamx-bf16)
  foreach(file ${ARGN})
    if(file MATCHES "_(avx2|avx512|vnni|amx)\\.c$")
      set_source_files_properties(${file} PROPERTIES COMPILE_OPTIONS "${${CMAKE_MATCH_1}}")
    endif()
  endforeach()
endfunction()

# A static library room_NAME of SOURCES, linking the rooms that exist among those it may see.
function(oct_room_library name)
  cmake_parse_arguments(ROOM "" "" "SOURCES;ROOMS;LIBRARIES" ${ARGN})
  add_library(room_${name} STATIC ${ROOM_SOURCES})
  target_include_directories(room_${name} PUBLIC ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
  foreach(other ${ROOM_ROOMS})
    if(TARGET room_${other})
      target_link_libraries(room_${name} PUBLIC room_${other})
    endif()
  endforeach()
  target_link_libraries(room_${name} PUBLIC ${ROOM_LIBRARIES})
  set(OCTET_ROOMS ${OCTET_ROOMS} ${name} CACHE INTERNAL "")
endfunction()

# oct_room(NAME ROOMS a b LIBRARIES x y): src/NAME and its folders as room_NAME.
function(oct_room name)
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${name}/*.c ${PROJECT_SOURCE_DIR}/src/${name}/*/*.c)
  if(NOT sources)
    return()
  endif()
  oct_kernel_flags(${sources})
  oct_room_library(${name} SOURCES ${sources} ${ARGN})
endfunction()

# Every families/NAME/*.c, and a list of the families with the texts of their manifests and recipes, made at build time.
function(oct_families)
  file(GLOB found CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/families/*/family.c)
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/families/*/*.c)
  file(GLOB manifests CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/families/*/manifest.yaml
    ${PROJECT_SOURCE_DIR}/families/*/recipes/*.yaml)
  if(NOT found)
    return()
  endif()
  set(list ${PROJECT_BINARY_DIR}/generated/families_list.c)
  add_custom_command(OUTPUT ${list}
    COMMAND ${CMAKE_COMMAND} -DOUTPUT=${list} -DFAMILIES=${PROJECT_SOURCE_DIR}/families
            -P ${PROJECT_SOURCE_DIR}/cmake/families_list.cmake
    DEPENDS ${found} ${manifests} ${PROJECT_SOURCE_DIR}/cmake/families_list.cmake
    COMMENT "Listing families")
  oct_room_library(families SOURCES ${sources} ${list} ${ARGN})
endfunction()

# liboctet, shared (only octet_* is visible) and static, of all rooms.
function(oct_library)
  if(NOT TARGET room_runtime)
    message(STATUS "liboctet not built: src/runtime has no sources")
    return()
  endif()
  set(objects "")
  foreach(name ${OCTET_ROOMS})
    list(APPEND objects $<TARGET_OBJECTS:room_${name}>)
  endforeach()
  set(libraries PkgConfig::JANSSON PkgConfig::YAML PkgConfig::CRYPTO PkgConfig::JPEG PkgConfig::PNG PkgConfig::WEBP
    PkgConfig::CAIRO PkgConfig::ARCHIVE ${PTHREADPOOL_LIBRARY} Threads::Threads m)
  set(map ${PROJECT_SOURCE_DIR}/src/octet.map)

  add_library(octet SHARED ${objects})
  set_target_properties(octet PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR} LINK_DEPENDS ${map})
  target_link_options(octet PRIVATE -Wl,--version-script=${map})
  add_library(octet_static STATIC ${objects})
  set_target_properties(octet_static PROPERTIES OUTPUT_NAME octet EXPORT_NAME static)
  foreach(library octet octet_static)
    target_include_directories(${library} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
      $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
    target_link_libraries(${library} PRIVATE ${libraries})
  endforeach()
endfunction()

# The rooms above the library: eval and study, which like the command see include/octet, and of src each other and what
# docs/rooms.txt names (through folders of links, so that nothing else of src can be included by mistake). They are no
# part of liboctet.
function(oct_client_room name)
  cmake_parse_arguments(ROOM "" "" "ROOMS;LIBRARIES" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${name}/*.c ${PROJECT_SOURCE_DIR}/src/${name}/*/*.c)
  if(NOT sources)
    return()
  endif()
  set(clients ${PROJECT_BINARY_DIR}/clients)
  file(MAKE_DIRECTORY ${clients})
  file(CREATE_LINK ${PROJECT_SOURCE_DIR}/src/${name} ${clients}/${name} SYMBOLIC)
  add_library(room_${name} STATIC ${sources})
  target_include_directories(room_${name} PUBLIC ${clients} ${PROJECT_SOURCE_DIR}/include)
  if(TARGET octet)
    target_link_libraries(room_${name} PUBLIC octet)
  elseif(TARGET room_runtime) # no liboctet: fuzz targets
    target_link_libraries(room_${name} PUBLIC $<LINK_ONLY:room_runtime>)
  endif()
  foreach(other ${ROOM_ROOMS})
    if(other IN_LIST OCTET_ROOMS) # one of the library's: its own copy, seen by this room's sources alone
      set(below ${PROJECT_BINARY_DIR}/clients_${name})
      file(MAKE_DIRECTORY ${below})
      file(CREATE_LINK ${PROJECT_SOURCE_DIR}/src/${other} ${below}/${other} SYMBOLIC)
      target_include_directories(room_${name} PRIVATE ${below})
      target_link_libraries(room_${name} PRIVATE $<LINK_ONLY:room_${other}>)
    elseif(TARGET room_${other})
      target_link_libraries(room_${name} PUBLIC room_${other})
    endif()
  endforeach()
  target_link_libraries(room_${name} PUBLIC ${ROOM_LIBRARIES} m)
  set(OCTET_CLIENT_ROOMS ${OCTET_CLIENT_ROOMS} ${name} CACHE INTERNAL "")
endfunction()

# The command sees the public headers, and of src the client rooms and its own folder.
function(oct_command)
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/cli/*.c)
  if(NOT sources OR NOT TARGET octet)
    message(STATUS "octet, the command, not built: src/cli or src/runtime has no sources")
    return()
  endif()
  add_executable(octet_command ${sources})
  set_target_properties(octet_command PROPERTIES OUTPUT_NAME octet RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin
    INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}")
  foreach(room ${OCTET_CLIENT_ROOMS})
    target_link_libraries(octet_command PRIVATE room_${room})
  endforeach()
  target_link_libraries(octet_command PRIVATE octet PkgConfig::JANSSON Threads::Threads m)
endfunction()

# Programs for developers: tools/NAME.c, each its own, and the one that draws the subjects' pictures.
function(oct_tools)
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tools/*.c)
  foreach(source ${sources})
    get_filename_component(name ${source} NAME_WE)
    add_executable(${name} ${source})
    set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
    target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
    foreach(room runtime families checkpoint graph base)
      if(TARGET room_${room})
        target_link_libraries(${name} PRIVATE room_${room})
      endif()
    endforeach()
    target_link_libraries(${name} PRIVATE m)
  endforeach()

  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/subjects/*.c)
  if(sources)
    add_executable(subjects_draw ${sources})
    set_target_properties(subjects_draw PROPERTIES OUTPUT_NAME subjects-draw RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
    target_link_libraries(subjects_draw PRIVATE PkgConfig::JPEG Threads::Threads m)
  endif()
endfunction()
