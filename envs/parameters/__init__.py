"""Parameters of the physics that change from episode to episode: what there is, how it is drawn, how it gets there."""

from envs.parameters.arenas import TunableArenas
from envs.parameters.catalogue import PARAMETERS, Parameter
from envs.parameters.live import LiveParameters
from envs.parameters.randomizer import ParameterRandomizer
from envs.parameters.samplers import Constant, Gaussian, MultirangeUniform, Sampler, Uniform

__all__ = [
    "PARAMETERS",
    "Constant",
    "Gaussian",
    "LiveParameters",
    "MultirangeUniform",
    "Parameter",
    "ParameterRandomizer",
    "Sampler",
    "TunableArenas",
    "Uniform",
]
