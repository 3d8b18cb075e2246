# Where the server is, and how it was configured. Sets MYSQL_* paths, and defaults for the build type and
# for the place of installation that fit the server.

set(MYSQL_SOURCE_DIR "" CACHE PATH "Source of the MySQL server; empty: build the core only")
set(MYSQL_BUILD_DIR "" CACHE PATH "Configured build folder of that source")
set(MYSQL_EXTRA_INCLUDE_DIR "" CACHE PATH "Folder with mysqld_error.h, if the build folder doesn't have it")

# The value of a variable in the cache of the server's build folder.
function(rtp_server_setting name result)
  set(line "")
  if(EXISTS "${MYSQL_BUILD_DIR}/CMakeCache.txt")
    file(STRINGS "${MYSQL_BUILD_DIR}/CMakeCache.txt" line REGEX "^${name}:[A-Z]+=")
  endif()
  string(REGEX REPLACE "^[^=]*=" "" value "${line}")
  set(${result} "${value}" PARENT_SCOPE)
endfunction()

if(MYSQL_SOURCE_DIR)
  foreach(file "${MYSQL_SOURCE_DIR}/sql/sql_class.h" "${MYSQL_BUILD_DIR}/include/mysql_version.h")
    if(NOT EXISTS "${file}")
      message(FATAL_ERROR "${file} doesn't exist: give MYSQL_SOURCE_DIR and MYSQL_BUILD_DIR")
    endif()
  endforeach()
endif()

# The layout of the server's structures depends on NDEBUG.
rtp_server_setting(CMAKE_BUILD_TYPE RTP_SERVER_BUILD_TYPE)
rtp_server_setting(WITH_DEBUG RTP_SERVER_WITH_DEBUG)
if(RTP_SERVER_BUILD_TYPE STREQUAL "Debug" OR RTP_SERVER_WITH_DEBUG)
  set(RTP_SERVER_IS_DEBUG TRUE)
else()
  set(RTP_SERVER_IS_DEBUG FALSE)
endif()
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "Build type")
endif()

rtp_server_setting(CMAKE_INSTALL_PREFIX RTP_SERVER_PREFIX)
if(RTP_SERVER_PREFIX)
  set(CMAKE_INSTALL_PREFIX "${RTP_SERVER_PREFIX}" CACHE PATH "Where the server is installed")
endif()
rtp_server_setting(INSTALL_PLUGINDIR RTP_SERVER_PLUGIN_DIR)
if(NOT RTP_SERVER_PLUGIN_DIR)
  set(RTP_SERVER_PLUGIN_DIR lib/mysql/plugin)
endif()
set(RTP_PLUGIN_DIR "${RTP_SERVER_PLUGIN_DIR}" CACHE STRING
  "The server's plugin folder; a relative one is below the installation's prefix")
