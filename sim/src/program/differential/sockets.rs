//! Simulated pages, and ways to fail, on real sockets.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use crate::program::http::Asked;
use crate::program::net::{Link, Server, Speaks};
use crate::program::network_table::Table;
use crate::topology::Os;
use crate::world::Page;

pub(super) const LOCAL: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// Servers of every kind, with the table in which the simulated programs find the same ones. They
/// serve until the test ends.
pub(super) struct Scene {
    pub(super) table: Arc<Table>,
    /// What a `{name}` in arguments stands for.
    ports: Vec<(&'static str, u16)>,
    /// Connections that fill the queue of the port that never answers.
    _filling: (TcpListener, Vec<TcpStream>),
}

impl Scene {
    pub(super) fn new() -> Self {
        let bind = || TcpListener::bind((LOCAL, 0)).expect("a free port on loopback");
        let pages = [
            ("netexec", Page::Netexec),
            ("win", Page::WinWebserver),
            ("iis", Page::Iis),
        ];
        let pages = pages.map(|(name, page)| (name, page, bind()));
        let (mute, resets, silent, refused) = (bind(), bind(), bind(), bind());
        let port = |listener: &TcpListener| listener.local_addr().expect("it is bound").port();
        let mut ports: Vec<_> = pages
            .iter()
            .map(|(name, _, on)| (*name, port(on)))
            .collect();
        for (name, on) in [
            ("mute", &mute),
            ("resets", &resets),
            ("silent", &silent),
            ("refused", &refused),
        ] {
            ports.push((name, port(on)));
        }
        drop(refused);
        let mut table = Table {
            own: LOCAL,
            ..Table::new(Os::Linux)
        };
        for (_, page, on) in &pages {
            table = table.page(LOCAL, port(on), page.clone());
        }
        table = table
            .peer(LOCAL, port(&mute), Speaks::Silence)
            .peer(LOCAL, port(&resets), Speaks::Resets)
            .link(LOCAL, port(&silent), Link::TimedOut);
        let table = Arc::new(table);
        for (_, page, listener) in pages {
            let server = Server {
                page,
                hostname: table.hostname.clone(),
                address: LOCAL,
                port: port(&listener),
                origin: None,
            };
            let table = Arc::clone(&table);
            each(listener, move |stream| converse(&stream, &server, &table));
        }
        each(mute, |stream| drain(&stream));
        each(resets, |stream| reset(&stream));
        Self {
            table,
            ports,
            _filling: filled(silent),
        }
    }

    /// The arguments with addresses for names.
    pub(super) fn arguments(&self, args: &[&str]) -> Vec<String> {
        let replaced = |arg: &&str| {
            let mut arg = (*arg).to_owned();
            for (name, port) in &self.ports {
                arg = arg.replace(&format!("{{{name}}}"), &format!("127.0.0.1:{port}"));
            }
            arg
        };
        args.iter().map(replaced).collect()
    }
}

/// Serves each connection on a thread of its own, for as long as the test lives.
fn each(listener: TcpListener, serve: impl Fn(TcpStream) + Send + Sync + 'static) {
    let serve = Arc::new(serve);
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let serve = Arc::clone(&serve);
            thread::spawn(move || serve(stream));
        }
    });
}

/// Answers requests until the other end leaves.
fn converse(stream: &TcpStream, server: &Server, table: &Table) {
    let source = stream.peer_addr().map_or(LOCAL, |peer| peer.ip());
    let mut reader = BufReader::new(stream);
    let mut writer = stream;
    // net/http's words for a client that begins with TLS
    if reader
        .fill_buf()
        .is_ok_and(|bytes| bytes.first() == Some(&0x16))
    {
        let _ = writer.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
        return;
    }
    while let Some(asked) = request(&mut reader) {
        let answer = server.answer(&asked, source, table);
        let body = if asked.method == "HEAD" {
            ""
        } else {
            answer.body.as_str()
        };
        let bytes = answer.head() + body;
        if writer.write_all(bytes.as_bytes()).is_err() {
            return;
        }
    }
}

fn request(reader: &mut impl BufRead) -> Option<Asked> {
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let mut words = line.split_whitespace();
    let mut asked = Asked {
        method: words.next()?.to_owned(),
        path: words.next()?.to_owned(),
        ..Asked::default()
    };
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(':') else {
            break;
        };
        asked
            .headers
            .push((name.to_owned(), value.trim().to_owned()));
    }
    let length = asked
        .header("content-length")
        .and_then(|length| length.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    reader.read_exact(&mut body).ok()?;
    asked.body = String::from_utf8(body).ok()?;
    Some(asked)
}

/// Takes everything, and says nothing.
fn drain(mut stream: &TcpStream) {
    let mut buffer = [0; 1024];
    while stream.read(&mut buffer).is_ok_and(|read| read > 0) {}
}

/// Cuts the connection once something has come: closing with unread data sends a reset.
fn reset(stream: &TcpStream) {
    let mut buffer = [0; 1];
    let _ = stream.peek(&mut buffer);
}

/// A listener whose queue is full, so that nobody answers another SYN.
fn filled(listener: TcpListener) -> (TcpListener, Vec<TcpStream>) {
    let address: SocketAddr = listener.local_addr().expect("it is bound");
    let mut filling = Vec::new();
    while let Ok(stream) = TcpStream::connect_timeout(&address, Duration::from_millis(200)) {
        filling.push(stream);
        assert!(
            filling.len() < 20_000,
            "the queue of a listener ends somewhere"
        );
    }
    (listener, filling)
}
