"""StepTable, at the path that notebooks import; it is defined in `envs.audit.trace`."""

from envs.audit.trace import StepTable as StepTable
