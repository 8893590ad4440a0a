//! The embedded API server on loopback, until interrupted: `serve KUBECONFIG [PORT [VERSION]]` writes
//! the kubeconfig that leads to it.

use std::error::Error;
use std::path::PathBuf;

use hybrid_sim::server::{Server, ServerOptions};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    // Fails where there is one already, which is as good
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut arguments = std::env::args().skip(1);
    let path = PathBuf::from(
        arguments
            .next()
            .ok_or("which file is the kubeconfig to be?")?,
    );
    let port = arguments.next().map_or(Ok(0), |port| port.parse())?;
    let mut options = ServerOptions::default();
    if let Some(version) = arguments.next() {
        options.version = version;
    }
    let server = Server::start(&options)?;
    let address = server.listen(port).await?;
    std::fs::write(&path, server.kubeconfig(address))?;
    tokio::signal::ctrl_c().await?;
    server.stop().await;
    std::fs::remove_file(path)?;
    Ok(())
}
