//! The committed files in `include/` and `docs/` are what `src/ffi`, `src/config` and `src/tables`
//! say.
//! `UPDATE_HEADERS=1 cargo test --test header` rewrites them.

use std::{env, fs, path::Path};
use thread_pool_rs::config::render;

fn check(name: &str, expected: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
    if env::var_os("UPDATE_HEADERS").is_some() {
        fs::write(&path, expected).unwrap();
    }
    let committed = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        committed == expected,
        "{name} differs from its source; run: UPDATE_HEADERS=1 cargo test --test header"
    );
}

#[test]
fn rtp_h_is_generated_from_the_boundary() {
    let root = env!("CARGO_MANIFEST_DIR");
    let config = cbindgen::Config::from_file(format!("{root}/cbindgen.toml")).unwrap();
    let bindings = cbindgen::Builder::new()
        .with_config(config)
        .with_src(format!("{root}/src/config/vars.rs"))
        .with_src(format!("{root}/src/ffi/types.rs"))
        .with_src(format!("{root}/src/ffi/exports.rs"))
        .with_src(format!("{root}/src/ffi/tables.rs"))
        .generate()
        .unwrap();
    let mut text = Vec::new();
    bindings.write(&mut text);
    check("include/rtp.h", &String::from_utf8(text).unwrap());
}

#[test]
fn what_the_shim_expands_is_generated_from_the_tables() {
    check("include/rtp_vars.inc", &render::variables_include());
    check("include/rtp_status.inc", &render::status_include());
}

#[test]
fn the_documentation_of_variables_is_generated_from_the_tables() {
    check("docs/variables.md", &render::variables_document());
}

#[test]
fn the_tables_are_generated_from_their_declarations() {
    check("include/rtp_tables.inc", &thread_pool_rs::tables::render_include());
    check("docs/tables.md", &thread_pool_rs::tables::render_documentation());
}

#[test]
fn rtp_h_compiles_alone_and_twice_as_c_and_as_cpp() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let host = format!("{}-unknown-linux-gnu", env::consts::ARCH);
    for (cpp, extension) in [(false, "c"), (true, "cc")] {
        let source = folder.join("twice").with_extension(extension);
        fs::write(&source, "#include \"rtp.h\"\n#include \"rtp.h\"\n").unwrap();
        let compiler = cc::Build::new()
            .cpp(cpp)
            .target(&host)
            .host(&host)
            .opt_level(0)
            .include(concat!(env!("CARGO_MANIFEST_DIR"), "/include"))
            .flag("-fsyntax-only")
            .flag("-Wall")
            .flag("-Wextra")
            .flag("-Wpedantic")
            .flag("-Werror")
            .try_get_compiler()
            .expect("a C and C++ compiler");
        let output = compiler.to_command().arg(&source).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}
