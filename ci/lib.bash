# shellcheck shell=bash
# Shared by all kinds of instances, control planes and real nodes. The script that sources this has
# set $kind to the kind.
#
# An instance is a directory D with D/.winconform-KIND, which marks D as ours, and D/pid/NAME with
# the pids of processes to end.

cache=${XDG_CACHE_HOME:-$HOME/.cache}/winconform/${kind:?says what the instances are}
# One file per instance, so that `down` without --dir finds them all. Each
# holds the path of D; its name is a hash of that path.
index=$cache/instances

say() { printf '%s: %s\n' "$kind" "$*" >&2; }

# fail CODE MESSAGE
fail() {
    say "$2"
    exit "$1"
}

usage_error() {
    say "$1 (--help explains the usage)"
    exit 2
}

marker() { printf '%s' "$1/.winconform-$kind"; }

is_instance() { [[ -f $(marker "$1") && -O $(marker "$1") ]]; }

index_file() {
    local hash
    hash=$(printf '%s' "$1" | sha256sum)
    printf '%s' "$index/${hash%% *}"
}

# is_ours PID D: whether PID is a process of the instance D. The system reuses pids, so the command
# line has to mention D. The command line of a process that has ended but was not reaped yet is
# empty, so it counts as ended.
is_ours() {
    local arguments
    [[ $1 =~ ^[0-9]+$ ]] || return 1
    arguments=$({ tr '\0' '\n' <"/proc/$1/cmdline"; } 2>/dev/null) || return 1
    [[ $arguments == *"$2/"* ]]
}

# The pids of the running processes of the given instances, one a line.
running() {
    local dir file pid
    for dir in "$@"; do
        for file in "$dir"/pid/*; do
            [[ -f $file ]] || continue
            pid=$(<"$file")
            if is_ours "$pid" "$dir"; then echo "$pid"; fi
        done
    done
}

# remove D: removes the files of a stopped instance.
remove() {
    rm -rf -- "$1"
    rm -f -- "$(index_file "$1")"
    # Only after the last instance.
    rmdir -- "$index" 2>/dev/null || true
}
