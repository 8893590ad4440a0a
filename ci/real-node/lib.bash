# shellcheck shell=bash
# Shared by `up` and `down`: the paths of an instance, and how to end it.
#
# An instance is a directory D:
#   D/.winconform-real-node   says that D is ours; holds the number of its network
#   D/kubeconfig              for the user: cluster-admin
#   D/control-plane           an instance of ../control-plane/up
#   D/NODE                    one per node: what it has in /var/lib and /var/log
#   D/pid/NODE                the process that holds the node's namespaces
#   D/log/NODE-*.log          one per program of a node
#   D/cgroups                 the nodes' cgroups, a directory a line
#
# A node leaves nothing behind when that process ends: everything it has is in separate namespaces
# (network, mounts, processes, cgroups), which end with it.

here=$(dirname "$(realpath "${BASH_SOURCE[0]}")")
# shellcheck disable=SC2034 # used in what is read next
kind=real-node
# shellcheck source=../lib.bash
source "$(dirname "$(realpath "${BASH_SOURCE[0]}")")/../lib.bash"

# The bridge of the network with the number $1. The name of an interface has at
# most 15 characters.
bridge() { printf '%s' "winconform$1"; }

# stop D: ends everything of an instance. Ends the nodes first, and at once: when the first process
# of a process namespace ends, all of it ends, with its mounts and interfaces.
stop() {
    local pids number groups=() group deadline
    mapfile -t pids < <(running "$1")
    ((${#pids[@]} == 0)) || kill -s KILL -- "${pids[@]}" 2>/dev/null || true
    [[ ! -d $1/control-plane ]] || "$here/../control-plane/down" --dir "$1/control-plane" || return
    number=$(<"$(marker "$1")")
    [[ $number ]] || return 0
    if ip link show "$(bridge "$number")" >/dev/null 2>&1; then ip link del "$(bridge "$number")"; fi
    # Those that `up` made, which may have run in another cgroup than this process does.
    [[ ! -f $1/cgroups ]] || mapfile -t groups <"$1/cgroups"
    # The time with microseconds as an integer: without its point or comma.
    deadline=$((${EPOCHREALTIME/[.,]/} + 5000000))
    for group in "${groups[@]}"; do
        # The last of its processes may still be ending.
        until [[ ! -d $group ]] || find "$group" -depth -type d -exec rmdir {} + 2>/dev/null; do
            ((${EPOCHREALTIME/[.,]/} < deadline)) || return 1
            sleep 0.1
        done
    done
}
