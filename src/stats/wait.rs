//! Kinds of waits that the server reports.

/// What a statement waits for: the server's `THD_WAIT_*` (include/mysql/service_thd_wait.h).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum WaitKind {
    /// None of the others.
    Other = 0,
    /// `SLEEP()`.
    Sleep = 1,
    /// A page that is read.
    DiskIo = 2,
    /// A row lock.
    RowLock = 3,
    /// A global lock; no server reports it any more.
    GlobalLock = 4,
    /// A metadata lock, which GET_LOCK() and FLUSH TABLES WITH READ LOCK use too.
    MetadataLock = 5,
    /// A table lock.
    TableLock = 6,
    /// Admission to InnoDB (`innodb_thread_concurrency`).
    UserLock = 7,
    /// A position of the binary log.
    Binlog = 8,
    /// The flush of the redo log.
    GroupCommit = 9,
    /// A file that is synced.
    Sync = 10,
}

/// Number of kinds.
pub const WAIT_KINDS: usize = ALL.len();

const ALL: [WaitKind; 11] = [
    WaitKind::Other,
    WaitKind::Sleep,
    WaitKind::DiskIo,
    WaitKind::RowLock,
    WaitKind::GlobalLock,
    WaitKind::MetadataLock,
    WaitKind::TableLock,
    WaitKind::UserLock,
    WaitKind::Binlog,
    WaitKind::GroupCommit,
    WaitKind::Sync,
];

impl WaitKind {
    /// From the server's number; unknown ones are `Other`.
    pub fn from_raw(raw: u32) -> Self {
        ALL.get(raw as usize).copied().unwrap_or(Self::Other)
    }

    /// True for input and output, which many statements at once make slower, not faster.
    pub fn is_io(self) -> bool {
        matches!(self, Self::DiskIo | Self::GroupCommit | Self::Sync)
    }

    /// What the column WAIT_TYPE shows (the texts are Oracle's).
    pub fn text(self) -> &'static str {
        match self {
            Self::Other => "Waiting",
            Self::Sleep => "Waiting for sleep",
            Self::DiskIo => "Waiting for Disk IO",
            Self::RowLock => "Waiting for row lock",
            Self::GlobalLock => "Waiting for global lock",
            Self::MetadataLock => "Waiting for metadata lock",
            Self::TableLock => "Waiting for table lock",
            Self::UserLock => "Waiting for user lock",
            Self::Binlog => "Waiting for binlog",
            Self::GroupCommit => "Waiting for group commit",
            Self::Sync => "Waiting for fsync",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_the_servers_and_unknown_ones_are_other() {
        for (raw, kind) in ALL.iter().enumerate() {
            assert_eq!(*kind as usize, raw);
            assert_eq!(WaitKind::from_raw(raw as u32), *kind);
        }
        assert_eq!(WaitKind::from_raw(11), WaitKind::Other);
        assert_eq!(WaitKind::from_raw(u32::MAX), WaitKind::Other);
    }
}
