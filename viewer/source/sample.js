// The state of a game at any time, between the frames that were recorded.

import { Quaternion, Vector3 } from "three";
import { place, turn, UNIT } from "./place.js";

const FLAGS = { present: 1, on_ground: 2, is_boosting: 4, is_supersonic: 8, is_demoed: 16, touched: 32, has_flip: 64 };
const from = new Quaternion();

// Along the cubic curve with the right positions and velocities at both ends.
function between(pos, vel, a, b, k, share, seconds, out) {
  const s = share;
  const h00 = (1 + 2 * s) * (1 - s) ** 2;
  const h10 = s * (1 - s) ** 2 * seconds;
  const h01 = s * s * (3 - 2 * s);
  const h11 = s * s * (s - 1) * seconds;
  const at = (i) => h00 * pos[a + k + i] + h10 * vel[a + k + i] + h01 * pos[b + k + i] + h11 * vel[b + k + i];
  return place(at(0), at(1), at(2), out);
}

function turned(rotation, a, b, share, out) {
  turn(rotation[a], rotation[a + 1], rotation[a + 2], rotation[a + 3], from);
  turn(rotation[b], rotation[b + 1], rotation[b + 2], rotation[b + 3], out);
  return out.copy(from.slerp(out, share));
}

export class Sample {
  constructor(numCars) {
    this.ball = { position: new Vector3(), rotation: new Quaternion() };
    this.cars = Array.from({ length: numCars }, () => ({ position: new Vector3(), velocity: new Vector3(), rotation: new Quaternion() }));
  }

  // Fills in what is seen `seconds` after the game began.
  take(game, seconds) {
    const c = game.columns;
    const n = this.cars.length;
    const i = game.frameAt(seconds);
    const j = i + 1 < game.frames && !c.begins[i + 1] ? i + 1 : i;
    const span = game.seconds[j] - game.seconds[i];
    const share = span > 0 ? Math.min(1, Math.max(0, (seconds - game.seconds[i]) / span)) : 0;
    this.frame = i;
    this.kickoff = Math.hypot(...c.ball_vel.subarray(3 * i, 3 * i + 2)) < 10 && Math.hypot(...c.ball_pos.subarray(3 * i, 3 * i + 2)) < 10;
    this.seconds = seconds;
    between(c.ball_pos, c.ball_vel, 3 * i, 3 * j, 0, share, span, this.ball.position);
    this.ball.position.y = Math.max(this.ball.position.y, game.replay.ballRadius * UNIT);
    turned(c.spin, 4 * i, 4 * j, share, this.ball.rotation);
    this.cars.forEach((car, k) => {
      between(c.car_pos, c.car_vel, 3 * n * i, 3 * n * j, 3 * k, share, span, car.position);
      turned(c.car_rotation, 4 * (n * i + k), 4 * (n * j + k), share, car.rotation);
      const flags = c.car_flags[n * j + k];
      const before = c.car_flags[n * i + k];
      const v = 3 * (n * i + k);
      place(c.car_vel[v], c.car_vel[v + 1], c.car_vel[v + 2], car.velocity);
      car.speed = car.velocity.length() / UNIT;
      car.boost = c.car_boost[n * i + k] * (1 - share) + c.car_boost[n * j + k] * share;
      car.visible = (flags & FLAGS.present) > 0 && !(flags & FLAGS.is_demoed) && !(before & FLAGS.is_demoed);
      for (const name in FLAGS) car[name] = (flags & FLAGS[name]) > 0;
      car.steer = c.car_controls[8 * (n * j + k) + 1];
    });
    return this;
  }

  // Where things were during the last moments, newest first: [points of the ball, points of each car, boosting].
  history(game, seconds, count, step) {
    const c = game.columns;
    const n = this.cars.length;
    const ball = [this.ball.position.clone()];
    const cars = this.cars.map((car) => ({ points: [car.position.clone()], boosting: [car.is_boosting] }));
    const first = this.frame;
    for (let k = 1, f = first; k < count; k++) {
      const t = seconds - k * step;
      while (f > 0 && game.seconds[f] > t && !c.begins[f]) f--;
      if (game.seconds[f] > t || t < 0) break;
      const j = Math.min(f + 1, first);
      const span = game.seconds[j] - game.seconds[f];
      const share = span > 0 ? (t - game.seconds[f]) / span : 0;
      ball.push(between(c.ball_pos, c.ball_vel, 3 * f, 3 * j, 0, share, span, new Vector3()));
      cars.forEach((car, m) => {
        car.points.push(between(c.car_pos, c.car_vel, 3 * n * f, 3 * n * j, 3 * m, share, span, new Vector3()));
        const flags = c.car_flags[n * f + m];
        car.boosting.push((flags & FLAGS.is_boosting) > 0 && !(flags & FLAGS.is_demoed));
      });
    }
    return { ball, cars };
  }
}
