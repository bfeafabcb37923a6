"""A session's listeners start one after the other; what the first one sees must not make the next one list."""

import threading

from harness.stack import RunningSession, a_stack
from kubesync.aws.tables.control.clusters import ClusterConfig
from kubesync.kubernetes.ports import ReflectorPolicy
from kubesync.kubernetes.transport.client import ClusterAccess


def test_listener_that_starts_late_resumes_although_a_window_was_recorded_before() -> None:
    with a_stack() as stack:
        stack.api.cluster.deploy("default", "web", 1)
        stack.api.cluster.expose("default", "web", {"ports": [{"port": 80}], "selector": {"app": "web"}})
        stack.add_cluster()
        first = stack.start()
        first.wait_for(stack.at_rest)  # endpoints may be listed after the record set is there
        assert first.end().clean
        annotations = {"external-dns.alpha.kubernetes.io/hostname": "www.example.com"}
        stack.api.cluster.change_service("default", "web", {"metadata": {"annotations": annotations}})
        stack.api.requests.clear()

        application = stack.application()
        plain = application.access()
        started: list[RunningSession] = []
        known = threading.Event()

        def late(config: ClusterConfig, policy: ReflectorPolicy) -> ClusterAccess:
            assert known.wait(120)
            if any(thread.name == "prod/services" for thread in threading.enumerate()):
                started[0].wait_for(lambda: started[0].saw("window", events=1))
            return plain(config, policy)

        application.access_for = late
        started.append(stack.start_application(application))
        known.set()
        started[0].wait_for(lambda: "www.example.com A" in stack.records())
        report = started[0].end()

        assert report.clean
        assert stack.api.requests.all(verb="list") == []
        assert [listener.resumed for listener in report.listeners] == [True, True]
