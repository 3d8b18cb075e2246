//! One row by its primary key: sysbench's oltp_point_select. What is measured is mostly the way to the statement.

use rand::rngs::SmallRng;

use super::sbtest::{Kind, Session};
use crate::wire::Error;

pub const KINDS: &[Kind] = &[Kind::PointSelect];

pub async fn transaction(session: &mut Session, rng: &mut SmallRng) -> Result<(), Error> {
    session.point_selects(1, rng).await
}
