// What is seen of a game that is being played: one's own car at its newest place, everything else a moment earlier.

import { Matrix4, Quaternion, Vector3 } from "three";
import { place } from "./place.js";

const TICKS_PER_SECOND = 120;
const DELAY = 0.035; // seconds that other cars and the ball are shown late, so that there is a frame on either side
const AHEAD = 0.034; // seconds for which the own car may go on as it went, if no frame comes
const FRAMES = 16;
const JUMP = 4; // from one frame to the next; farther things have been put somewhere else
const BALL = 1;
const PADS = 16;
const CARS = 50;
const CAR = 21;
const TRAIL = [28, 0.04]; // points, seconds between them

const axis = (n, at) => new Vector3(n[at], n[at + 2], n[at + 1]);

class Body {
  constructor(n, at) {
    this.position = place(n[at], n[at + 1], n[at + 2]);
    this.rotation = new Quaternion().setFromRotationMatrix(new Matrix4().makeBasis(axis(n, at + 3), axis(n, at + 9), axis(n, at + 6)));
    this.velocity = place(n[at + 12], n[at + 13], n[at + 14]);
  }

  // At a share of the way to another body, which may be above 1.
  toward(other, share, out) {
    const far = this.position.distanceTo(other.position) > JUMP;
    out.position.lerpVectors(far ? other.position : this.position, other.position, share);
    out.rotation.slerpQuaternions(far ? other.rotation : this.rotation, other.rotation, share);
    out.velocity.copy(other.velocity);
  }
}

export class LiveGame {
  constructor(numCars, own = 0) {
    this.own = own;
    this.frames = [];
    this.columns = { pad_timers: new Float32Array(34) };
    const still = () => ({ position: new Vector3(), rotation: new Quaternion(), velocity: new Vector3() });
    this.ball = still();
    this.cars = Array.from({ length: numCars }, still);
    this.frame = 0; // of `columns`
    this.clear();
  }

  clear() {
    this.frames = [];
    this.trails = { ball: [], cars: this.cars.map(() => ({ points: [], boosting: [] })) };
    this.trailed = 0;
  }

  // Takes the numbers of a frame; a frame without time since the last one begins anew.
  push(numbers, now) {
    const ticks = numbers[0];
    if (this.frames.length && ticks <= this.frames.at(-1).ticks) this.clear();
    const cars = this.cars.map((_, k) => new Body(numbers, CARS + CAR * k));
    this.frames.push({ ticks, seconds: ticks / TICKS_PER_SECOND, numbers, cars, ball: new Body(numbers, BALL) });
    if (this.frames.length > FRAMES) this.frames.shift();
    const offset = now - ticks / TICKS_PER_SECOND;
    this.offset = Math.abs(offset - this.offset) < 0.25 ? Math.min(offset, this.offset + 0.0003) : offset;
    this.columns.pad_timers = numbers.subarray(PADS, CARS);
  }

  get ready() {
    return this.frames.length > 0;
  }

  // Fills in what is seen `now` (seconds); in a pause nothing goes on by itself.
  take(now, running) {
    const last = this.frames.at(-1);
    const seconds = running ? now - this.offset : last.seconds + DELAY;
    this.seconds = now;
    const second = Math.max(0, this.frames.findLastIndex((frame) => frame.seconds <= seconds - DELAY)) + 1;
    const to = this.frames[Math.min(second, this.frames.length - 1)];
    const from = this.frames[Math.max(0, Math.min(second, this.frames.length - 1) - 1)];
    const share = to === from ? 1 : Math.max(0, Math.min(1, (seconds - DELAY - from.seconds) / (to.seconds - from.seconds)));
    from.ball.toward(to.ball, share, this.ball);
    const before = this.frames.at(-2) ?? last;
    const ahead = running ? Math.max(0, Math.min(AHEAD, seconds - last.seconds)) : 0;
    const beyond = before === last ? 1 : 1 + ahead / (last.seconds - before.seconds);
    this.cars.forEach((car, k) => {
      const [a, b, at] = k === this.own ? [before, last, beyond] : [from, to, share];
      a.cars[k].toward(b.cars[k], at, car);
      const n = b.numbers.subarray(CARS + CAR * k + 15, CARS + CAR * (k + 1));
      [car.boost, car.steer] = n;
      [car.on_ground, car.is_boosting, car.is_supersonic, car.is_demoed] = [...n.subarray(2)].map((number) => number > 0);
      car.visible = !car.is_demoed;
    });
    if (now - this.trailed > TRAIL[1] && running) this.trail(now);
  }

  trail(now) {
    this.trailed = now;
    const { ball, cars } = this.trails;
    const add = (list, value) => list.unshift(value) > TRAIL[0] && list.pop();
    add(ball, this.ball.position.clone());
    this.cars.forEach((car, k) => {
      add(cars[k].points, car.position.clone());
      add(cars[k].boosting, car.is_boosting && car.visible);
    });
  }

  // As `Sample.history`.
  history() {
    return this.trails;
  }
}
