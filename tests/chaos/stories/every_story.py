"""The stories that faults are played over."""

from collections.abc import Mapping
from typing import Final

from chaos.stories import requests_story, story
from chaos.stories.steps import Story

CHANGES: Final = story.STORY.name
REQUESTS: Final = requests_story.STORY.name
STORIES: Final[Mapping[str, Story]] = {each.name: each for each in (story.STORY, requests_story.STORY)}
