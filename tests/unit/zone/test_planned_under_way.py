"""I1: a key that is planned again while a batch of it is under way, and closed with what the batch brought afterwards."""

from harness.deployment import Deployment


def test_i1_set_of_a_service_that_went_while_its_batch_was_under_way_is_durably_open() -> None:
    deployment = Deployment()
    deployment.start()
    seen: list[dict[str, str]] = []

    def goes() -> None:
        deployment.delete("web")
        deployment.hold(3)
        seen.append(deployment.open())

    deployment.at("batch sent", goes)
    # The session dies once its batch is closed; the next one finds the key in the queue.
    deployment.at("batch closed", deployment.kill, after=True)
    deployment.want("web", "10.0.0.1")
    deployment.pass_time(10)
    assert seen == [{}], "nothing stood in the zone, as far as was known"
    assert (deployment.sets(), list(deployment.open())) == ({"web A": ("10.0.0.1",)}, ["web"])
    deployment.pass_time(20)
    deployment.start()
    deployment.pass_time(5)
    assert (deployment.sets(), deployment.open(), dict(deployment.state("web").applied)) == ({}, {}, {})
