//! Creates what the workloads read: the database and tables that `sysbench oltp_* prepare` would.

use std::fmt::Write;

use rand::{RngExt, SeedableRng, rngs::SmallRng};

use crate::{
    args::PrepareOptions,
    failure::Failure,
    progress::Progress,
    random::digits,
    wire::{Client, Error},
    workload::sbtest::Data,
};

/// Rows of one INSERT: some 200 KB.
const BATCH_ROWS: u32 = 1000;
const TABLE_EXISTS: u16 = 1050;
const NO_SUCH_TABLE: u16 = 1146;

/// The subcommand.
pub async fn prepare(options: &PrepareOptions) -> Result<(), Failure> {
    let database = &options.server.database;
    let mut client = Client::login(&options.server.account(false)).await?;
    client.query(&format!("CREATE DATABASE IF NOT EXISTS `{database}`")).await?;
    client.query(&format!("USE `{database}`")).await?;
    let data = options.data.data();
    let progress = Progress::new("rows", u64::from(data.tables) * u64::from(data.rows));
    let mut rng = SmallRng::seed_from_u64(options.data.seed);
    for table in 1..=data.tables {
        create(&mut client, database, table).await?;
        let mut first = 1;
        while first <= data.rows {
            let last = data.rows.min(first + BATCH_ROWS - 1);
            client.query(&insert(table, first..=last, data, &mut rng)).await?;
            progress.advance(u64::from(last - first + 1));
            first = last + 1;
        }
        client.query(&format!("CREATE INDEX k_{table} ON sbtest{table}(k)")).await?;
    }
    progress.finish();
    client.quit().await?;
    Ok(())
}

async fn create(client: &mut Client, database: &str, table: u32) -> Result<(), Failure> {
    let text = format!(
        "CREATE TABLE sbtest{table} (id INTEGER NOT NULL AUTO_INCREMENT, k INTEGER DEFAULT '0' NOT NULL, \
         c CHAR(120) DEFAULT '' NOT NULL, pad CHAR(60) DEFAULT '' NOT NULL, PRIMARY KEY (id)) ENGINE = InnoDB"
    );
    match client.query(&text).await {
        Err(error) if error.code() == Some(TABLE_EXISTS) => Err(Failure(format!(
            "table {database}.sbtest{table} is there already and is left as it is: drop it first, or use another --database"
        ))),
        result => Ok(result?),
    }
}

fn insert(
    table: u32,
    ids: std::ops::RangeInclusive<u32>,
    data: Data,
    rng: &mut SmallRng,
) -> String {
    let mut text = format!("INSERT INTO sbtest{table} (id, k, c, pad) VALUES ");
    for id in ids.clone() {
        let (c, pad) = (digits(rng, 10), digits(rng, 5));
        let separator = if id == *ids.start() { "" } else { "," };
        let k = rng.random_range(1..=data.rows);
        let (c, pad) = (String::from_utf8_lossy(&c), String::from_utf8_lossy(&pad));
        write!(text, "{separator}({id},{k},'{c}','{pad}')").expect("a string takes everything");
    }
    text
}

/// Whether the tables are there and have as many rows as a run expects.
pub async fn check_tables(client: &mut Client, data: Data) -> Result<(), Failure> {
    for table in 1..=data.tables {
        let found = match client.rows(&format!("SELECT MAX(id) FROM sbtest{table}")).await {
            Err(error) if error.code() == Some(NO_SUCH_TABLE) => {
                return Err(Failure(format!(
                    "there is no table sbtest{table}, --tables is {}: create it with `rtp_load prepare`, or give a \
                     lower number",
                    data.tables
                )));
            }
            result => result?,
        };
        let last: u32 = found[0][0].as_ref().and_then(|text| text.parse().ok()).unwrap_or(0);
        if last < data.rows {
            return Err(Failure(format!(
                "table sbtest{table} has rows up to {last}, --rows is {}: give at most {last}, or create larger tables \
                 with `rtp_load prepare`",
                data.rows
            )));
        }
    }
    Ok(())
}

/// A login for such checks; the error says where it was tried.
pub async fn login(account: &crate::wire::Account) -> Result<Client, Failure> {
    Client::login(account).await.map_err(|error: Error| {
        Failure(format!("can't log in as {} at {}: {error}", account.user, account.address))
    })
}
