//! The command lines that real and simulated curl are given; `{name}` stands for a server of the scene.

/// Arguments and input of each case.
pub(super) const CASES: &[(&[&str], &str)] = &[
    // Answers of each page
    (&["-q", "-sS", "http://{netexec}/hostname"], ""),
    (&["-q", "-sS", "http://{netexec}"], ""),
    (&["-q", "-sS", "http://{netexec}/echo?msg=a%20b"], ""),
    (&["-q", "-sS", "http://{win}/anything"], ""),
    (&["-q", "-sS", "http://{iis}/", "http://{iis}/nothing"], ""),
    (
        &[
            "-q",
            "-g",
            "-s",
            "-S",
            "--noproxy",
            "*",
            "http://{netexec}/hostname",
        ],
        "",
    ),
    // Failures of each kind, loud and silent
    (&["-q", "-sS", "http://{refused}/"], ""),
    (&["-q", "-s", "http://{refused}/"], ""),
    (&["-q", "-sS", "http://{resets}/"], ""),
    (
        &["-q", "-sS", "--connect-timeout", "0.3", "http://{silent}/"],
        "",
    ),
    (&["-q", "-sS", "-m", "0.3", "http://{silent}/"], ""),
    (
        &[
            "-q",
            "-sS",
            "-m",
            "0.3",
            "--connect-timeout",
            "5",
            "http://{silent}/",
        ],
        "",
    ),
    (
        &[
            "-q",
            "-sS",
            "-m",
            "5",
            "--connect-timeout",
            "0.3",
            "http://{silent}/",
        ],
        "",
    ),
    (&["-q", "-sS", "-m", "0.3", "http://{mute}/"], ""),
    (
        &[
            "-q",
            "-sS",
            "--connect-timeout",
            "0.3",
            "-m",
            "0.4",
            "http://{mute}/",
        ],
        "",
    ),
    (&["-q", "-sS", "http://nowhere.invalid/"], ""),
    // Which code counts
    (
        &[
            "-q",
            "-sS",
            "http://{refused}/",
            "http://{netexec}/hostname",
        ],
        "",
    ),
    (
        &[
            "-q",
            "-sS",
            "http://{netexec}/hostname",
            "http://{refused}/",
        ],
        "",
    ),
    // The line after each transfer
    (
        &[
            "-q",
            "-s",
            "-w",
            "\\n@@t %{http_code} %{url_effective}\\n",
            "http://{netexec}/hostname",
            "http://{refused}",
        ],
        "",
    ),
    // A header of one's own
    (
        &[
            "-q",
            "-sS",
            "-H",
            "X-A: b",
            "http://{netexec}/header?key=X-A",
        ],
        "",
    ),
    // A config on the input
    (
        &["-q", "-sS", "-K", "-"],
        "url = \"http://{netexec}/hostname\"\nurl = \"http://{win}/\"\n",
    ),
];

/// What the tool sends, which tells curls of different ages apart, or must not.
pub(super) const SESSIONS: &[(&[&str], &str)] = &[(
    &["-q", "-K", "-"],
    "silent\nshow-error\ngloboff\nnoproxy = \"*\"\nheader = \"Connection: close\"\nconnect-timeout = 4\nmax-time = 8\nwrite-out = \"\\n@@t %{http_code} %{url_effective}\\n\"\nurl = \"http://{netexec}/hostname\"\nurl = \"http://{refused}/\"\nurl = \"http://{netexec}/echo?msg=a\"\nurl = \"http://{win}/\"\n",
)];
