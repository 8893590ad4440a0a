//! The sessions that real and simulated curl run; `{name}` is a server of the scene.

/// The options and the targets of each session.
pub(super) const CASES: &[(&[&str], &[&str])] = &[
    // Answers of each page
    (
        LOUD,
        &[
            "{netexec}/hostname",
            "{netexec}",
            "{netexec}/echo?msg=a%20b",
            "{win}/anything",
            "{iis}/",
            "{iis}/nothing",
        ],
    ),
    (
        &["silent", "show-error", "globoff", "noproxy = \"*\""],
        &["{netexec}/hostname"],
    ),
    // Failures of each kind, loud and silent
    (LOUD, &["{refused}/"]),
    (&["silent"], &["{refused}/"]),
    (LOUD, &["{resets}/"]),
    (LOUD, &["{breaks}/"]),
    (
        &["silent", "show-error", "connect-timeout = 0.3"],
        &["{silent}/"],
    ),
    (&["silent", "show-error", "max-time = 0.3"], &["{silent}/"]),
    (
        &[
            "silent",
            "show-error",
            "max-time = 0.3",
            "connect-timeout = 5",
        ],
        &["{silent}/"],
    ),
    (
        &[
            "silent",
            "show-error",
            "max-time = 5",
            "connect-timeout = 0.3",
        ],
        &["{silent}/"],
    ),
    (&["silent", "show-error", "max-time = 0.3"], &["{mute}/"]),
    (
        &[
            "silent",
            "show-error",
            "connect-timeout = 0.3",
            "max-time = 0.4",
        ],
        &["{mute}/"],
    ),
    (LOUD, &["nowhere.invalid/"]),
    // Which exit code counts
    (LOUD, &["{refused}/", "{netexec}/hostname"]),
    (LOUD, &["{netexec}/hostname", "{refused}/"]),
    // The line after each transfer
    (
        &[
            "silent",
            "write-out = \"\\n@@t %{http_code} %{url_effective}\\n\"",
        ],
        &["{netexec}/hostname", "{refused}"],
    ),
];

const LOUD: &[&str] = &["silent", "show-error"];

/// Sessions of the tool, in which curls of different versions differ, or must not: several targets, and each way to
/// fail by itself, since an old curl ends with the first.
pub(super) const SESSIONS: &[(&[&str], &[&str])] = &[
    (
        &[TOLD, "connect-timeout = 4", "max-time = 8"],
        &[
            "{netexec}/hostname",
            "{refused}/",
            "{netexec}/echo?msg=a",
            "{win}/",
        ],
    ),
    (&[TOLD], &["{six}/hostname"]),
    (&[TOLD, "connect-timeout = 1"], &["{silent}/"]),
    (&[TOLD, "max-time = 1"], &["{mute}/"]),
    (&[TOLD], &["{resets}/"]),
    (&[TOLD], &["{breaks}/"]),
    (&[TOLD], &["nowhere.invalid/"]),
];

/// The tool's options, but for limits: an old curl has none below a second.
const TOLD: &str = "silent\nshow-error\ngloboff\nnoproxy = \"*\"\n\
    write-out = \"\\n@@t %{http_code} %{exitcode} %{url_effective}\\n%{stderr}\"";
