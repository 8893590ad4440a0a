//! The reader of the config file, its example and its schema agree.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::Value as Json;
use winconform_core::config::{
    Allowed, Config, EXAMPLE, Profile, parse_duration, read, schema, shown,
};
use winconform_core::document::Diagnostic;

fn config(text: &str) -> (Config, Vec<Diagnostic>) {
    let mut diagnostics = Vec::new();
    let config = read("config.yaml", text, &mut diagnostics);
    (config, diagnostics)
}

fn valid(text: &str) -> Config {
    let (config, diagnostics) = config(text);
    assert_eq!(diagnostics, Vec::new(), "{text}");
    config
}

fn problems(text: &str) -> Vec<String> {
    let (_, diagnostics) = config(text);
    diagnostics.iter().map(ToString::to_string).collect()
}

fn schema_json() -> Json {
    serde_json::from_str(&schema()).expect("JSON")
}

#[test]
fn the_example_changes_nothing() {
    let read = valid(EXAMPLE);
    let without = Config {
        digest: read.digest.clone(),
        ..Config::default()
    };
    assert_eq!(read, without);
}

/// Lines with a `#` right before a setting are settings; comments have a space after it.
#[test]
fn what_the_example_proposes_is_valid() {
    let is_setting = |line: &str| {
        let text = line.trim_start().strip_prefix('#').unwrap_or_default();
        !text.is_empty() && (!text.starts_with(' ') || text.starts_with("  "))
    };
    let lines = EXAMPLE.lines().map(|line| match line {
        "allow: []" | "protected: []" | "select: []" | "waivers: []" | "  pull-secrets: []"
        | "  exclude: []" => String::new(),
        _ if is_setting(line) => line.replacen('#', "", 1),
        _ => line.to_owned(),
    });
    let text: Vec<_> = lines.collect();
    let read = valid(&(text.join("\n") + "\n"));
    assert_eq!((read.select.len(), read.waivers.len()), (5, 1));
    assert_eq!(read.allow.len(), Allowed::ALL.len());
    assert!(read.images.public().is_empty(), "{:?}", read.images);
}

#[test]
fn the_schema_checked_in_is_the_one_of_this_source() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../schema/config.json");
    let kept = std::fs::read_to_string(path).expect("the schema is there");
    assert!(
        kept == schema(),
        "the settings have changed: `cargo run -- config schema > schema/config.json`"
    );
}

/// Each mapping of the schema, as a text that places a key in it, with its keys.
fn mappings() -> Vec<(&'static str, BTreeSet<String>)> {
    let schema = schema_json();
    let keys = |object: &Json| -> BTreeSet<String> {
        let properties = object["properties"].as_object().expect("a mapping");
        properties.keys().cloned().collect()
    };
    let definitions = schema["$defs"].as_object().expect("definitions");
    let mut mappings = vec![("KEY: 1\n", keys(&schema))];
    for (name, definition) in definitions {
        let text = match name.as_str() {
            "WrittenImages" => "images: {KEY: 1}\n",
            "WrittenDurations" => "durations: {KEY: 1}\n",
            "WrittenFixtures" => "fixtures: {KEY: 1}\n",
            "Nodes" => "nodes: {KEY: 1}\n",
            "Outside" => "outside: {KEY: 1}\n",
            "Target" => "outside: {names: [{KEY: 1}]}\n",
            "Share" => "outside: {share: {KEY: 1}}\n",
            "WrittenLimits" => "limits: {KEY: 1}\n",
            "Waiver" => "waivers: [{KEY: 1}]\n",
            "Allowed" | "Profile" | "PullPolicy" => continue,
            other => panic!("`{other}` is new: where does it stand in a file?"),
        };
        mappings.push((text, keys(definition)));
    }
    assert_eq!(mappings.len(), 10);
    mappings
}

#[test]
fn the_schema_and_the_reader_know_the_same_keys() {
    for (text, keys) in mappings() {
        let problems = problems(&text.replace("KEY", "zzz"));
        let problem = problems
            .iter()
            .find(|one| one.contains("unknown key `zzz`"));
        let (_, known) = problem
            .and_then(|problem| problem.split_once("known are: "))
            .expect("the reader names what it knows");
        let known: BTreeSet<_> = known.split(", ").map(str::to_owned).collect();
        assert_eq!(known, keys, "{text}");
    }
}

#[test]
fn every_setting_stands_in_the_example() {
    for (_, keys) in mappings() {
        for key in keys {
            let written = format!("{key}:");
            let mut words = EXAMPLE
                .split_whitespace()
                .map(|word| word.trim_start_matches('#'));
            assert!(words.any(|word| word == written), "{key}");
        }
    }
}

/// The reader keeps the bounds that the schema gives for a setting, `From X to Y; Z unless set.`
#[test]
fn bounds_are_as_the_schema_says() {
    let schema = schema_json();
    let mut checked = 0;
    for (section, name) in [
        ("durations", "WrittenDurations"),
        ("limits", "WrittenLimits"),
    ] {
        let properties = schema["$defs"][name]["properties"]
            .as_object()
            .expect("a mapping");
        for (key, property) in properties {
            let said = property["description"].as_str().expect("it is described");
            let (_, bounds) = said.rsplit_once("From ").expect("it says its bounds");
            let (bounds, default) = bounds.split_once("; ").expect("it says its default");
            let (least, most) = bounds.split_once(" to ").expect("it says both");
            let default = default.strip_suffix(" unless set.").expect("its default");
            // Values of other settings that allow all values of this one
            let others = if key == "http-connect" {
                ", http-total: 25s"
            } else {
                ", http-connect: 3s"
            };
            let others = if section == "limits" || key == "http-total" {
                ""
            } else {
                others
            };
            let others = if key == "http-total" {
                ", http-connect: 3s"
            } else {
                others
            };
            let with = |value: &str| format!("{section}: {{{key}: {value}{others}}}\n");
            for good in [least, most, default] {
                valid(&with(good));
            }
            let same = valid(&with(default));
            let unset = valid(&format!(
                "{section}: {{{}}}\n",
                others.trim_start_matches(", ")
            ));
            let mut expected = unset.durations;
            if key == "tear-down" {
                // A time that is set is kept, however many pods there are
                expected.tear_down_of_pod = Duration::ZERO;
            }
            assert_eq!(
                (same.durations, same.limits),
                (expected, unset.limits),
                "{key}"
            );
            let (below, above) = match (least.parse::<u64>(), most.parse::<u64>()) {
                (Ok(least), Ok(most)) => ((least - 1).to_string(), (most + 1).to_string()),
                _ => {
                    let second = Duration::from_millis(900);
                    let read = |text| parse_duration(text).expect("a duration");
                    (
                        shown(read(least).saturating_sub(second)),
                        shown(read(most) + second),
                    )
                }
            };
            for bad in [below, above] {
                assert_eq!(problems(&with(&bad)).len(), 1, "{key}: {bad}");
            }
            checked += 1;
        }
    }
    assert_eq!(checked, 11);
}

#[test]
fn a_mirror_takes_the_place_of_public_registries_only() {
    let images =
        valid("images: {mirror: r.example.com/m, agnhost: own.example.com/agnhost:1}\n").images;
    let names = format!("{images:?}");
    assert!(names.contains("\"own.example.com/agnhost:1\""), "{names}");
    assert!(
        names.contains("\"r.example.com/m/windows/servercore\""),
        "{names}"
    );
    assert!(
        names.contains("\"r.example.com/m/oss/kubernetes/"),
        "{names}"
    );
    let docker = valid("images: {mirror: r.example.com, agnhost: me/agnhost:1}\n").images;
    assert!(format!("{docker:?}").contains("\"r.example.com/me/agnhost:1\""));
}

#[test]
fn an_air_gapped_run_needs_images_of_its_own() {
    let public = |text: &str| {
        let problem = valid(text).public.expect("it would pull");
        problem.to_string()
    };
    let refused = public("profile: air-gapped\n");
    assert!(
        refused.contains("registry.k8s.io/e2e-test-images/agnhost"),
        "{refused}"
    );
    let one = public("profile: air-gapped\nimages: {agnhost: r.example.com/agnhost:1}\n");
    assert!(
        !one.contains("agnhost") && one.contains("servercore"),
        "{one}"
    );
    assert_eq!(valid("profile: strict\n").public, None);
    let mirrored = valid("profile: air-gapped\nimages: {mirror: r.example.com:5000/m}\n");
    assert_eq!(mirrored.profile, Profile::AirGapped);
    assert_eq!(mirrored.public, None);
}

#[test]
fn sections_without_anything_are_not_missed() {
    let read = valid("profile:\nimages:\ndurations:\nlimits:\nselect:\nwaivers:\n");
    assert_eq!(
        Config {
            digest: None,
            ..read
        },
        Config::default()
    );
}

#[test]
fn the_digest_is_that_of_the_file() {
    let (one, other) = (valid("profile: strict\n"), valid("profile: strict # now\n"));
    assert_eq!(one.digest.as_deref().map(str::len), Some(64));
    assert_ne!(one.digest, other.digest);
}
