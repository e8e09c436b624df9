# What `cmake --install` puts where: the programs find their files in share/stacklab beside bin/, desktops theirs where the
# freedesktop.org standards say.
include(GNUInstallDirs)

install(TARGETS stacklab RUNTIME)
install(DIRECTORY ${CMAKE_SOURCE_DIR}/experiments DESTINATION ${CMAKE_INSTALL_DATADIR}/stacklab FILES_MATCHING PATTERN "*.json")
install(DIRECTORY ${CMAKE_SOURCE_DIR}/resources DESTINATION ${CMAKE_INSTALL_DATADIR}/stacklab
        FILES_MATCHING PATTERN "*.json" PATTERN theme EXCLUDE PATTERN icons EXCLUDE PATTERN pictures EXCLUDE
        PATTERN scripts EXCLUDE PATTERN cmake EXCLUDE PATTERN desktop EXCLUDE)
if(TARGET stacklab_onednn)
  install(TARGETS stacklab_onednn LIBRARY DESTINATION ${CMAKE_INSTALL_BINDIR})  # looked for beside the program
endif()
install(FILES ${CMAKE_BINARY_DIR}/completions/stacklab DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions OPTIONAL)
install(FILES ${CMAKE_BINARY_DIR}/completions/_stacklab DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions OPTIONAL)
install(FILES ${CMAKE_BINARY_DIR}/completions/stacklab.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d OPTIONAL)
install(FILES ${CMAKE_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
if(TARGET stacklab-workbench)
  install(TARGETS stacklab-workbench RUNTIME)
  set(desktop ${CMAKE_SOURCE_DIR}/resources/desktop)
  install(FILES ${desktop}/org.stacklab.Workbench.desktop DESTINATION ${CMAKE_INSTALL_DATADIR}/applications)
  install(FILES ${desktop}/org.stacklab.Workbench.metainfo.xml DESTINATION ${CMAKE_INSTALL_DATADIR}/metainfo)
  install(FILES ${desktop}/stacklab.mime.xml DESTINATION ${CMAKE_INSTALL_DATADIR}/mime/packages RENAME stacklab.xml)
  install(FILES ${CMAKE_SOURCE_DIR}/resources/icons/stacklab.svg
          DESTINATION ${CMAKE_INSTALL_DATADIR}/icons/hicolor/scalable/apps RENAME org.stacklab.Workbench.svg)
endif()
