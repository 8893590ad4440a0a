//! What the programs of a Windows host print of it: `sc`, `netsh`, `fsutil`, `hnsdiag` and the names of pipes.
//!
//! Texts: `sc/`; Microsoft's "sc.exe query" and its pages of `netsh interface ipv4 show` and `fsutil`; kubernetes
//! issue 135802 (`hnsdiag`); the README of kubernetes-csi/csi-proxy (the pipes' names).

use crate::fault::FaultKind;
use crate::network::Origin;
use crate::program::forms::Call;
use crate::program::{Ran, Seat};

impl Seat<'_> {
    /// Whether the node that the program runs on suffers from a fault.
    pub(in crate::program) fn suffers(&self, kind: FaultKind) -> bool {
        let world = self.view.world;
        let node = self.place.origin.node(world);
        node.is_some_and(|node| world.suffers(kind, node))
    }

    /// Whether kube-proxy is a pod on the node, and no service of it.
    fn has_proxy_pod(&self) -> bool {
        let world = self.view.world;
        let node = self.place.origin.node(world);
        let mut pods = node.into_iter().flat_map(|node| world.pods.on_host(node));
        pods.any(|(key, _)| key.name.starts_with("kube-proxy"))
    }
}

/// `sc qc|queryex|qfailure NAME`: a node has the services of Kubernetes, a container does not.
pub(crate) fn service(call: &Call<'_>) -> Option<Ran> {
    let [query, name] = call.words()?;
    let (text, asked) = match query {
        "qc" => (include_str!("sc/qc.txt"), "OpenService"),
        "queryex" => (
            include_str!("sc/queryex.txt"),
            "EnumQueryServicesStatus:OpenService",
        ),
        "qfailure" => (include_str!("sc/qfailure.txt"), "OpenService"),
        _ => return None,
    };
    let seat = call.seat;
    let is_there = call.place().host_process
        && match name {
            "kubelet" | "containerd" => true,
            "kube-proxy" => !seat.has_proxy_pod(),
            "csiproxy" => !seat.suffers(FaultKind::CsiProxyMissing),
            _ => false,
        };
    if !is_there {
        let words = format!(
            "[SC] {asked} FAILED 1060:\r\n\r\n\
             The specified service does not exist as an installed service.\r\n\r\n"
        );
        return Some(Ran::prints(words).ending(1060));
    }
    let mut text = text.replace("kubelet", name);
    if seat.suffers(FaultKind::ServicesByHand) {
        text = text.replace("2   AUTO_START", "3   DEMAND_START");
        // Without an action there is no such line
        let lines = text
            .lines()
            .filter(|line| !line.contains("FAILURE_ACTIONS"));
        text = lines
            .map(|line| format!("{line}\n"))
            .collect::<Vec<_>>()
            .concat();
    }
    Some(Ran::prints(text.replace('\n', "\r\n")))
}

/// `fsutil volume diskfree PATH`.
pub(crate) fn free_space(call: &Call<'_>) -> Ran {
    let (free, rounded) = match call.seat.suffers(FaultKind::DiskLow) {
        true => ("3,577,741,312", "3.3"),
        false => ("21,296,336,896", "19.8"),
    };
    Ran::prints(format!(
        "Total free bytes                : {free} ( {rounded} GB)\r\n\
         Total bytes                     : 21,339,570,176 ( 19.9 GB)\r\n\
         Total quota free bytes          : {free} ( {rounded} GB)\r\n"
    ))
}

/// `netsh int ipv4 show dynamicport tcp|udp` and `netsh int ipv4 show excludedportrange protocol=tcp|udp`.
pub(crate) fn ports(call: &Call<'_>) -> Option<Ran> {
    let ["int", "ipv4", "show", what, protocol] = call.words()? else {
        return None;
    };
    let protocol = protocol.strip_prefix("protocol=").unwrap_or(protocol);
    if !matches!(protocol, "tcp" | "udp") {
        return None;
    }
    let text = match what {
        "dynamicport" => format!(
            "\nProtocol {protocol} Dynamic Port Range\n---------------------------------\n\
             Start Port      : 49152\nNumber of Ports : 16384\n\n"
        ),
        "excludedportrange" => {
            let rest = match call.seat.suffers(FaultKind::PortsExcluded) {
                true => "     49152       65471      \n",
                false => "     50000       50059     *\n",
            };
            format!(
                "\nProtocol {protocol} Port Exclusion Ranges\n\n\
                 Start Port    End Port      \n----------    --------      \n      \
                 5985        5985      \n{rest}\n* - Administered port exclusions.\n\n"
            )
        }
        _ => return None,
    };
    Some(Ran::prints(text.replace('\n', "\r\n")))
}

/// `hnsdiag list loadbalancers`: what kube-proxy created for each Service.
pub(crate) fn load_balancers(call: &Call<'_>) -> Option<Ran> {
    let ["list", "loadbalancers"] = call.words()? else {
        return None;
    };
    if call.seat.suffers(FaultKind::KubeProxyDead) {
        return Some(Ran::default());
    }
    let services = call.seat.view.world.services.all();
    let each = services.flat_map(|service| {
        let address = service.addresses.first().copied();
        std::iter::repeat_n(address, service.balancers())
    });
    let texts = each.enumerate().map(|(number, address)| {
        let address = address.map_or(String::new(), |address| address.to_string());
        format!(
            "Load Balancer    : 3599612c-54b4-4b9d-9258-{number:012x}\r\n  \
             Virtual IPs      : {address}\r\n  \
             Direct IP IDs    : 78c19c4d-7edf-43bd-ab2a-{number:012x}\r\n\r\n"
        )
    });
    Some(Ran::prints(texts.collect::<Vec<_>>().concat()))
}

/// `shutdown /r /f /t 5`; the node is gone before anybody notices whether that was at once.
pub(crate) fn shutdown(call: &Call<'_>) -> Option<Ran> {
    let ["/r", "/f", "/t", "5"] = call.words()? else {
        return None;
    };
    if let Some(reboots) = &call.place().reboots {
        reboots.notify_one();
    }
    Some(Ran::default())
}

/// The script that prints the size of each page file.
pub(crate) const PAGE_FILES: &str = "'@@ page files'; Get-CimInstance Win32_PageFileUsage | ForEach-Object { $_.AllocatedBaseSize }";

/// The script that prints which drives BitLocker protects.
pub(crate) const ENCRYPTION: &str = "'@@ volumes'; if (Get-CimInstance -Namespace root/cimv2/Security -ClassName __NAMESPACE | Where-Object { $_.Name -eq 'MicrosoftVolumeEncryption' }) { Get-CimInstance -Namespace root/cimv2/Security/MicrosoftVolumeEncryption -ClassName Win32_EncryptableVolume | ForEach-Object { '{0} {1}' -f $_.DriveLetter, $_.ProtectionStatus } }";

/// [`PAGE_FILES`]: one that Windows manages, as on a new node.
pub(crate) fn page_files(call: &Call<'_>) -> Ran {
    let sizes = match call.seat.suffers(FaultKind::PageFileMissing) {
        true => "",
        false => "1280\r\n",
    };
    Ran::prints(format!("@@ page files\r\n{sizes}"))
}

/// [`ENCRYPTION`]: on Windows Server BitLocker is a feature that has to be installed.
pub(crate) fn encryption(call: &Call<'_>) -> Ran {
    let drives = match call.seat.suffers(FaultKind::DiskEncrypted) {
        true => "C: 1\r\n",
        false => "",
    };
    Ran::prints(format!("@@ volumes\r\n{drives}"))
}

/// `dir /b \\.\pipe\\| findstr /b csi-proxy-`: a node has the pipes, a container those that are mounted, which
/// is none.
pub(crate) fn pipes(call: &Call<'_>, rest: &str) -> Option<Ran> {
    if rest != "/b \\\\.\\pipe\\\\| C:\\Windows\\System32\\findstr.exe /b csi-proxy-" {
        return None;
    }
    let is_node = !matches!(call.place().origin, Origin::Pod(_));
    if !is_node || call.seat.suffers(FaultKind::CsiProxyMissing) {
        return Some(Ran::code(1));
    }
    let names = ["disk", "filesystem", "smb", "volume"];
    let lines = names.map(|name| format!("csi-proxy-{name}-v1\r\n"));
    Some(Ran::prints(lines.concat()))
}
