//! An HTTP proxy on loopback, through which a client outside the cluster reaches the simulated
//! addresses of nodes and load balancers: `http_proxy=URL`.
//!
//! The proxy takes plain HTTP in absolute form and answers with the outcome in the simulated network: 502
//! where something refuses the connection, 504 where nothing answers. It answers 503 to a host name, since it
//! knows none, so that a client can tell this from both.

use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::request::Parts;
use http::{Method, Response, StatusCode};
use http_body_util::Full;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;

use crate::nodes::cluster::Cluster;
use crate::program::web::outside;
use crate::program::{Turns, View};
use crate::wire::listen;
use crate::wire::loopback::{Listener, Stream};

/// How many bytes of header a client may send.
const MOST_HEADER: usize = 16 * 1024;

/// How long a client may take to send its header.
const PATIENCE: Duration = Duration::from_secs(10);

/// Serves outside clients until the simulator stops.
pub(crate) async fn serve(cluster: Arc<Cluster>, listener: Listener) {
    let turns = Arc::new(Turns::default());
    let serves = |stream| {
        let (cluster, turns) = (Arc::clone(&cluster), Arc::clone(&turns));
        async move { connection(&cluster, &turns, Box::new(stream)).await }
    };
    listen::serve(|task| cluster.spawn(task), listener, serves).await;
}

async fn connection(cluster: &Cluster, turns: &Turns, stream: Box<dyn Stream>) {
    let service = service_fn(|request: http::Request<hyper::body::Incoming>| {
        let world = cluster.world();
        let view = View {
            turns,
            ..cluster.view(&world)
        };
        let answer = answer(&view, &request.into_parts().0);
        async move { Ok::<_, Infallible>(answer) }
    });
    let served = listen::http(PATIENCE)
        .max_buf_size(MOST_HEADER)
        .serve_connection(TokioIo::new(stream), service)
        .await;
    if let Err(error) = served {
        tracing::debug!(%error, "an outside client's connection ends");
    }
}

/// What the proxy answers to one request.
pub(crate) fn answer(view: &View<'_>, head: &Parts) -> Response<Full<Bytes>> {
    let (method, uri) = (&head.method, &head.uri);
    if !matches!(*method, Method::GET | Method::HEAD) {
        let what = if *method == Method::CONNECT {
            "tunnels, and so no TLS"
        } else {
            "methods but GET and HEAD"
        };
        let text = format!("the simulated cluster's proxy passes no {what}");
        return said(StatusCode::NOT_IMPLEMENTED, text);
    }
    let target = uri.authority().filter(|_| uri.scheme_str() == Some("http"));
    let Some(target) = target else {
        let text = "this is a proxy: it wants a URL such as `GET http://127.77.0.1:30080/`";
        return said(StatusCode::BAD_REQUEST, text.to_owned());
    };
    let host = target.host().trim_start_matches('[').trim_end_matches(']');
    let Ok(address) = host.parse::<IpAddr>() else {
        let text = format!("`{host}` is no address; names of the cluster are not known outside it");
        return said(StatusCode::SERVICE_UNAVAILABLE, text);
    };
    let port = target.port_u16().unwrap_or(80);
    let path = uri
        .path_and_query()
        .map_or("/", http::uri::PathAndQuery::as_str);
    let answer = outside::ask(view, (address, port), path);
    let status = StatusCode::from_u16(answer.status);
    said(status.unwrap_or(StatusCode::BAD_GATEWAY), answer.body)
}

fn said(status: StatusCode, body: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = status;
    response
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::net::Ipv4Addr;
    use std::process::{Command, Stdio};

    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;
    use crate::fault::FaultKind;
    use crate::nodes::cluster::tests::cluster_of;
    use crate::topology::{Build, Pool};
    use crate::wire::loopback::Loopback;
    use crate::world::Page;
    use crate::world::{Endpoint, Key, Node, Pod, Service, ServicePort, Slice, Told, World};
    use tokio::net::TcpStream;

    const WS2022: Pool = Pool::Windows(Build::Ws2022);
    const NODE: Ipv4Addr = Ipv4Addr::new(127, 77, 9, 1);
    const BALANCER: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 200);
    const PORT: u16 = 30080;

    /// Adds a Service with a node port, backed by one pod that serves on port `at`.
    fn fill(world: &mut World, named: &str, pod: Pod, (port, at): (u16, u16), service: Service) {
        let key = Key::new("test", named);
        let ports = vec![ServicePort {
            port: 80,
            node_port: Some(port),
            ..ServicePort::default()
        }];
        let slice = Slice {
            service: named.to_owned(),
            ports: BTreeMap::from([(String::new(), at)]),
            endpoints: vec![Endpoint::ready(pod.address)],
        };
        world.pods.insert(key.clone(), pod);
        world
            .services
            .insert(key.clone(), Service { ports, ..service });
        world.slices.insert(key, slice);
    }

    /// Adds a Windows node with a web server behind a load balancer.
    fn web(world: &mut World) {
        let node = Node::new(WS2022, NODE, 10250, [10, 244, 2]);
        world.nodes.insert("win".to_owned(), node);
        let pod = Pod {
            listening: BTreeMap::from([(80, Page::WinWebserver)]),
            ..Pod::new("win", [10, 244, 2, 5], Told::default())
        };
        let service = Service {
            addresses: vec![[10, 96, 3, 4].into()],
            external: vec![BALANCER.into()],
            ..Service::default()
        };
        fill(world, "web", pod, (PORT, 80), service);
    }

    /// Starts a proxy for a cluster that has no API server.
    async fn proxy() -> (Arc<Cluster>, std::net::SocketAddr) {
        let cluster = cluster_of(BTreeMap::new());
        cluster.change(web);
        let cluster = Arc::new(cluster);
        let listener = Loopback::default().listen(Ipv4Addr::LOCALHOST, 0).await;
        let listener = listener.expect("loopback has a port");
        let address = listener.local_addr().expect("it is bound");
        cluster.spawn(serve(Arc::clone(&cluster), listener));
        (cluster, address)
    }

    async fn stop(cluster: &Cluster) {
        cluster.stop.cancel();
        cluster.tasks.close();
        cluster.tasks.wait().await;
    }

    async fn ask(proxy: std::net::SocketAddr, request: &str) -> String {
        let mut stream = TcpStream::connect(proxy).await.expect("it listens");
        let text = format!("{request} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        stream.write_all(text.as_bytes()).await.expect("it reads");
        let mut answer = String::new();
        let read = stream.read_to_string(&mut answer).await;
        read.expect("it answers");
        answer
    }

    #[tokio::test]
    async fn an_outside_client_meets_the_simulated_network() {
        let (cluster, proxy) = proxy().await;
        let marker = "<H1>Windows Container Web Server</H1>";
        let (node, balancer) = (
            format!("http://{NODE}:{PORT}/"),
            format!("http://{BALANCER}/"),
        );
        for (method, url, status, text) in [
            ("GET", node.as_str(), 200, marker),
            ("GET", &balancer, 200, marker),
            (
                "GET",
                "http://127.77.9.1:9/",
                504,
                "127.77.9.1:9: timed out",
            ),
            ("GET", "http://10.96.3.4/", 504, "timed out"),
            ("GET", "http://10.244.2.5/", 504, "timed out"),
            ("GET", "http://[fd00::1]/", 502, "no route"),
            ("GET", "http://web.test/", 503, "not known outside"),
            ("GET", "/", 400, "wants a URL"),
            ("CONNECT", "127.77.9.1:443", 501, "no tunnels"),
            ("POST", &node, 501, "GET and HEAD"),
        ] {
            let answer = ask(proxy, &format!("{method} {url}")).await;
            let is_it = answer.starts_with(&format!("HTTP/1.1 {status}"));
            assert!(is_it && answer.contains(text), "{method} {url}: {answer}");
        }
        let fault = FaultKind::KubeProxyDead.on(WS2022);
        cluster.faults.set(fault.clone());
        let url = format!("GET http://{NODE}:{PORT}/");
        assert!(ask(proxy, &url).await.starts_with("HTTP/1.1 504"));
        cluster.faults.lift(&fault);
        assert!(ask(proxy, &url).await.starts_with("HTTP/1.1 200"));
        stop(&cluster).await;
    }

    #[tokio::test]
    async fn servers_answer_outside_as_they_answer_inside() {
        let (cluster, proxy) = proxy().await;
        let linux = Ipv4Addr::new(127, 77, 9, 2);
        cluster.change(|world| {
            let node = Node::new(Pool::Linux, linux, 10250, [10, 244, 1]);
            world.nodes.insert("lin".to_owned(), node);
            let named = Told {
                own_name: Some("calls-itself".to_owned()),
                ..Told::default()
            };
            let listening = BTreeMap::from([(8080, Page::Netexec)]);
            let own = Pod {
                listening: listening.clone(),
                listening_udp: BTreeMap::from([(8081, Page::Netexec)]),
                ..Pod::new("lin", [10, 244, 1, 5], named)
            };
            let host = Pod {
                listening,
                host_network: true,
                ..Pod::new("lin", linux, Told::default())
            };
            world.pods.insert(Key::new("test", "host"), host);
            let service = Service {
                addresses: vec![[10, 96, 3, 5].into()],
                ..Service::default()
            };
            fill(world, "exec", own, (30081, 8080), service);
        });
        let dial = "dial?host=10.244.1.5&port=8081&protocol=udp&request=hostname&tries=1";
        for (port, path, seen) in [
            (30081, "hostname", "calls-itself"),
            (30081, dial, "\"responses\":[\"calls-itself\"]"),
            (8080, "hostname", "\r\n\r\nlin"),
        ] {
            let answer = ask(proxy, &format!("GET http://{linux}:{port}/{path}")).await;
            assert!(answer.contains(seen), "{port} {path}: {answer}");
        }
        stop(&cluster).await;
    }

    #[tokio::test]
    async fn clients_that_say_too_much_or_leave_do_no_harm() {
        let (cluster, proxy) = proxy().await;
        let long = format!("GET http://{NODE}:{PORT}/{}", "a".repeat(4 * MOST_HEADER));
        let answer = ask(proxy, &long).await;
        assert!(answer.starts_with("HTTP/1.1 4"), "{answer}");
        let mut silent = Vec::new();
        for _ in 0..8 {
            silent.push(TcpStream::connect(proxy).await.expect("it listens"));
        }
        drop(silent);
        let url = format!("GET http://{NODE}:{PORT}/");
        assert!(ask(proxy, &url).await.starts_with("HTTP/1.1 200"));
        stop(&cluster).await;
        assert!(cluster.tasks.is_empty());
    }

    #[tokio::test]
    async fn real_curl_goes_through() {
        let installed = Command::new("curl")
            .arg("--version")
            .stdout(Stdio::null())
            .status();
        if !installed.is_ok_and(|status| status.success()) {
            return;
        }
        let (cluster, proxy) = proxy().await;
        let curl = tokio::task::spawn_blocking(move || {
            Command::new("curl")
                .args(["-q", "-sS", "-w", "%{http_code}", "--noproxy", ""])
                .args(["--proxy", &format!("http://{proxy}")])
                .arg(format!("http://{NODE}:{PORT}/"))
                .output()
        });
        let output = curl.await.expect("no panic").expect("curl runs");
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(
            printed.contains("Windows Container Web Server") && printed.ends_with("200"),
            "{printed}"
        );
        stop(&cluster).await;
    }
}
