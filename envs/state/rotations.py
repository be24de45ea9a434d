"""Rotations: from the axes of a body to its quaternion, and back."""

import numpy as np

from envs.state.layout import Float


def quaternions(basis: Float) -> Float:
    """`[..., 4]` float32, unit quaternions w, x, y, z of bodies whose forward, right and up are `basis [..., 3, 3]`.

    The rows of `4 q q^T` follow from these; the one with the largest diagonal element is `q` up to its length (Shepperd
    1978). Of q and -q, which are the same rotation, it is the one where that element is positive.
    """
    (xx, yx, zx), (xy, yy, zy), (xz, yz, zz) = (np.moveaxis(basis[..., i, :], -1, 0) for i in range(3))
    rows = np.array(
        [
            [1 + xx + yy + zz, zy - yz, xz - zx, yx - xy],
            [zy - yz, 1 + xx - yy - zz, xy + yx, xz + zx],
            [xz - zx, xy + yx, 1 - xx + yy - zz, yz + zy],
            [yx - xy, xz + zx, yz + zy, 1 - xx - yy + zz],
        ]
    )
    largest = np.einsum("ii...->i...", rows).argmax(axis=0)
    row = np.moveaxis(np.take_along_axis(rows, largest[None, None], axis=0)[0], 0, -1)
    unit: Float = (row / np.linalg.norm(row, axis=-1, keepdims=True)).astype(np.float32)
    return unit


def bases(quaternions: Float) -> Float:
    """`[..., 3, 3]` float32, forward, right and up of bodies with quaternions `[..., 4]` w, x, y, z of any length."""
    w, x, y, z = np.moveaxis(quaternions / np.linalg.norm(quaternions, axis=-1, keepdims=True), -1, 0)
    rows = [
        [1 - 2 * (y * y + z * z), 2 * (x * y + w * z), 2 * (x * z - w * y)],
        [2 * (x * y - w * z), 1 - 2 * (x * x + z * z), 2 * (y * z + w * x)],
        [2 * (x * z + w * y), 2 * (y * z - w * x), 1 - 2 * (x * x + y * y)],
    ]
    return np.moveaxis(np.array(rows, np.float32), (0, 1), (-2, -1))
