//! A login, one SELECT as text, a goodbye: an application without a pool of connections.

use rand::rngs::SmallRng;

use super::sbtest::Data;
use crate::{connect::Connector, wire::Error};

pub async fn transaction(
    connector: &Connector,
    data: Data,
    rng: &mut SmallRng,
) -> Result<(), Error> {
    let mut client = connector.login().await?;
    let (table, id) = (data.table(rng), data.id(rng));
    client.query(&format!("SELECT c FROM sbtest{table} WHERE id={id}")).await?;
    client.quit().await
}
