# shellcheck shell=bash
# What `up` and `down` share: where things are, and how an instance is ended.
#
# An instance is a directory D:
#   D/.winconform-control-plane   says that D is ours (and of which version)
#   D/kubeconfig                  for the user: cluster-admin
#   D/pki, D/conf                 keys and certificates, the components' kubeconfigs
#   D/pid/NAME, D/log/NAME.log    one per component
#   D/etcd                        the data

cache=${XDG_CACHE_HOME:-$HOME/.cache}/winconform/control-plane
# One file per instance, so that `down` without --dir finds them all. Each
# holds the path of D; its name is a hash of that path.
index=$cache/instances
# In the order in which they are started.
# shellcheck disable=SC2034 # used in `up`
components=(etcd kube-apiserver kube-controller-manager kube-scheduler)

say() { printf 'control-plane: %s\n' "$*" >&2; }

# fail CODE MESSAGE
fail() {
    say "$2"
    exit "$1"
}

usage_error() {
    say "$1 (--help explains the usage)"
    exit 2
}

marker() { printf '%s' "$1/.winconform-control-plane"; }

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

# ended SECONDS D...: waits until nothing runs in the instances any more.
ended() {
    # The time with microseconds as an integer: without its point or comma.
    local deadline=$((${EPOCHREALTIME/[.,]/} + $1 * 1000000))
    shift
    while [[ $(running "$@") ]]; do
        ((${EPOCHREALTIME/[.,]/} < deadline)) || return 1
        sleep 0.1
    done
}

# stop D...: ends everything that runs in the instances, within 5 seconds.
stop() {
    signal TERM "$@"
    # A kube-apiserver that was told to stop finishes its requests first and
    # may take more than a minute. Nothing of it will be kept, so cut it short.
    # (return 0: in a trap, return alone would not mean success.)
    ended 3 "$@" && return 0
    signal KILL "$@"
    ended 1 "$@"
}

# signal NAME D...
signal() {
    local pids
    mapfile -t pids < <(running "${@:2}")
    # One may have ended in between; that is what is wanted.
    ((${#pids[@]} == 0)) || kill -s "$1" -- "${pids[@]}" 2>/dev/null || true
}

# remove D: the files of an instance that has been stopped.
remove() {
    rm -rf -- "$1"
    rm -f -- "$(index_file "$1")"
    # Only when it was the last one.
    rmdir -- "$index" 2>/dev/null || true
}
