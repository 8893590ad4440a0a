# shellcheck shell=bash
# What instances have in common, be they control planes or real nodes. Whoever
# reads this has set $kind to what they are.
#
# An instance is a directory D with D/.winconform-KIND, which says that D is
# ours, and D/pid/NAME with the pids of what is to be ended.

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

# is_ours PID D: whether PID is a process of the instance D. Pids are used
# again by the system, so the command line has to mention D. That of a process
# that has ended but was not reaped yet is empty, so it counts as ended.
is_ours() {
    local arguments
    [[ $1 =~ ^[0-9]+$ ]] || return 1
    arguments=$({ tr '\0' '\n' <"/proc/$1/cmdline"; } 2>/dev/null) || return 1
    [[ $arguments == *"$2/"* ]]
}

# The pids of what runs in the instances given, one a line.
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

# remove D: the files of an instance that has been stopped.
remove() {
    rm -rf -- "$1"
    rm -f -- "$(index_file "$1")"
    # Only when it was the last one.
    rmdir -- "$index" 2>/dev/null || true
}
