//! Where the answer to a command ends.

use mysql_common::{
    constants::CapabilityFlags, io::ParseBuf, packets::ErrPacket, proto::MyDeserialize,
};

use super::error::Error;

const OK: u8 = 0x00;
const END: u8 = 0xfe;
const ERROR: u8 = 0xff;
/// Longest payload that a packet which ends a result set has; a row that begins with 0xfe is longer.
const LONGEST_END: usize = 0xff_ffff;

/// Follows the packets of the answer to COM_QUERY or COM_STMT_EXECUTE, for a client with
/// CLIENT_DEPRECATE_EOF that asks for one result set at a time.
#[derive(Debug, Default)]
pub enum Response {
    /// Nothing has come yet.
    #[default]
    Start,
    /// So many descriptions of columns are still to come.
    Columns(u64),
    /// Rows, then the end.
    Rows,
}

/// What a packet was.
#[derive(Debug, PartialEq, Eq)]
pub enum Part {
    /// Neither a row nor the end.
    Description,
    /// A row.
    Row,
    /// The last packet of the answer.
    End,
}

impl Response {
    /// Takes the next packet. An error packet ends the answer too.
    pub fn take(&mut self, packet: &[u8]) -> Result<Part, Error> {
        match (&mut *self, packet.first()) {
            (Response::Start | Response::Rows, Some(&ERROR)) => Err(error_of(packet)),
            (Response::Start, Some(&OK)) => Ok(Part::End),
            (Response::Start, Some(_)) => {
                *self = Response::Columns(read_length(packet)?);
                Ok(Part::Description)
            }
            (Response::Columns(left), Some(_)) => {
                *left -= 1;
                if *left == 0 {
                    *self = Response::Rows;
                }
                Ok(Part::Description)
            }
            (Response::Rows, Some(&END)) if packet.len() < LONGEST_END => Ok(Part::End),
            (Response::Rows, Some(_)) => Ok(Part::Row),
            (_, None) => Err(Error::unexpected("a packet with contents", packet)),
        }
    }
}

/// The error of a packet that begins with 0xff.
pub fn error_of(packet: &[u8]) -> Error {
    match ErrPacket::deserialize(CapabilityFlags::CLIENT_PROTOCOL_41, &mut ParseBuf(packet)) {
        Ok(ErrPacket::Error(error)) => Error::from(&error),
        _ => Error::unexpected("an error packet", packet),
    }
}

/// A length-encoded number, which is at least 1, at the packet's beginning.
fn read_length(packet: &[u8]) -> Result<u64, Error> {
    ParseBuf(packet)
        .checked_eat_lenenc_int()
        .filter(|length| *length > 0)
        .ok_or_else(|| Error::unexpected("a number of columns", packet))
}

/// The values of a row of a text result; NULL as None.
pub fn text_row(packet: &[u8]) -> Vec<Option<String>> {
    const NULL: u8 = 0xfb;
    let mut rest = ParseBuf(packet);
    let mut values = Vec::new();
    while let Some(&first) = rest.0.first() {
        if first == NULL {
            rest.eat_u8();
            values.push(None);
        } else {
            let bytes = rest.checked_eat_lenenc_str().unwrap_or_default();
            values.push(Some(String::from_utf8_lossy(bytes).into_owned()));
        }
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(packets: &[&[u8]]) -> Vec<Part> {
        let mut response = Response::default();
        packets.iter().map(|packet| response.take(packet).unwrap()).collect()
    }

    #[test]
    fn an_ok_packet_is_the_whole_answer() {
        assert_eq!(parts(&[&[0, 1, 0, 2, 0, 0, 0]]), [Part::End]);
    }

    #[test]
    fn a_result_set_ends_after_its_rows() {
        // A binary row begins with 0, as an OK packet does.
        let got =
            parts(&[&[2], b"\x03def", b"\x03def", &[0, 0, 5], &[0, 0, 6], &[END, 0, 0, 2, 0]]);
        use Part::{Description, End, Row};
        assert_eq!(got, [Description, Description, Description, Row, Row, End]);
    }

    #[test]
    fn an_error_can_come_instead_of_a_row() {
        let mut response = Response::Rows;
        let error = response.take(b"\xff\xbd\x04#40001Deadlock").unwrap_err();
        assert_eq!(error.code(), Some(super::super::error::DEADLOCK));
        assert!(!error.is_connection_lost());
    }

    #[test]
    fn text_values_are_read() {
        assert_eq!(text_row(b"\x03abc\xfb\x00"), [Some("abc".into()), None, Some(String::new())]);
    }
}
