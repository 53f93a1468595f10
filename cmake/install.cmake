# SPDX-License-Identifier: Apache-2.0
# What `cmake --install` and `make install` put where: libraries, headers, octet.pc, the CMake package, the command, its page.
include(CMakePackageConfigHelpers)

function(oct_install)
  if(NOT TARGET octet)
    return()
  endif()
  set(package ${CMAKE_INSTALL_LIBDIR}/cmake/octet)
  install(TARGETS octet octet_static EXPORT octetTargets)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/octet DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
  install(EXPORT octetTargets NAMESPACE octet:: DESTINATION ${package})

  configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/octetConfig.cmake.in ${PROJECT_BINARY_DIR}/octetConfig.cmake
    INSTALL_DESTINATION ${package})
  write_basic_package_version_file(${PROJECT_BINARY_DIR}/octetConfigVersion.cmake COMPATIBILITY SameMinorVersion)
  install(FILES ${PROJECT_BINARY_DIR}/octetConfig.cmake ${PROJECT_BINARY_DIR}/octetConfigVersion.cmake DESTINATION ${package})

  configure_file(${PROJECT_SOURCE_DIR}/cmake/octet.pc.in ${PROJECT_BINARY_DIR}/octet.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/octet.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
  install(FILES ${PROJECT_SOURCE_DIR}/LICENSE ${PROJECT_SOURCE_DIR}/NOTICE ${PROJECT_SOURCE_DIR}/THIRD_PARTY.md
    DESTINATION ${CMAKE_INSTALL_DOCDIR})

  if(TARGET octet_command)
    install(TARGETS octet_command)
  endif()
  file(GLOB pages CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/docs/*.1)
  if(pages)
    install(FILES ${pages} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
  endif()
endfunction()
