"""The former place of the `lightning` program, which older installations start."""

from fabric_rl.cli.lightning_run_model import lightning as lightning
