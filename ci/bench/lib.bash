# shellcheck shell=bash
# A separate control plane with simulated nodes, for benches. Source it with $work, a new folder,
# $simulator, empty, and $WINCONFORM, the program; call `end` at the end.

: "${work:?}"

# start_control_plane : sets and exports KUBECONFIG
start_control_plane() {
    KUBECONFIG=$(ci/control-plane/up --dir "$work/control-plane")
    export KUBECONFIG
}

# join TOPOLOGY SPEED [ARGUMENT...] : joins the nodes of a file, and waits until all have joined
join() {
    : >"$work/simulator.log"
    "$WINCONFORM" simulate --join "$KUBECONFIG" --topology "$1" --speed "$2" "${@:3}" \
        >"$work/simulator.log" 2>&1 &
    simulator=$!
    # tail ends with the simulator, grep with the line
    grep -q -m1 joined <(tail -n +1 -f --pid="$simulator" "$work/simulator.log") || {
        echo "the simulated nodes did not join: $(cat "$work/simulator.log")" >&2
        return 1
    }
}

# leave : lets the nodes leave
leave() {
    [[ $simulator ]] || return 0
    kill -INT "$simulator" 2>/dev/null || true
    wait "$simulator" || true
    simulator=
}

end() {
    leave
    [[ ! -e $work/control-plane ]] || ci/control-plane/down --dir "$work/control-plane" >/dev/null
    rm -rf -- "$work"
}
