//! Updates of a few rows that everybody wants. The row lock is held until the COMMIT, which is a statement of its own: the
//! server does well to serve the session that holds it first.

use rand::{RngExt, rngs::SmallRng};

use super::sbtest::{Kind, Session};
use crate::wire::Error;

pub const KINDS: &[Kind] = &[Kind::IndexUpdate];

/// `rows`: how many rows of the first table are hot.
pub async fn transaction(
    session: &mut Session,
    rows: u32,
    rng: &mut SmallRng,
) -> Result<(), Error> {
    let id = rng.random_range(1..=rows);
    session.begin().await?;
    session.execute(Kind::IndexUpdate, 1, &[id.into()]).await?;
    session.commit().await
}
