//! Errors by kind.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::wire::{DEADLOCK, Error};

/// How often which error came.
#[derive(Debug, Clone, Default)]
pub struct Errors(BTreeMap<(&'static str, u16), (String, u64)>);

/// One kind of error in the report.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ErrorCount {
    /// server, connection or protocol.
    pub kind: &'static str,
    /// MySQL's number; none unless the kind is server.
    pub code: Option<u16>,
    /// The text of the first one.
    pub message: String,
    /// How many.
    pub count: u64,
}

impl Errors {
    /// Counts one.
    pub fn count(&mut self, error: &Error) {
        let kind = match error {
            Error::Server { .. } => "server",
            Error::Io(_) => "connection",
            Error::Protocol(_) => "protocol",
        };
        let key = (kind, error.code().unwrap_or_default());
        self.0.entry(key).or_insert_with(|| (error.to_string(), 0)).1 += 1;
    }

    /// Adds those of another.
    pub fn merge(&mut self, other: &Self) {
        for (key, (message, count)) in &other.0 {
            self.0.entry(*key).or_insert_with(|| (message.clone(), 0)).1 += count;
        }
    }

    /// Deadlocks are part of some workloads: the server rolls a transaction back and the client begins another.
    pub fn deadlocks(&self) -> u64 {
        self.0.get(&("server", DEADLOCK)).map_or(0, |(_, count)| *count)
    }

    /// All but deadlocks.
    pub fn total(&self) -> u64 {
        self.0.values().map(|(_, count)| count).sum::<u64>() - self.deadlocks()
    }

    /// All but deadlocks, by kind.
    pub fn kinds(&self) -> Vec<ErrorCount> {
        let others = self.0.iter().filter(|((_, code), _)| *code != DEADLOCK);
        others
            .map(|((kind, code), (message, count))| ErrorCount {
                kind,
                code: (*code != 0).then_some(*code),
                message: message.clone(),
                count: *count,
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deadlocks_are_counted_apart() {
        let mut errors = Errors::default();
        for code in [1213, 1205, 1205] {
            errors.count(&Error::Server { code, message: format!("no {code}") });
        }
        errors.count(&Error::Io(std::io::ErrorKind::BrokenPipe.into()));
        assert_eq!((errors.deadlocks(), errors.total()), (1, 3));
        let kinds = errors.kinds();
        assert_eq!((kinds[0].kind, kinds[0].code, kinds[0].count), ("connection", None, 1));
        assert_eq!((kinds[1].kind, kinds[1].code, kinds[1].count), ("server", Some(1205), 2));
        assert_eq!(kinds[1].message, "server error 1205: no 1205");
    }
}
