//! A statement that reads a whole table and computes for long: the reports of the workload mixed.

use rand::rngs::SmallRng;

use super::sbtest::Session;
use crate::wire::Error;

pub async fn transaction(session: &mut Session, rng: &mut SmallRng) -> Result<(), Error> {
    let table = session.data().table(rng);
    session
        .query(&format!(
            "SELECT k % 100 AS bucket, COUNT(*), AVG(LENGTH(c)), MAX(SHA2(CONCAT(c, pad), 256)) \
             FROM sbtest{table} GROUP BY bucket ORDER BY bucket"
        ))
        .await
}
