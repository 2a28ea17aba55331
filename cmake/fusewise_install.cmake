# cmake --install: the command, the library with its headers, the compiler module beside the library, and what
# find_package(Fusewise) and pkg-config need.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# The rooms whose headers the public interface (session/session.h) includes.
set(FUSEWISE_PUBLIC_ROOMS base numerics hostops machine graph program schedule cost fusion import compiler session)

# Where the command finds the compiler module from the folder it is installed in.
file(RELATIVE_PATH libraries_from_programs "/${CMAKE_INSTALL_BINDIR}" "/${CMAKE_INSTALL_LIBDIR}")
set_source_files_properties("${CMAKE_SOURCE_DIR}/src/codegen/load_llvm.cpp" PROPERTIES
  COMPILE_DEFINITIONS "FUSEWISE_LIBRARIES_FROM_PROGRAMS=\"${libraries_from_programs}\"")

# fusewise_install(): to be called when all targets exist.
function(fusewise_install)
  set_target_properties(libfusewise PROPERTIES EXPORT_NAME fusewise)
  target_compile_features(libfusewise INTERFACE cxx_std_20)
  target_include_directories(libfusewise INTERFACE "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/fusewise>")
  set_target_properties(fusewise_llvm PROPERTIES INSTALL_RPATH_USE_LINK_PATH ON)
  install(TARGETS fusewise RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
  install(TARGETS fusewise_llvm LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}")
  install(TARGETS libfusewise EXPORT Fusewise LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}")
  foreach(room IN LISTS FUSEWISE_PUBLIC_ROOMS)
    install(DIRECTORY "${CMAKE_SOURCE_DIR}/src/${room}" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/fusewise"
      FILES_MATCHING PATTERN "*.h" PATTERN "*.def")
  endforeach()

  set(package "${CMAKE_INSTALL_LIBDIR}/cmake/Fusewise")
  install(EXPORT Fusewise NAMESPACE Fusewise:: FILE FusewiseTargets.cmake DESTINATION "${package}")
  configure_package_config_file("${CMAKE_SOURCE_DIR}/cmake/FusewiseConfig.cmake.in" FusewiseConfig.cmake
    INSTALL_DESTINATION "${package}")
  write_basic_package_version_file(FusewiseConfigVersion.cmake COMPATIBILITY SameMinorVersion)
  file(RELATIVE_PATH prefix_from_pkgconfig "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
  configure_file("${CMAKE_SOURCE_DIR}/cmake/fusewise.pc.in" fusewise.pc @ONLY)
  install(FILES "${CMAKE_CURRENT_BINARY_DIR}/FusewiseConfig.cmake" "${CMAKE_CURRENT_BINARY_DIR}/FusewiseConfigVersion.cmake"
    DESTINATION "${package}")
  install(FILES "${CMAKE_CURRENT_BINARY_DIR}/fusewise.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
endfunction()
