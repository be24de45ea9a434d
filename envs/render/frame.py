"""render_frame, at the path that the documentation gives; it is drawn in `envs.pool.frame`."""

from envs.pool.frame import render_frame as render_frame
