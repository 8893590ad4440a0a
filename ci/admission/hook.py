#!/usr/bin/env python3
"""An admission webhook that changes or refuses pods, as webhooks of production clusters do.

    hook.py CERTIFICATE KEY

Serves https on a free port of 127.0.0.1, and prints the port. The path of a request names what is done;
pods, and the pod templates of workloads, are treated alike. Changes are JSON patches.
"""
import base64, http.server, itertools, json, random, ssl, sys, time

count = itertools.count(1)
chance = random.Random(1)
HOSTILE = "warning \x1b[31m \u202e ]]> end"


def template(object):
    """Where the pod's spec is, as a JSON pointer, and the spec."""
    for path in ("/spec/jobTemplate/spec/template/spec", "/spec/template/spec", "/template/spec", "/spec"):
        at = object
        for part in path.split("/")[1:]:
            at = (at or {}).get(part)
        if at and "containers" in at:
            return path, at
    return "/spec", {"containers": []}


def add(path, value):
    return {"op": "add", "path": path, "value": value}


def env(at, spec):
    for list in ("containers", "initContainers"):
        for index, container in enumerate(spec.get(list) or []):
            variable = {"name": "HTTP_PROXY", "value": "http://proxy:3128"}
            whole = container.get("env") is None
            yield add(f"{at}/{list}/{index}/env" + ("" if whole else "/-"), [variable] if whole else variable)


def toleration(at, spec):
    own = {"key": "team", "operator": "Exists"}
    yield add(f"{at}/tolerations", (spec.get("tolerations") or []) + [own])


def pull_always(at, spec):
    for list in ("containers", "initContainers"):
        for index, _ in enumerate(spec.get(list) or []):
            yield add(f"{at}/{list}/{index}/imagePullPolicy", "Always")


def sidecar(index):
    def change(at, spec):
        for list in ("initContainers", "containers"):
            own = {"name": f"sidecar-{list.lower()}", "image": "example/sidecar:1"}
            if spec.get(list) is None:
                yield add(f"{at}/{list}", [own])
            else:
                yield add(f"{at}/{list}/{index}", own)

    return change


def strip(*fields):
    def change(at, spec):
        for field in fields:
            place = spec
            for part in field.split("/"):
                place = (place or {}).get(part)
            if place is not None:
                yield {"op": "remove", "path": f"{at}/{field}"}

    return change


def seccomp(at, spec):
    context = dict(spec.get("securityContext") or {}, seccompProfile={"type": "RuntimeDefault"})
    yield add(f"{at}/securityContext", context)


def at_random(at, spec):
    changes = (env, toleration, sidecar(0), sidecar("-"), strip("os"), lambda *_: [])
    yield from chance.choice(changes)(at, spec)


CHANGES = {
    "env": env,
    "toleration": toleration,
    "pull-always": pull_always,
    "sidecar-first": sidecar(0),
    "sidecar-last": sidecar("-"),
    "strip-user": strip("securityContext/runAsUser"),
    "strip-os": strip("os"),
    "harden": seccomp,
    "random": at_random,
}


def is_windows(spec):
    return (spec.get("os") or {}).get("name") == "windows"


def refusal(mode, at, spec):
    """Code, message and causes of a refusal; none if it is let in."""
    field = at[1:].replace("/", ".") + ".hostPID"
    if mode == "deny-third" and next(count) % 3 == 0:
        return 403, "image signature could not be verified", []
    if mode == "deny-third-422" and next(count) % 3 == 0:
        cause = {"reason": "FieldValueForbidden", "field": "spec.priority", "message": "Forbidden: not here"}
        return 422, "spec.priority: Forbidden: not here", [cause]
    if mode == "deny-host-pid" and is_windows(spec) and spec.get("hostPID"):
        return 403, "hostPID is not for pods of this cluster", []
    if mode == "deny-other-host-pid" and not is_windows(spec) and spec.get("hostPID"):
        return 403, "hostPID is not for pods of this cluster", []
    if mode == "as-server" and is_windows(spec) and spec.get("hostPID"):
        words = "Forbidden: cannot be set for a windows pod"
        cause = {"reason": "FieldValueForbidden", "field": field, "message": words}
        return 422, f'Pod "a" is invalid: {field}: {words}', [cause]
    if mode == "hostile" and next(count) % 2 == 0:
        return 403, HOSTILE, []
    return None


class Hook(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_POST(self):
        review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        mode = self.path.split("?")[0].strip("/")
        request = review["request"]
        response = {"uid": request["uid"], "allowed": True}
        at, spec = template(request["object"])
        if mode == "slow":
            time.sleep(1)  # It plays a slow webhook: nothing waits for anything here
        if mode == "fails" and next(count) % 3 == 0:
            return self.answer(500, b"failed")
        if mode in CHANGES and request["operation"] == "CREATE":
            patch = json.dumps(list(CHANGES[mode](at, spec))).encode()
            response |= {"patchType": "JSONPatch", "patch": base64.b64encode(patch).decode()}
        if mode == "hostile":
            response["warnings"] = [HOSTILE]
        if refused := refusal(mode, at, spec):
            code, message, causes = refused
            status = {"code": code, "message": message, "details": {"causes": causes}}
            response |= {"allowed": False, "status": status}
        review = {"apiVersion": review["apiVersion"], "kind": review["kind"], "response": response}
        self.answer(200, json.dumps(review).encode())

    def answer(self, code, body):
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hook)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(*sys.argv[1:])
server.socket = context.wrap_socket(server.socket, server_side=True)
print(server.server_port, flush=True)
server.serve_forever()
