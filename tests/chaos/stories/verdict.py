"""Judges a world at the end of a story: the same as the undisturbed run's (I1), other people's records untouched (I3)."""

from chaos.stories.play import Play
from simulation.normal_form import differences

_MOST_LINES = 12


def judge(play: Play, wanted: dict[str, object]) -> list[str]:
    """What is not as an undisturbed run would have made it."""
    lines = differences(play.world.normal(), wanted)
    # Before its end a story has left nothing behind yet.
    standing = play.story.foreign if play.over else play.story.others
    for key, record_set in standing.items():
        if play.world.route53.records(key.zone_id).get(key) != record_set:
            lines.append(f"foreign record set {key.name} {key.type} was touched")
    return shortened(lines)


def shortened(lines: list[str]) -> list[str]:
    """As much of a verdict as a person reads."""
    return lines if len(lines) <= _MOST_LINES else [*lines[:_MOST_LINES], f"and {len(lines) - _MOST_LINES} more"]
