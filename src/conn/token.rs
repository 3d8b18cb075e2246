//! The name of a connection outside the core.

/// `generation << 32 | index`. It is what pollers, queues, timers and the server's scheduler data
/// hold instead of a pointer: a token of a connection that is gone names nothing.
/// Generations start at 1, so no token is zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token(u64);

impl Token {
    /// The token of generation `generation` of slot `index`.
    pub fn new(generation: u32, index: u32) -> Self {
        Self(u64::from(generation) << 32 | u64::from(index))
    }

    /// From the number that crossed a boundary. Any number is legal; most name nothing.
    pub fn from_raw(raw: u64) -> Self {
        Self(raw)
    }

    /// The number that crosses a boundary.
    pub fn raw(self) -> u64 {
        self.0
    }

    /// Which life of the slot.
    pub fn generation(self) -> u32 {
        (self.0 >> 32) as u32
    }

    /// Which slot.
    pub fn index(self) -> u32 {
        self.0 as u32
    }
}
