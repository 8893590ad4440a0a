//! Simulated pages, and listeners that fail, on real sockets.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use crate::network::Origin;
use crate::program::web::http::Answer;
use crate::program::web::net::{Link, Server, Speaks};
use crate::program::windows::network_table::Table;
use crate::topology::Os;
use crate::world::Page;

pub(super) const LOCAL: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// Servers of every kind, and the table through which the simulated programs reach the same servers. They
/// serve until the test ends.
pub(super) struct Scene {
    pub(super) table: Arc<Table>,
    /// The address of each `{name}` in arguments; without IPv6 there is no `{six}`.
    addresses: Vec<(&'static str, SocketAddr)>,
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
        let six = TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).ok();
        let six = six.map(|listener| ("six", Page::Netexec, listener));
        let pages: Vec<_> = pages.into_iter().chain(six).collect();
        let (mute, resets, breaks) = (bind(), bind(), bind());
        let (silent, refused) = (bind(), bind());
        let address = |listener: &TcpListener| listener.local_addr().expect("it is bound");
        let port = |listener: &TcpListener| address(listener).port();
        let mut addresses: Vec<_> = pages
            .iter()
            .map(|(name, _, on)| (*name, address(on)))
            .collect();
        for (name, on) in [
            ("mute", &mute),
            ("resets", &resets),
            ("breaks", &breaks),
            ("silent", &silent),
            ("refused", &refused),
        ] {
            addresses.push((name, address(on)));
        }
        drop(refused);
        let mut table = Table {
            own: LOCAL,
            ..Table::new(Os::Linux)
        };
        for (_, page, on) in &pages {
            table = table.page(address(on).ip(), port(on), *page);
        }
        let server = |page, table: &Table| Server {
            page,
            hostname: table.hostname.clone(),
            address: LOCAL,
            origin: Origin::Outside,
        };
        let breaking = server(Page::Iis, &table);
        table = table
            .peer(
                LOCAL,
                port(&breaks),
                Speaks::BreaksOff(Box::new(breaking.clone())),
            )
            .peer(LOCAL, port(&mute), Speaks::Silence)
            .peer(LOCAL, port(&resets), Speaks::Resets)
            .link(LOCAL, port(&silent), Link::TimedOut);
        let table = Arc::new(table);
        for (_, page, listener) in pages {
            let server = server(page, &table);
            let table = Arc::clone(&table);
            each(listener, move |stream| converse(&stream, &server, &table));
        }
        let all = Arc::clone(&table);
        each(breaks, move |stream| break_off(&stream, &breaking, &all));
        each(mute, |stream| drain(&stream));
        each(resets, |stream| reset(&stream));
        Self {
            table,
            addresses,
            _filling: filled(silent),
        }
    }

    /// A text with addresses in place of names.
    pub(super) fn filled(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for (name, address) in &self.addresses {
            text = text.replace(&format!("{{{name}}}"), &address.to_string());
        }
        text
    }
}

/// What the servers do that a text names.
pub(super) fn behaviour(text: &str) -> &'static str {
    let named = [
        ("{netexec}", "answers"),
        ("{win}", "answers"),
        ("{iis}", "answers"),
        ("{six}", "answers by IPv6"),
        ("{refused}", "refuses"),
        ("{silent}", "is silent"),
        ("{mute}", "hangs"),
        ("{resets}", "is reset"),
        ("{breaks}", "is reset in the body"),
        ("nowhere.invalid", "finds no name"),
    ];
    let mut named = named.iter().filter(|(name, _)| text.contains(name));
    let (_, first) = named.next().expect("a server is named");
    match named.all(|(_, other)| other == first) {
        true => first,
        false => "several of these",
    }
}

/// Serves each connection on its own thread, until the test ends.
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
    while let Some(path) = request(&mut reader) {
        let answer = server.answer(&path, source, table);
        if writer
            .write_all(whole(&answer, &answer.body).as_bytes())
            .is_err()
        {
            return;
        }
    }
}

/// An answer, of whose body this is said.
fn whole(answer: &Answer, said: &str) -> String {
    let (status, length) = (answer.status, answer.body.len());
    format!("HTTP/1.1 {status} \r\nContent-Length: {length}\r\n\r\n{said}")
}

/// Says half of an answer and resets the connection: closing with unread data does.
fn break_off(mut stream: &TcpStream, server: &Server, table: &Table) {
    let _ = stream.peek(&mut [0]);
    let answer = server.answer("/", LOCAL, table);
    let _ = stream.write_all(whole(&answer, &answer.first_half()).as_bytes());
}

/// The path of the next request, which is a GET.
fn request(reader: &mut impl BufRead) -> Option<String> {
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let path = line.split_whitespace().nth(1)?.to_owned();
    while line != "\r\n" {
        line.clear();
        reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
    }
    Some(path)
}

/// Reads everything and never answers.
fn drain(mut stream: &TcpStream) {
    let mut buffer = [0; 1024];
    while stream.read(&mut buffer).is_ok_and(|read| read > 0) {}
}

/// Resets the connection once data arrives: closing with unread data sends a reset.
fn reset(stream: &TcpStream) {
    let mut buffer = [0; 1];
    let _ = stream.peek(&mut buffer);
}

/// A listener whose queue is full, so that the system answers no further SYN.
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
