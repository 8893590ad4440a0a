# shellcheck shell=bash
# Shared by `up` and `down`: the paths of an instance, and how to end it.
#
# An instance is a directory D:
#   D/.winconform-control-plane   says that D is ours (and of which version)
#   D/kubeconfig                  for the user: cluster-admin
#   D/pki, D/conf                 keys and certificates, the components' kubeconfigs
#   D/pid/NAME, D/log/NAME.log    one per component
#   D/etcd                        the data

# shellcheck disable=SC2034 # used in what is read next
kind=control-plane
# shellcheck source=../lib.bash
source "$(dirname "$(realpath "${BASH_SOURCE[0]}")")/../lib.bash"
# In the order in which they are started.
# shellcheck disable=SC2034 # used in `up`
components=(etcd kube-apiserver kube-controller-manager kube-scheduler)

# ended SECONDS D...: waits until no process of the instances runs any more.
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
    # After SIGTERM a kube-apiserver finishes its requests, which may take more than a minute.
    # Nothing of it is kept, so kill it. (return 0: in a trap, return alone would not mean success.)
    ended 3 "$@" && return 0
    signal KILL "$@"
    ended 1 "$@"
}

# signal NAME D...
signal() {
    local pids
    mapfile -t pids < <(running "${@:2}")
    # One may have ended in between, which is fine.
    ((${#pids[@]} == 0)) || kill -s "$1" -- "${pids[@]}" 2>/dev/null || true
}
