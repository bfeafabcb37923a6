"""Mechanisms that show whether there is a master: I10."""

from typing import Final

from mutation.mutant import Mutant

_CAUSES = "integration/causes/test_causes.py::"
_LOST = "integration/taking_over/test_lost_epoch.py::"
_METRICS = "unit/telemetry/test_metrics.py::"

OF_HEARTBEATS: Final[tuple[Mutant, ...]] = (
    Mutant(
        name="stand-by-oversleeps",
        without="a process that stands by sleeps no longer than until the lease expires",
        invariants="I10",
        file="session/lease_keeper.py",
        old="until if until > 0 else POLL_SECONDS",
        new="max(until, POLL_SECONDS)",
        caught_by=(
            "unit/session/test_stand_by.py::test_patient_stand_by_does_not_oversleep_a_lease_that_expires_in_a_moment",
        ),
    ),
    Mutant(
        name="below-the-fences-for-days",
        without="a session whose epoch is below the fences ends, and so does the next one",
        invariants="I10",
        file="session/session.py",
        old="                    self._keeper.take_again(error.epoch)\n",
        new="                    raise\n",
        caught_by=(
            _LOST + "test_i10_session_below_the_fences_takes_the_lease_again_above_them_and_works",
            _CAUSES + "test_i10_lost_counter_of_epochs_is_raised_and_nobody_is_woken",
        ),
    ),
    Mutant(
        name="every-session-is-a-heartbeat",
        without="a session that is ended at once counts as a master",
        invariants="I10",
        file="telemetry/metrics.py",
        old='{"MasterHeartbeat": 1} if snapshot.steady else {}',
        new='{"MasterHeartbeat": 1}',
        caught_by=(
            _METRICS + "test_beat_of_a_quiet_master_counts_once_it_has_held_its_fences_i10",
            _CAUSES + "test_i10_session_that_is_ended_within_a_minute_has_no_heartbeat_and_is_counted",
        ),
    ),
    Mutant(
        name="only-long-sessions-beat",
        without="a session of a minute has no heartbeat, because it ends before",
        invariants="I10",
        file="session/session.py",
        old="self._steady_from = min(self._clock.monotonic() + BEAT_SECONDS, self._term.deadline)",
        new="self._steady_from = self._clock.monotonic() + BEAT_SECONDS + 5.0",
        caught_by=(_CAUSES + "test_i10_sessions_of_any_length_beat_often_enough",),
    ),
    Mutant(
        name="cut-short-in-silence",
        without="sessions that are ended within their first minute count nowhere",
        invariants="I10",
        file="telemetry/metrics.py",
        old="        if report.epoch and report.code in _CUT_SHORT and not report.steady:\n",
        new="        if report.epoch < 0:\n",
        caught_by=(_METRICS + "test_i10_master_that_is_ended_within_its_first_minute_is_counted",),
    ),
    Mutant(
        name="pause-forgets-the-target",
        without="a schedule that is paused loses what it starts: retries, dead letters, its input",
        invariants="I10",
        file="kubesync_local/workplace/schedules.py",
        old="if field in fields and value is not None}",
        new='if field in ("Name", "ScheduleExpression", "FlexibleTimeWindow", "Target")}',
        caught_by=(
            "integration/cli_clusters/test_pause.py::test_pause_disables_the_schedules_and_nothing_else_of_them",
        ),
    ),
    Mutant(
        name="pause-alarms",
        without="a deployment that a person has paused raises the alarm for a missing master",
        invariants="I10",
        file="kubesync_local/commands/run/pause.py",
        old="    _notify(schedules, on=not pausing)\n",
        new="",
        caught_by=(
            "integration/cli_clusters/test_pause.py::test_pause_disables_the_schedules_and_nothing_else_of_them",
        ),
    ),
)
