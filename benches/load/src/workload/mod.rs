//! The workloads: which connection does what, over and over.

mod connect_query;
mod point_select;
mod read_only;
mod read_write;
mod report;
pub mod sbtest;
mod update_hot;

use clap::ValueEnum;
use rand::rngs::SmallRng;
use sbtest::{Data, Kind, Session};
use serde::Serialize;

use crate::{
    connect::Connector,
    wire::{Client, Error},
};

/// What can be asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Workload {
    /// One row by its primary key, as sysbench's oltp_point_select
    PointSelect,
    /// As sysbench's oltp_read_only
    ReadOnly,
    /// As sysbench's oltp_read_write
    ReadWrite,
    /// BEGIN, UPDATE of one of --hot-rows rows, COMMIT
    UpdateHot,
    /// Login, one SELECT, goodbye
    ConnectQuery,
    /// --reports connections read whole tables, the others do --oltp
    Mixed,
    /// --active connections do --oltp, the others are logged in and silent
    Idle,
}

/// What the busy connections of mixed and idle do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Oltp {
    /// As the workload point-select
    PointSelect,
    /// As the workload read-only
    ReadOnly,
    /// As the workload read-write
    ReadWrite,
}

/// What one connection does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "named after the files")]
pub enum Role {
    PointSelect,
    ReadOnly,
    ReadWrite,
    UpdateHot { rows: u32 },
    ConnectQuery,
    Report,
    Idle,
}

/// The connections with one role: a class of the report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Class {
    /// What they do.
    pub role: Role,
    /// How many.
    pub connections: usize,
}

/// The options that say who does what.
#[derive(Debug, Clone, Copy)]
pub struct Cast {
    /// Connections in all.
    pub connections: usize,
    /// Of these, for mixed: connections with reports.
    pub reports: usize,
    /// Of these, for idle: connections that aren't.
    pub active: usize,
    /// What the busy ones do.
    pub oltp: Oltp,
    /// For update-hot.
    pub hot_rows: u32,
}

impl Workload {
    /// The classes. Connections are numbered class by class.
    pub fn classes(self, cast: &Cast) -> Vec<Class> {
        let oltp = match cast.oltp {
            Oltp::PointSelect => Role::PointSelect,
            Oltp::ReadOnly => Role::ReadOnly,
            Oltp::ReadWrite => Role::ReadWrite,
        };
        let all = |role| vec![Class { role, connections: cast.connections }];
        let split = |role, connections, rest| {
            vec![
                Class { role, connections },
                Class { role: rest, connections: cast.connections - connections },
            ]
        };
        match self {
            Workload::PointSelect => all(Role::PointSelect),
            Workload::ReadOnly => all(Role::ReadOnly),
            Workload::ReadWrite => all(Role::ReadWrite),
            Workload::UpdateHot => all(Role::UpdateHot { rows: cast.hot_rows }),
            Workload::ConnectQuery => all(Role::ConnectQuery),
            Workload::Mixed => split(Role::Report, cast.reports, oltp),
            Workload::Idle => split(oltp, cast.active, Role::Idle),
        }
    }
}

impl Role {
    /// As in the report.
    pub fn name(self) -> &'static str {
        match self {
            Role::PointSelect => "point-select",
            Role::ReadOnly => "read-only",
            Role::ReadWrite => "read-write",
            Role::UpdateHot { .. } => "update-hot",
            Role::ConnectQuery => "connect-query",
            Role::Report => "report",
            Role::Idle => "idle",
        }
    }

    fn kinds(self) -> &'static [Kind] {
        match self {
            Role::PointSelect => point_select::KINDS,
            Role::ReadOnly => read_only::KINDS,
            Role::ReadWrite => read_write::KINDS,
            Role::UpdateHot { .. } => update_hot::KINDS,
            Role::ConnectQuery | Role::Report | Role::Idle => &[],
        }
    }

    fn has_transactions(self) -> bool {
        matches!(self, Role::ReadOnly | Role::ReadWrite | Role::UpdateHot { .. })
    }

    /// Whether a session outlives its transaction.
    pub fn keeps_session(self) -> bool {
        self != Role::ConnectQuery
    }

    /// Statements that a session of this role has prepared.
    pub fn prepared_statements(self, tables: u32) -> usize {
        self.kinds().len() * tables as usize + usize::from(self.has_transactions())
    }

    /// Makes a new session ready for its transactions.
    pub async fn open(self, client: Client, data: Data) -> Result<Session, Error> {
        Session::new(client, data, self.kinds(), self.has_transactions()).await
    }

    /// One transaction. Returns the number of its statements.
    pub async fn transaction(
        self,
        session: &mut Session,
        rng: &mut SmallRng,
    ) -> Result<u32, Error> {
        match self {
            Role::PointSelect => point_select::transaction(session, rng).await?,
            Role::ReadOnly => read_only::transaction(session, rng).await?,
            Role::ReadWrite => read_write::transaction(session, rng).await?,
            Role::UpdateHot { rows } => update_hot::transaction(session, rows, rng).await?,
            Role::Report => report::transaction(session, rng).await?,
            Role::ConnectQuery | Role::Idle => unreachable!("has no session with transactions"),
        }
        Ok(session.take_queries())
    }

    /// One transaction of a role that keeps no session.
    pub async fn transaction_alone(
        connector: &Connector,
        data: Data,
        rng: &mut SmallRng,
    ) -> Result<u32, Error> {
        connect_query::transaction(connector, data, rng).await?;
        Ok(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CAST: Cast =
        Cast { connections: 10, reports: 2, active: 3, oltp: Oltp::ReadOnly, hot_rows: 4 };

    #[test]
    fn every_workload_employs_all_connections() {
        for workload in Workload::value_variants() {
            let classes = workload.classes(&CAST);
            assert_eq!(
                classes.iter().map(|class| class.connections).sum::<usize>(),
                10,
                "{workload:?}"
            );
        }
    }

    #[test]
    fn mixed_and_idle_split_the_connections() {
        let roles = |workload: Workload| -> Vec<_> {
            workload
                .classes(&CAST)
                .iter()
                .map(|class| (class.role.name(), class.connections))
                .collect()
        };
        assert_eq!(roles(Workload::Mixed), [("report", 2), ("read-only", 8)]);
        assert_eq!(roles(Workload::Idle), [("read-only", 3), ("idle", 7)]);
    }

    #[test]
    fn read_write_prepares_what_sysbench_does() {
        assert_eq!(Role::ReadWrite.prepared_statements(4), 9 * 4 + 1);
        assert_eq!(Role::PointSelect.prepared_statements(4), 4);
        assert_eq!(Role::Idle.prepared_statements(4), 0);
    }
}
