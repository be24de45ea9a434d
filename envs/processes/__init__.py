"""ProcessPool: environments in worker processes that share memory with this one."""
