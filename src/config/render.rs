//! What is generated from the tables: the parts of `include/` that the C++ shim expands, and
//! `docs/variables.md`.

use super::status::STATUS_VARIABLES;
use super::vars::{Access, Origin, VARIABLES, Variable, VariableType};
use std::fmt::Write;

impl Variable {
    /// SQL type as `include/rtp_vars.inc` has it. A session variable has a type of its own,
    /// because the server declares it in another way.
    fn kind_in_include(&self) -> &'static str {
        match (self.kind, self.access) {
            (VariableType::Ulong, Access::Session) => "SESSION_ULONG",
            (VariableType::Uint, Access::Session) => "SESSION_UINT",
            (VariableType::Enum(_), Access::Session) => "SESSION_ENUM",
            (VariableType::Ulong, _) => "ULONG",
            (VariableType::Uint, _) => "UINT",
            (VariableType::Enum(_), _) => "ENUM",
            (VariableType::Bool, _) => "BOOL",
        }
    }

    fn access_in_include(&self) -> &'static str {
        match self.access {
            Access::ReadOnly => "READ_ONLY",
            Access::Dynamic => "DYNAMIC",
            Access::DynamicConnectionAdmin => "DYNAMIC_CONNECTION_ADMIN",
            Access::Session => "SESSION",
        }
    }

    /// A value as SQL shows it.
    fn show(&self, value: u64) -> String {
        match self.kind {
            VariableType::Enum(words) => words[value as usize].to_owned(),
            VariableType::Bool => if value == 0 { "OFF" } else { "ON" }.to_owned(),
            _ => value.to_string(),
        }
    }

    fn show_default(&self) -> String {
        self.default_text.map_or_else(|| self.show(self.default), str::to_owned)
    }

    fn show_range(&self) -> String {
        match self.kind {
            VariableType::Enum(words) => words.join(", "),
            VariableType::Bool => "OFF, ON".to_owned(),
            _ if self.or_zero => format!("0, {}–{}", self.min, self.max),
            _ => format!("{}–{}", self.min, self.max),
        }
    }

    fn show_access(&self) -> &'static str {
        match self.access {
            Access::ReadOnly => "global, read-only",
            Access::Dynamic => "global; SYSTEM_VARIABLES_ADMIN",
            Access::DynamicConnectionAdmin => "global; SYSTEM_VARIABLES_ADMIN and CONNECTION_ADMIN",
            Access::Session => "global (SYSTEM_VARIABLES_ADMIN) and session (no privilege)",
        }
    }

    fn show_origin(&self) -> &'static str {
        match self.origin {
            Origin::Oracle => "Oracle",
            Origin::Percona => "Percona",
            Origin::PerconaAndMariaDb => "Percona, MariaDB",
            Origin::MariaDb => "MariaDB",
            Origin::Own => "thread_pool_rs",
        }
    }
}

/// The text of `include/rtp_vars.inc`: one `RTP_VARIABLE` line for each variable. The server's
/// option parser knows one range only, so 0 is in it where it is legal.
pub fn variables_include() -> String {
    let mut text = String::from(
        "/* Generated from src/config/vars.rs by tests/header.rs; do not edit. */\n\
         /* RTP_VARIABLE(index, name, kind, access, deprecated, default, min, max, comment, words) */\n",
    );
    for (index, v) in VARIABLES.iter().enumerate() {
        let (kind, access) = (v.kind_in_include(), v.access_in_include());
        let min = if v.or_zero { 0 } else { v.min };
        let words = match v.kind {
            VariableType::Enum(words) => words,
            _ => &[],
        };
        let words: String = words.iter().map(|word| format!(", {word:?}")).collect();
        let Variable { name, deprecated, default, max, comment, .. } = v;
        let _ = writeln!(
            text,
            "RTP_VARIABLE({index}, {name}, {kind}, {access}, {deprecated}, {default}, {min}, {max}, \
             {comment:?}{words})"
        );
    }
    text
}

/// The text of `include/rtp_status.inc`: one `RTP_STATUS(index, name, comment)` line for each
/// variable.
pub fn status_include() -> String {
    let mut text = String::from(
        "/* Generated from src/config/status.rs by tests/header.rs; do not edit. */\n\
         /* RTP_STATUS(index, name, comment) */\n",
    );
    for (index, v) in STATUS_VARIABLES.iter().enumerate() {
        text.push_str(&format!("RTP_STATUS({index}, {:?}, {:?})\n", v.name, v.comment));
    }
    text
}

/// The text of `docs/variables.md`.
pub fn variables_document() -> String {
    let mut text = String::from(
        "<!-- Generated from src/config by tests/header.rs; do not edit. -->\n\
         # Variables of thread_pool_rs\n\n\
         Each name begins with `thread_pool_`. In my.cnf, a value out of range is adjusted with a \
         warning; `SET` refuses it with error 1231. To change a read-only variable set it in my.cnf \
         or with `SET PERSIST_ONLY`, and restart the server. The error log notes each change of a \
         global variable. vCPUs are those that CPU affinity and container limits leave to the \
         server.\n\n\
         | variable | default | range | unit | scope; privilege to change it | known from |\n\
         |---|---|---|---|---|---|\n",
    );
    for v in &VARIABLES {
        let _ = writeln!(
            text,
            "| [{}](#{}) | {} | {} | {} | {} | {} |",
            v.name,
            v.name,
            v.show_default(),
            v.show_range(),
            v.unit,
            v.show_access(),
            v.show_origin()
        );
    }
    for v in &VARIABLES {
        let _ = write!(text, "\n## {}\n\n{}.", v.name, v.comment);
        if v.deprecated {
            text.push_str(" Deprecated: to set it raises a warning.");
        }
        text.push('\n');
        if !v.details.is_empty() {
            let _ = writeln!(text, "\n{}", v.details);
        }
    }
    text.push_str("\n## Status variables\n\nAll are global.\n\n| variable | |\n|---|---|\n");
    for v in STATUS_VARIABLES {
        let _ = writeln!(text, "| `{}` | {} |", v.name, v.comment);
    }
    text
}
