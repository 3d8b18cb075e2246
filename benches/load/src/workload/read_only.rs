//! Sysbench's oltp_read_only: ten rows and four ranges in a transaction.

use rand::rngs::SmallRng;

use super::sbtest::{Kind, Session};
use crate::wire::Error;

pub const KINDS: &[Kind] =
    &[Kind::PointSelect, Kind::SimpleRange, Kind::SumRange, Kind::OrderRange, Kind::DistinctRange];

pub async fn transaction(session: &mut Session, rng: &mut SmallRng) -> Result<(), Error> {
    session.begin().await?;
    reads(session, rng).await?;
    session.commit().await
}

/// What read_write reads as well.
pub async fn reads(session: &mut Session, rng: &mut SmallRng) -> Result<(), Error> {
    session.point_selects(10, rng).await?;
    for kind in [Kind::SimpleRange, Kind::SumRange, Kind::OrderRange, Kind::DistinctRange] {
        session.range(kind, rng).await?;
    }
    Ok(())
}
