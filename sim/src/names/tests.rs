use super::*;
use crate::topology::{Build, Pool};
use crate::world::{Key, Node, Pod, Service, Told};

fn found(pool: Pool, name: &str) -> bool {
    let mut world = World::default();
    let node = Node::new(pool, [127, 77, 0, 1], 1, [10, 244, 1]);
    world.nodes.insert("node".to_owned(), node);
    let pod = Pod::new("node", [10, 244, 1, 4], Told::default());
    world.pods.insert(Key::new("default", "pod"), pod);
    let service = Service {
        addresses: vec![[10, 96, 0, 1].into()],
        ..Service::default()
    };
    world
        .services
        .insert(Key::new("default", "kubernetes"), service);
    resolve(&world, &Origin::Pod(Key::new("default", "pod")), name, 0).is_ok()
}

#[test]
fn windows_completes_names_without_dots_alone() {
    let windows = Pool::Windows(Build::Ws2022);
    let full = "kubernetes.default.svc.cluster.local";
    for (name, on_linux, on_windows) in [
        ("kubernetes", true, true),
        ("kubernetes.default", true, false),
        ("kubernetes.default.svc", true, false),
        (full, true, true),
        ("kubernetes.default.svc.cluster.local.", true, true),
        ("www.nowhere.example", false, false),
        ("www.example.com", true, true),
        ("", false, false),
        ("10.1.2.3", true, true),
    ] {
        assert_eq!(found(Pool::Linux, name), on_linux, "`{name}` on Linux");
        assert_eq!(found(windows, name), on_windows, "`{name}` on Windows");
    }
}
