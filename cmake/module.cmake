# The module: target thread_pool_rs, the C++ shim and the core in one shared object.

set(rtp_shim
  cpp_shim/hooks.cc
  cpp_shim/host.cc
  cpp_shim/log.cc
  cpp_shim/plugin.cc
  cpp_shim/schema_tables.cc
  cpp_shim/session.cc
  cpp_shim/status.cc
  cpp_shim/tables.cc
  cpp_shim/threads.cc
  cpp_shim/variables.cc)

# Rules that hold for both ways to build it; cmake/check_module.sh has the reasons.
function(rtp_finish_module mysqld)
  set(exports "${rtp_root}/cmake/exports.map")
  target_compile_definitions(thread_pool_rs PRIVATE MYSQL_SERVER "LOG_COMPONENT_TAG=\"thread_pool\"")
  target_compile_features(thread_pool_rs PRIVATE cxx_std_20)
  target_link_options(thread_pool_rs PRIVATE
    "LINKER:--version-script=${exports}" LINKER:--gc-sections LINKER:--as-needed LINKER:--build-id
    LINKER:-z,nodelete LINKER:-z,relro LINKER:-z,now)
  set_target_properties(thread_pool_rs PROPERTIES NO_SONAME TRUE LINK_DEPENDS "${exports}")
  add_custom_command(TARGET thread_pool_rs POST_BUILD
    COMMAND "${CMAKE_COMMAND}" -E env "CXX=${CMAKE_CXX_COMPILER}"
            "${rtp_root}/cmake/check_module.sh" "$<TARGET_FILE:thread_pool_rs>" "${mysqld}"
            "$<TARGET_OBJECTS:thread_pool_rs>"
    COMMAND_EXPAND_LISTS VERBATIM)
endfunction()

if(RTP_IN_TREE)
  # The server's own macro sets includes, flags, output folder and installation.
  MYSQL_ADD_PLUGIN(thread_pool_rs ${rtp_shim} MODULE_ONLY
    LINK_LIBRARIES extra::rapidjson rtp_core)
  rtp_finish_module("${CMAKE_BINARY_DIR}/runtime_output_directory/mysqld")
elseif(MYSQL_SOURCE_DIR)
  # The server fills these pointers in; in a server tree they come from its library mysqlservices.
  set(rtp_services my_thread_scheduler_service plugin_registry_service)
  list(TRANSFORM rtp_services REPLACE "(.+)" "${MYSQL_SOURCE_DIR}/libservices/\\1.c")

  add_library(thread_pool_rs MODULE ${rtp_shim} ${rtp_services})
  target_compile_definitions(thread_pool_rs PRIVATE MYSQL_DYNAMIC_PLUGIN _GNU_SOURCE _FILE_OFFSET_BITS=64)
  target_compile_options(thread_pool_rs PRIVATE
    $<IF:$<BOOL:${RTP_SERVER_IS_DEBUG}>,-UNDEBUG,-DNDEBUG>
    -Wall -Wextra -ffunction-sections -fdata-sections -fno-omit-frame-pointer -fstack-protector-strong)
  target_include_directories(thread_pool_rs SYSTEM PRIVATE
    "${MYSQL_BUILD_DIR}" "${MYSQL_BUILD_DIR}/include" "${MYSQL_SOURCE_DIR}" "${MYSQL_SOURCE_DIR}/include"
    "${MYSQL_SOURCE_DIR}/libs" "${MYSQL_SOURCE_DIR}/extra/rapidjson/include")
  if(MYSQL_EXTRA_INCLUDE_DIR)
    # Last of all: it also has client versions of the server's headers.
    target_compile_options(thread_pool_rs PRIVATE "SHELL:-idirafter \"${MYSQL_EXTRA_INCLUDE_DIR}\"")
  endif()
  target_link_libraries(thread_pool_rs PRIVATE rtp_core)
  set_target_properties(thread_pool_rs PROPERTIES PREFIX "" LIBRARY_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}")

  if(NOT EXISTS "${MYSQLD}")
    unset(MYSQLD CACHE)
  endif()
  find_program(MYSQLD mysqld DOC "The server, to look for the symbols in that the module needs"
    HINTS "${MYSQL_BUILD_DIR}/runtime_output_directory" "${MYSQL_SOURCE_DIR}/../usr/sbin" NO_DEFAULT_PATH)
  rtp_finish_module("${MYSQLD}")
  install(TARGETS thread_pool_rs LIBRARY DESTINATION "${RTP_PLUGIN_DIR}")
endif()
