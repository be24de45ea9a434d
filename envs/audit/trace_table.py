"""StepTable, at the path that notebooks import; defined in `envs.audit.trace`."""

from envs.audit.trace import StepTable as StepTable
