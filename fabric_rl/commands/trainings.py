"""The former place of `fabric_rl.sweeps.trainings`."""

from fabric_rl.sweeps.trainings import Trainings as Trainings
from fabric_rl.sweeps.trainings import done as done
from fabric_rl.sweeps.trainings import seeds_of as seeds_of
from fabric_rl.sweeps.trainings import settings_of as settings_of
