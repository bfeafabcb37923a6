"""Who waits for room in a namespace gets it in turn: also if a session dies, many go at once, or some never fit (I9)."""

from integration.names.test_caps_of_a_namespace import capped, over, service, stored


def test_i9_key_that_goes_makes_up_for_a_session_that_died_before_it_told_who_waits() -> None:
    deployment = capped(max_names_per_namespace=5)
    deployment.start()
    deployment.pass_time(4.0)
    deployment.apply("a", service("a0.example.com", "a1.example.com", "a2.example.com"))
    deployment.apply("b", service("b.example.com"))
    deployment.apply("c", service("c.example.com"))
    deployment.pass_time(4.0)
    deployment.apply("late", service("late.example.com", created=2))
    deployment.pass_time(204.0)
    assert over(deployment) == ["shop/late"]

    deployment.at("batch closed", deployment.kill, after=True)
    deployment.delete("a")
    deployment.pass_time(10.0)
    assert (stored(deployment, "asked"), over(deployment)) == (2, ["shop/late"])
    deployment.pass_time(120.0)
    deployment.start()
    deployment.pass_time(40.0)
    deployment.delete("b")
    deployment.pass_time(20.0)
    assert over(deployment) == []
    assert "late.example.com" in deployment.claims()
    deployment.close()


def test_i9_all_that_wait_come_where_many_names_go_at_once() -> None:
    deployment = capped(max_names_per_namespace=200)
    deployment.start()
    deployment.pass_time(4.0)
    deployment.route53.let_through(0)  # so the names go without a batch, in few transactions
    for number in range(200):
        deployment.apply(f"a{number:03}", service(f"a{number:03}.example.com"))
    deployment.pass_time(30.0)
    for number in range(120):
        deployment.apply(f"w{number:03}", service(f"w{number:03}.example.com", created=2))
    deployment.pass_time(30.0)
    assert (len(over(deployment)), stored(deployment, "asked")) == (120, 200)

    for number in range(200):
        deployment.delete(f"a{number:03}")
    deployment.pass_time(30.0)
    deployment.route53.let_through(None)
    deployment.pass_time(120.0)
    assert (over(deployment), stored(deployment, "asked")) == ([], 120)
    deployment.close()


def test_i9_fifty_that_never_fit_keep_nobody_from_room() -> None:
    deployment = capped(max_record_sets_per_namespace=5)
    deployment.start()
    deployment.pass_time(4.0)
    for number in range(5):
        deployment.apply(f"s{number}", service())
    deployment.pass_time(6.0)
    for number in range(50):  # six sets each
        names = (f"a{number:02}-{each}.example.com" for each in range(5))
        deployment.apply(f"a{number:02}", service(*names, created=2))
    deployment.apply("z", service(created=3))
    deployment.pass_time(20.0)
    assert len(over(deployment)) == 51
    for number in range(3):
        deployment.delete(f"s{number}")
        deployment.pass_time(10.0)
    assert len(over(deployment)) == 50
    assert "shop/z" not in over(deployment)
    deployment.close()
