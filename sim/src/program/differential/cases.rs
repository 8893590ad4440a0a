//! The command lines that real and simulated curl are given; `{name}` stands for a server of the scene.

/// Arguments and input of each case.
pub(super) const CASES: &[(&[&str], &str)] = &[
    // Answers of each page
    (&["-q", "-sS", "http://{netexec}/hostname"], ""),
    (&["-q", "-sS", "http://{netexec}"], ""),
    (&["-q", "-sS", "{netexec}/echo?msg=a%20b"], ""),
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
    // Failures of each kind, loud, quiet and silent
    (&["-q", "-sS", "http://{refused}/"], ""),
    (&["-q", "-s", "http://{refused}/"], ""),
    (&["-q", "http://{refused}/"], ""),
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
    (&["-q", "-sS", "https://{netexec}/"], ""),
    (&["-q", "-sS", "gopherx://{netexec}/"], ""),
    (&["-q", "-sS", "http://127.0.0.1:99999/"], ""),
    (&["-q", "-sS", "http:///"], ""),
    (&["-q", "-sS", "http://a b/"], ""),
    (&["-q", "-sS", "-6", "http://{netexec}/"], ""),
    (&["-q", "-sS", "-4", "http://{netexec}/hostname"], ""),
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
    (&["-q", "-sS", "-f", "http://{netexec}/echo?code=404"], ""),
    (
        &[
            "-q",
            "-sS",
            "-f",
            "http://{netexec}/echo?msg=x&code=500",
            "http://{netexec}/hostname",
        ],
        "",
    ),
    // The line after each transfer
    (
        &[
            "-q",
            "-s",
            "-w",
            "\\n@@t %{http_code} %{response_code} %{size_download} %{num_connects}\\n",
            "http://{netexec}/hostname",
            "http://{refused}/",
        ],
        "",
    ),
    (
        &[
            "-q",
            "-s",
            "-w",
            "%{exitcode} %{errormsg} %{urlnum} %{url} %{url_effective}\\n",
            "{netexec}/hostname",
            "http://{refused}/x",
        ],
        "",
    ),
    (
        &[
            "-q",
            "-s",
            "-w",
            "%{remote_ip} %{remote_port} %{local_ip} %{scheme} %{method} %{http_version}\\t%%\\q%x\\n",
            "http://{netexec}/hostname",
            "http://{refused}/",
        ],
        "",
    ),
    (
        &[
            "-q",
            "-s",
            "-w",
            "<%{nonesuch}>",
            "http://{netexec}/hostname",
        ],
        "",
    ),
    (
        &["-q", "-s", "-w", "<%{open", "http://{netexec}/hostname"],
        "",
    ),
    (
        &[
            "-q",
            "-s",
            "-w",
            "a%{onerror}b%{stderr}c%{stdout}d",
            "http://{netexec}/hostname",
            "http://{refused}/",
        ],
        "",
    ),
    (
        &[
            "-q",
            "-sS",
            "-w",
            "%{content_type}|%{redirect_url}\\n",
            "http://{netexec}/redirect?location=/hostname",
            "http://{iis}/",
        ],
        "",
    ),
    // Where bodies go
    (
        &[
            "-q",
            "-sS",
            "-o",
            "/dev/null",
            "http://{netexec}/hostname",
            "http://{netexec}/echo?msg=second",
        ],
        "",
    ),
    (
        &[
            "-q",
            "-sS",
            "-o",
            "/dev/null",
            "-o",
            "/dev/null",
            "http://{netexec}/",
            "http://{netexec}/",
        ],
        "",
    ),
    (
        &[
            "-q",
            "-sS",
            "-o",
            "-",
            "-w",
            "%{filename_effective}",
            "http://{netexec}/hostname",
        ],
        "",
    ),
    (
        &[
            "-q",
            "-sS",
            "-o",
            "/dev/null",
            "-w",
            "%{filename_effective}\\n",
            "http://{netexec}/hostname",
            "http://{netexec}/hostname",
        ],
        "",
    ),
    // Methods, headers, forms, redirects
    (&["-q", "-sS", "-I", "http://{netexec}/hostname"], ""),
    (
        &[
            "-q",
            "-sS",
            "-i",
            "http://{netexec}/redirect?location=/hostname",
        ],
        "",
    ),
    (
        &[
            "-q",
            "-sSL",
            "-w",
            " %{num_redirects} %{url_effective}\\n",
            "http://{netexec}/redirect?location=/hostname",
        ],
        "",
    ),
    (
        &[
            "-q",
            "-sS",
            "-d",
            "msg=a",
            "-d",
            "code=201",
            "-w",
            " %{method} %{http_code}",
            "http://{netexec}/echo",
        ],
        "",
    ),
    (
        &[
            "-q",
            "-sS",
            "-X",
            "PUT",
            "-w",
            " %{method}",
            "http://{netexec}/hostname",
        ],
        "",
    ),
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
    (
        &[
            "-q",
            "-sS",
            "-A",
            "me",
            "http://{netexec}/header?key=User-Agent",
        ],
        "",
    ),
    // A config on the input
    (
        &["-q", "-sSK", "-"],
        "url http://{netexec}/hostname\n# a comment\n-o /dev/null\n--url=http://{win}/\n",
    ),
    (
        &["-q", "-sS", "-K", "-", "-K", "-"],
        "url = {netexec}/hostname\nconfig = -\n",
    ),
    // Wrong usage
    (&["-q"], ""),
    (&["-q", "-K", "-"], ""),
    (&["-q", "--nonesuch"], ""),
    (&["-q", "-w"], ""),
    (&["-q", "--connect-timeout", "x", "http://{netexec}/"], ""),
    (&["-q", "--connect-timeout", "-1", "http://{netexec}/"], ""),
    (&["-q", "-K", "/nonesuch"], ""),
    (&["--version"], ""),
    // Meters
    (&["-q", "http://{netexec}/hostname"], ""),
    (
        &["-q", "--no-progress-meter", "http://{netexec}/hostname"],
        "",
    ),
    (&["-q", "-o", "/dev/null", "http://{netexec}/hostname"], ""),
];

/// What tells curls of different ages apart, or must not: several URLs, and several parts.
pub(super) const SESSIONS: &[(&[&str], &str)] = &[
    (
        &["-q", "-K", "-"],
        "silent\nshow-error\ngloboff\nnoproxy = \"*\"\nheader = \"Connection: close\"\nconnect-timeout = 4\nmax-time = 8\nwrite-out = \"\\n@@t %{http_code} %{url_effective}\\n\"\nurl = \"http://{netexec}/hostname\"\nurl = \"http://{refused}/\"\nurl = \"http://{netexec}/echo?msg=a\"\nurl = \"http://{win}/\"\n",
    ),
    (
        &["-q", "-K", "-"],
        "silent\nshow-error\nurl = \"http://{netexec}/hostname\"\nwrite-out = \"\\n@@t 0 %{http_code}\\n\"\nnext\nurl = http://{refused}/\nwrite-out = \"\\n@@t 1 %{http_code}\\n\"\nnext\nurl = http://{win}/\n",
    ),
    (
        &[
            "-q",
            "-sS",
            "http://{refused}/",
            "http://{netexec}/hostname",
            "--next",
            "-sS",
            "http://{netexec}/hostname",
        ],
        "",
    ),
];

/// Configs with unknown lines, where the version warns of them.
pub(super) const WARNED: &[(&[&str], &str)] = &[
    (
        &["-q", "-K", "-"],
        "nonesuch = 1\nsilent\nbar\nurl = http://{netexec}/hostname\n",
    ),
    (
        &["-q", "-s", "-K", "-"],
        "nonesuch = 1\nurl = http://{netexec}/hostname\n",
    ),
    (
        &["-q", "-K", "-"],
        "connect-timeout = x\nno-progress-meter\nurl = http://{netexec}/hostname\n",
    ),
];
