"""Audits of a configuration: rewarded behaviour, initial states, traces of rewards."""
