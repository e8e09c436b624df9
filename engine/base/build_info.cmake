# Run at every build: writes OUTPUT from INPUT only when version, commit or dirtiness has changed, so nothing is rebuilt without need.
set(STACKLAB_COMMIT unknown)
find_program(GIT git)
if(GIT)
  execute_process(COMMAND ${GIT} -c safe.directory=* -C ${SOURCE_DIR} rev-parse --short=12 HEAD
                  OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE status ERROR_QUIET)
  execute_process(COMMAND ${GIT} -c safe.directory=* -C ${SOURCE_DIR} rev-parse --show-prefix
                  OUTPUT_VARIABLE prefix OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  # Sources unpacked inside somebody else's checkout have no commit of their own.
  if(status EQUAL 0 AND prefix STREQUAL "")
    set(STACKLAB_COMMIT ${commit})
    execute_process(COMMAND ${GIT} -c safe.directory=* -C ${SOURCE_DIR} status --porcelain --untracked-files=no
                    OUTPUT_VARIABLE changes OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    if(NOT changes STREQUAL "")
      string(APPEND STACKLAB_COMMIT +dirty)
    endif()
  endif()
endif()
# configure_file leaves a file alone whose content would be the same.
configure_file(${INPUT} ${OUTPUT} @ONLY)
