"""Many processes that train as one."""
