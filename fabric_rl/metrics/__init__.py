"""Metrics and log messages: their files, loggers, console and timers."""
