# What every target shares: language, warnings, compiler cache, linker, sanitizers, and the functions that make rooms and tests.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
# A room finds its own packages; rooms that link it must see them too.
set(CMAKE_FIND_PACKAGE_TARGETS_GLOBAL ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()
# -O3 only in kernels/; everything else compiles faster and runs as well with -O2.
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")
set(CMAKE_CXX_FLAGS_DEBUG "-O1 -g1")

find_program(CCACHE ccache)
if(CCACHE)
  # Precompiled headers are cached only if ccache may ignore their time stamps; a base folder lets clones share what one has built.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
      CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_ABSSTDERR=1 ${CCACHE})
endif()
# A fast linker that comes with the compiler. Not mold: its version in Debian 12 now and then writes programs that do not start, or
# never ends.
find_program(GOLD ld.gold)
if(GOLD)
  add_link_options(-fuse-ld=gold)
endif()

add_compile_options(-Wall -Wextra -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual)
if(CCACHE AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  add_compile_options(-fpch-preprocess)
endif()
if(STACKLAB_WERROR)
  add_compile_options(-Werror)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # What the optimiser guesses about sizes is often wrong inside the standard library; shown, but no error.
    add_compile_options(-Wno-error=array-bounds -Wno-error=stringop-overflow -Wno-error=stringop-overread -Wno-error=restrict
                        -Wno-error=maybe-uninitialized)
  endif()
endif()
if(STACKLAB_SANITIZE)
  # A finding ends the program, so that a test fails. GCC's guess about uninitialised values is wrong in instrumented code.
  add_compile_options(-fsanitize=${STACKLAB_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer
                      $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
  add_link_options(-fsanitize=${STACKLAB_SANITIZE})
endif()

# Includes are written from the repository's root, so that an #include line names its room.
include_directories(${CMAKE_SOURCE_DIR})

# stacklab_room(NAME SOURCES a.cpp ... DEPENDS other rooms or imported targets)
# A room without sources (headers only) is an interface library.
function(stacklab_room name)
  cmake_parse_arguments(ROOM "" "" "SOURCES;DEPENDS;PRIVATE" ${ARGN})
  set(target stacklab_${name})
  if(ROOM_SOURCES)
    add_library(${target} STATIC ${ROOM_SOURCES})
    target_link_libraries(${target} PUBLIC ${ROOM_DEPENDS} PRIVATE ${ROOM_PRIVATE})
  else()
    add_library(${target} INTERFACE)
    target_link_libraries(${target} INTERFACE ${ROOM_DEPENDS})
  endif()
  add_library(stacklab::${name} ALIAS ${target})
endfunction()
