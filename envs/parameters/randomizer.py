"""ParameterRandomizer: which parameters of an environment are drawn anew, from what and how often."""

from collections.abc import Mapping

from envs.checks import check_part, whole_number
from envs.parameters.samplers import Sampler


class ParameterRandomizer:
    """Environment parameter randomisation as in Unity's ML-Agents, for every arena (or sub-environment) on its own.

    These are settings only; every environment draws for itself. New values begin with an episode. ML-Agents resets its
    environment when `resampling_interval` has passed; here the running episode is played to its end first.
    """

    def __init__(self, samplers: Mapping[str, Sampler], resampling_interval: int | None = None) -> None:
        """Takes the samplers.

        Args:
            samplers: Parameter -> sampler; of a pool the parameters are those of `envs.parameters.PARAMETERS`, of a
                Gymnasium environment its own numbers.
            resampling_interval: Steps of an arena after which its next episode gets new values. Default: every episode.

        Raises:
            ValueError: An interval that cannot work. What the environment does not have, it refuses itself.
            TypeError: A sampler is none.
        """
        for name, sampler in samplers.items():
            check_part("ParameterRandomizer", f"the sampler of {name}", sampler, Sampler)
        if resampling_interval is not None:
            whole_number("ParameterRandomizer", "resampling_interval", resampling_interval)
        self.samplers, self.resampling_interval = dict(samplers), resampling_interval
