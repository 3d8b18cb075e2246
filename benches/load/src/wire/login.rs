//! From a connected socket to a session.

use mysql_common::{
    auth::plugins::{ChallengeResponsePlugin, Context},
    constants::CapabilityFlags,
    io::ParseBuf,
    packets::{AuthPlugin, AuthSwitchRequest, HandshakePacket, HandshakeResponse},
    proto::{MyDeserialize, MySerialize},
};

use super::{
    error::Error,
    packets::{Address, Packets},
    response::error_of,
};

const MORE_DATA: u8 = 0x01;
const SWITCH: u8 = 0xfe;

/// What the client can do; the same as any client of today, without TLS and without compression.
fn capabilities() -> CapabilityFlags {
    CapabilityFlags::CLIENT_PROTOCOL_41
        | CapabilityFlags::CLIENT_LONG_PASSWORD
        | CapabilityFlags::CLIENT_TRANSACTIONS
        | CapabilityFlags::CLIENT_SECURE_CONNECTION
        | CapabilityFlags::CLIENT_PLUGIN_AUTH
        | CapabilityFlags::CLIENT_PLUGIN_AUTH_LENENC_CLIENT_DATA
        | CapabilityFlags::CLIENT_DEPRECATE_EOF
}

/// Who logs in, and where.
#[derive(Debug, Clone)]
pub struct Account {
    /// The server.
    pub address: Address,
    /// Its user.
    pub user: String,
    /// Its password; empty for none.
    pub password: String,
    /// The current database of the session, if any.
    pub database: Option<String>,
}

struct Proof<'a> {
    password: &'a [u8],
    scramble: &'a [u8],
    local: bool,
}

impl Context for Proof<'_> {
    fn pass(&self) -> &[u8] {
        self.password
    }
    fn is_ipc_transport(&self) -> bool {
        self.local
    }
    fn is_tls_transport(&self) -> bool {
        false
    }
    fn scramble(&self) -> &[u8] {
        self.scramble
    }
    fn server_key_pem(&self) -> Option<&[u8]> {
        None
    }
}

/// Connects and logs in.
pub async fn login(account: &Account) -> Result<Packets, Error> {
    let mut packets = Packets::connect(&account.address).await?;
    let greeting = packets.read().await?;
    if greeting.first() == Some(&0xff) {
        return Err(error_of(&greeting));
    }
    let handshake = HandshakePacket::deserialize((), &mut ParseBuf(&greeting))?;
    let mut scramble = handshake.nonce();
    let mut plugin = handshake
        .auth_plugin()
        .map_or(AuthPlugin::CachingSha2Password, |plugin| plugin.into_owned());
    let mut procedure = plugin.init().map_err(refused)?;
    let local = packets.is_local();
    let password = account.password.as_bytes();
    let mut step = procedure
        .run(Proof { password, scramble: &scramble, local }, &scramble)
        .map_err(refused)?;

    let response = HandshakeResponse::new(
        step.data().map(<[u8]>::to_vec),
        handshake.server_version_parsed().unwrap_or_default(),
        Some(account.user.as_bytes()),
        account.database.as_ref().map(String::as_bytes),
        Some(plugin.borrow()),
        capabilities(),
        None,
        1 << 24,
    );
    let mut payload = Vec::new();
    response.serialize(&mut payload);
    packets.write(&payload).await?;

    loop {
        let packet = packets.read().await?;
        step = match packet.first() {
            Some(0x00) => return Ok(packets),
            Some(0xff) => return Err(error_of(&packet)),
            Some(&MORE_DATA) => procedure
                .run(Proof { password, scramble: &scramble, local }, &packet[1..])
                .map_err(refused)?,
            Some(&SWITCH) => {
                let request = AuthSwitchRequest::deserialize((), &mut ParseBuf(&packet))?;
                plugin = request.auth_plugin().into_owned();
                scramble = request.plugin_data().to_vec();
                procedure = plugin.init().map_err(refused)?;
                procedure
                    .run(Proof { password, scramble: &scramble, local }, &scramble)
                    .map_err(refused)?
            }
            _ => return Err(Error::unexpected("an answer to the login", &packet)),
        };
        if let Some(data) = step.data() {
            packets.write(data).await?;
        }
    }
}

fn refused(error: impl std::fmt::Display) -> Error {
    Error::Protocol(format!("login: {error}"))
}
