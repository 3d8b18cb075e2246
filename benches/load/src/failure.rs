//! Why the program ends without a result.

use crate::wire::Error;

/// A sentence for the user: what, which value or limit, what to do.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Failure(pub String);

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure(error.to_string())
    }
}
