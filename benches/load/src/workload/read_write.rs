//! Sysbench's oltp_read_write: the reads of read_only, two updates, a deletion and an insertion.

use rand::rngs::SmallRng;

use super::{
    read_only,
    sbtest::{Kind, Session},
};
use crate::wire::Error;

pub const KINDS: &[Kind] = &[
    Kind::PointSelect,
    Kind::SimpleRange,
    Kind::SumRange,
    Kind::OrderRange,
    Kind::DistinctRange,
    Kind::IndexUpdate,
    Kind::NonIndexUpdate,
    Kind::Delete,
    Kind::Insert,
];

pub async fn transaction(session: &mut Session, rng: &mut SmallRng) -> Result<(), Error> {
    session.begin().await?;
    read_only::reads(session, rng).await?;
    session.updates(rng).await?;
    session.delete_and_insert(rng).await?;
    session.commit().await
}
