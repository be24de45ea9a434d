// From the game's left-handed axes (x, y, z up; uu) to three's right-handed ones (x, y up, z; 1 = 100 uu).

import { Quaternion, Vector3 } from "three";

export const UNIT = 0.01;

export const place = (x, y, z, out = new Vector3()) => out.set(x * UNIT, z * UNIT, y * UNIT);

// Quaternion w, x, y, z; swapping two axes turns every rotation around.
export const turn = (w, x, y, z, out = new Quaternion()) => out.set(-x, -z, -y, w).normalize();

export const BLUE = 0x2f7bff;
export const ORANGE = 0xff7a1a;
export const TEAM = [BLUE, ORANGE];
