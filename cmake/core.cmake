# The Rust core: target rtp_core, a static library with its header.

set(RTP_RUST_PROFILE release CACHE STRING "Profile of the Rust core: release, or release-assert to check its invariants")
set_property(CACHE RTP_RUST_PROFILE PROPERTY STRINGS release release-assert)

find_program(CARGO cargo HINTS "$ENV{CARGO_HOME}/bin" "$ENV{HOME}/.cargo/bin" REQUIRED)
find_program(RUSTC rustc HINTS "$ENV{CARGO_HOME}/bin" "$ENV{HOME}/.cargo/bin" REQUIRED)

set(rtp_target_dir "${CMAKE_CURRENT_LIST_DIR}/../target")
if(DEFINED ENV{CARGO_TARGET_DIR})
  set(rtp_target_dir "$ENV{CARGO_TARGET_DIR}")
endif()
get_filename_component(rtp_target_dir "${rtp_target_dir}" ABSOLUTE)
get_filename_component(rtp_root "${CMAKE_CURRENT_LIST_DIR}/.." ABSOLUTE)
set(rtp_archive "${rtp_target_dir}/${RTP_RUST_PROFILE}/libthread_pool_rs.a")

# Always run: cargo knows best what is stale. Only this package: the load generator's dependencies are none of the module's.
add_custom_target(rtp_core_build
  COMMAND "${CMAKE_COMMAND}" -E env "CARGO_TARGET_DIR=${rtp_target_dir}"
          "${CARGO}" build --package thread_pool_rs --lib --locked --profile "${RTP_RUST_PROFILE}"
  WORKING_DIRECTORY "${rtp_root}"
  BYPRODUCTS "${rtp_archive}"
  COMMENT "Building the Rust core (${RTP_RUST_PROFILE})"
  VERBATIM)

# What Rust's standard library needs from the system, asked from the compiler. It must stand behind the archive.
execute_process(
  COMMAND "${RUSTC}" --crate-type staticlib --print native-static-libs -o "${CMAKE_CURRENT_BINARY_DIR}/native_libraries.a" -
  INPUT_FILE /dev/null
  ERROR_VARIABLE rtp_answer
  COMMAND_ERROR_IS_FATAL ANY)
if(NOT rtp_answer MATCHES "native-static-libs: ([^\n]*)")
  message(FATAL_ERROR "rustc doesn't name the native libraries: ${rtp_answer}")
endif()
separate_arguments(rtp_native_libraries UNIX_COMMAND "${CMAKE_MATCH_1}")

add_library(rtp_core STATIC IMPORTED GLOBAL)
add_dependencies(rtp_core rtp_core_build)
set_target_properties(rtp_core PROPERTIES
  IMPORTED_LOCATION "${rtp_archive}"
  INTERFACE_INCLUDE_DIRECTORIES "${rtp_root}/include"
  INTERFACE_LINK_LIBRARIES "${rtp_native_libraries}")
