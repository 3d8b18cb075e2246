//! Sysbench's tables and the statements of its oltp_* scripts.

use rand::{RngExt, rngs::SmallRng};

use crate::{
    random::{Distribution, digits},
    wire::{Client, Error, Statement, Value},
};

/// Rows that a range statement reads (--range-size).
const RANGE_ROWS: u32 = 100;

/// The tables sbtest1, sbtest2 ... and how to choose a row.
#[derive(Debug, Clone, Copy)]
pub struct Data {
    /// How many tables.
    pub tables: u32,
    /// Rows in each.
    pub rows: u32,
    /// Which row is chosen how often.
    pub distribution: Distribution,
}

impl Data {
    /// The number of a table.
    pub fn table(&self, rng: &mut SmallRng) -> u32 {
        rng.random_range(1..=self.tables)
    }

    /// The id of a row.
    pub fn id(&self, rng: &mut SmallRng) -> u32 {
        self.distribution.pick(rng, self.rows)
    }
}

/// A statement that is prepared for each table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it, and the texts are below")]
pub enum Kind {
    PointSelect,
    SimpleRange,
    SumRange,
    OrderRange,
    DistinctRange,
    IndexUpdate,
    NonIndexUpdate,
    Delete,
    Insert,
}

impl Kind {
    fn text(self, table: u32) -> String {
        match self {
            Kind::PointSelect => format!("SELECT c FROM sbtest{table} WHERE id=?"),
            Kind::SimpleRange => format!("SELECT c FROM sbtest{table} WHERE id BETWEEN ? AND ?"),
            Kind::SumRange => format!("SELECT SUM(k) FROM sbtest{table} WHERE id BETWEEN ? AND ?"),
            Kind::OrderRange => {
                format!("SELECT c FROM sbtest{table} WHERE id BETWEEN ? AND ? ORDER BY c")
            }
            Kind::DistinctRange => {
                format!("SELECT DISTINCT c FROM sbtest{table} WHERE id BETWEEN ? AND ? ORDER BY c")
            }
            Kind::IndexUpdate => format!("UPDATE sbtest{table} SET k=k+1 WHERE id=?"),
            Kind::NonIndexUpdate => format!("UPDATE sbtest{table} SET c=? WHERE id=?"),
            Kind::Delete => format!("DELETE FROM sbtest{table} WHERE id=?"),
            Kind::Insert => {
                format!("INSERT INTO sbtest{table} (id, k, c, pad) VALUES (?, ?, ?, ?)")
            }
        }
    }
}

/// A session with its prepared statements.
#[derive(Debug)]
pub struct Session {
    client: Client,
    data: Data,
    kinds: &'static [Kind],
    /// Those of the first kind for all tables, those of the second kind ...
    statements: Vec<Statement>,
    commit: Option<Statement>,
    /// Statements of the current transaction.
    queries: u32,
}

impl Session {
    /// Prepares each of these kinds for each table and, for `transactions`, COMMIT. (BEGIN can't be prepared; sysbench
    /// sends its text as well.)
    pub async fn new(
        mut client: Client,
        data: Data,
        kinds: &'static [Kind],
        transactions: bool,
    ) -> Result<Self, Error> {
        let commit = if transactions { Some(client.prepare("COMMIT").await?) } else { None };
        let mut statements = Vec::with_capacity(kinds.len() * data.tables as usize);
        for kind in kinds {
            for table in 1..=data.tables {
                statements.push(client.prepare(&kind.text(table)).await?);
            }
        }
        Ok(Session { client, data, kinds, statements, commit, queries: 0 })
    }

    /// The tables.
    pub fn data(&self) -> Data {
        self.data
    }

    /// How many statements were executed since this was last asked.
    pub fn take_queries(&mut self) -> u32 {
        std::mem::take(&mut self.queries)
    }

    /// Executes one of the prepared statements.
    pub async fn execute(
        &mut self,
        kind: Kind,
        table: u32,
        parameters: &[Value],
    ) -> Result<(), Error> {
        let position = self
            .kinds
            .iter()
            .position(|known| *known == kind)
            .expect("the workload prepares what it uses");
        let statement = self.statements[position * self.data.tables as usize + table as usize - 1];
        self.queries += 1;
        self.client.execute(statement, parameters).await
    }

    /// Executes a text.
    pub async fn query(&mut self, text: &str) -> Result<(), Error> {
        self.queries += 1;
        self.client.query(text).await
    }

    /// Begins a transaction.
    pub async fn begin(&mut self) -> Result<(), Error> {
        self.query("BEGIN").await
    }

    /// Ends a transaction.
    pub async fn commit(&mut self) -> Result<(), Error> {
        self.queries += 1;
        self.client.execute(self.commit.expect("the workload has transactions"), &[]).await
    }

    /// Ends a transaction in which a statement failed.
    pub async fn roll_back(&mut self) -> Result<(), Error> {
        self.queries = 0;
        self.client.query("ROLLBACK").await
    }

    /// Reads `count` rows of one table, one by one.
    pub async fn point_selects(&mut self, count: usize, rng: &mut SmallRng) -> Result<(), Error> {
        let table = self.data.table(rng);
        for _ in 0..count {
            let id = self.data.id(rng);
            self.execute(Kind::PointSelect, table, &[id.into()]).await?;
        }
        Ok(())
    }

    /// Reads neighbouring rows with a statement of this kind.
    pub async fn range(&mut self, kind: Kind, rng: &mut SmallRng) -> Result<(), Error> {
        let (table, first) = (self.data.table(rng), self.data.id(rng));
        self.execute(kind, table, &[first.into(), (first + RANGE_ROWS - 1).into()]).await
    }

    /// One UPDATE of the indexed column and one of another.
    pub async fn updates(&mut self, rng: &mut SmallRng) -> Result<(), Error> {
        let (table, id) = (self.data.table(rng), self.data.id(rng));
        self.execute(Kind::IndexUpdate, table, &[id.into()]).await?;
        let table = self.data.table(rng);
        let c = Value::Bytes(digits(rng, 10));
        let id = self.data.id(rng);
        self.execute(Kind::NonIndexUpdate, table, &[c, id.into()]).await
    }

    /// Deletes a row and inserts it again with other contents.
    pub async fn delete_and_insert(&mut self, rng: &mut SmallRng) -> Result<(), Error> {
        let (table, id, k) = (self.data.table(rng), self.data.id(rng), self.data.id(rng));
        let (c, pad) = (Value::Bytes(digits(rng, 10)), Value::Bytes(digits(rng, 5)));
        self.execute(Kind::Delete, table, &[id.into()]).await?;
        self.execute(Kind::Insert, table, &[id.into(), k.into(), c, pad]).await
    }

    /// Whether the server still answers, then goodbye.
    pub async fn end(mut self) -> Result<(), Error> {
        self.client.ping().await?;
        self.client.quit().await
    }
}
