// The field: floor with its lines, walls, goals and boost pads.

import {
  BufferGeometry, CanvasTexture, Color, CylinderGeometry, DoubleSide, Float32BufferAttribute, Group, InstancedMesh,
  LinearMipmapNearestFilter, LineBasicMaterial, LineSegments, Matrix4, Mesh, MeshBasicMaterial, MeshLambertMaterial, PlaneGeometry, RingGeometry,
  SphereGeometry, SRGBColorSpace, Vector3,
} from "three";
import { mergeGeometries } from "three/addons/utils/BufferGeometryUtils.js";
import { BLUE, ORANGE, place, UNIT } from "./place.js";

const SIDE = 4096;
const BACK = 5120;
const NET = 6000;
const CEILING = 2044;
const CORNER = 1152;
const POST = 893;
const BAR = 643;

const TURN = 768; // radius of the corners, seen from above
const [RAMP, BACK_RAMP, ARCH] = [256, 160, 512]; // radii where walls meet the floor, at the side and at the back, and the ceiling

const OUTLINE = [
  [SIDE, -BACK + CORNER], [SIDE, 0], [SIDE, BACK - CORNER], [SIDE - CORNER, BACK], [POST, BACK], [-POST, BACK],
  [-SIDE + CORNER, BACK], [-SIDE, BACK - CORNER], [-SIDE, 0], [-SIDE, -BACK + CORNER], [-SIDE + CORNER, -BACK],
  [-POST, -BACK], [POST, -BACK], [SIDE - CORNER, -BACK],
];
const next = (list, i) => list[(i + 1) % list.length];

// Points of the walls seen from above, with their normals inward; corners are arcs of `TURN`.
const RIM = OUTLINE.flatMap(([x, y], i) => {
  const [[px, py], [qx, qy]] = [OUTLINE.at(i - 1), next(OUTLINE, i)];
  const [a, b] = [Math.atan2(py - y, x - px), Math.atan2(y - qy, qx - x)];
  const bend = Math.atan2(Math.sin(b - a), Math.cos(b - a));
  const steps = Math.abs(bend) > 0.1 ? 4 : 0;
  const far = TURN / Math.cos(bend / 2);
  const middle = a + bend / 2;
  return Array.from({ length: steps + 1 }, (_, k) => {
    const angle = steps ? a + (bend * k) / steps : a;
    const [nx, ny] = [Math.sin(angle), Math.cos(angle)];
    return steps ? { x: x + Math.sin(middle) * far - nx * TURN, y: y + Math.cos(middle) * far - ny * TURN, nx, ny, end: k % steps === 0 } : { x, y, nx, ny, end: x !== 0 && y === 0 };
  });
});
const isMouth = (p, q) => Math.abs(p.x) === POST && p.x === -q.x;
const rampOf = ({ ny }) => RAMP - (RAMP - BACK_RAMP) * Math.max(0, 3 * Math.abs(ny) - 2);

// A wall from the floor to the ceiling at a point of the rim: [distance inward, height]; above a goal it begins at the bar.
function profile(p, mouth) {
  const ramp = rampOf(p);
  const arc = Array.from({ length: 7 }, (_, k) => (k / 6) * (Math.PI / 2));
  const low = arc.map((a) => (mouth ? [0, BAR] : [ramp * (1 - Math.sin(a)), ramp * (1 - Math.cos(a))]));
  const high = arc.map((a) => [ARCH * (1 - Math.cos(a)), CEILING - ARCH * (1 - Math.sin(a))]);
  return [...low, [0, 900], ...high].map(([inward, z]) => [p.x + p.nx * inward, p.y + p.ny * inward, z]);
}

// Grass with stripes and lines, painted once; blue's half is at the bottom.
function floorTexture(dark, plain) {
  const canvas = document.createElement("canvas");
  canvas.width = 1024;
  canvas.height = 1500;
  const g = canvas.getContext("2d");
  const scale = canvas.height / (2 * NET);
  g.setTransform(scale, 0, 0, -scale, canvas.width / 2, canvas.height / 2);
  const stripes = dark ? ["#1c3a2d", "#204234"] : ["#4f9067", "#569a6f"];
  const stripe = (2 * BACK) / 16;
  for (let i = -10; i < 10; i++) {
    g.fillStyle = stripes[(i + 20) % 2];
    g.fillRect(-SIDE - 100, i * stripe, 2 * SIDE + 200, stripe + 4);
  }
  for (const [sign, colour] of [[-1, "47,123,255"], [1, "255,122,26"]]) {
    const tint = g.createLinearGradient(0, 0, 0, sign * NET);
    tint.addColorStop(0.15, `rgba(${colour},0)`);
    tint.addColorStop(1, `rgba(${colour},${dark ? 0.42 : 0.38})`);
    g.fillStyle = tint;
    g.fillRect(-SIDE - 100, sign < 0 ? -NET : 0, 2 * SIDE + 200, NET);
  }
  g.strokeStyle = dark ? "rgba(220,240,255,.5)" : "rgba(255,255,255,.85)";
  g.lineWidth = 26;
  const path = (draw) => (g.beginPath(), draw(), g.stroke());
  path(() => RIM.forEach((p) => g.lineTo(...profile(p)[0])) || g.closePath());
  path(() => (g.moveTo(-SIDE, 0), g.lineTo(SIDE, 0)));
  path(() => g.arc(0, 0, 950, 0, 7));
  g.fillStyle = g.strokeStyle;
  g.beginPath(), g.arc(0, 0, 70, 0, 7), g.fill();
  for (const sign of [-1, 1]) {
    path(() => (g.moveTo(-1700, sign * BACK), g.lineTo(-1700, sign * 3700), g.lineTo(1700, sign * 3700), g.lineTo(1700, sign * BACK)));
    path(() => (g.moveTo(-POST, sign * BACK), g.lineTo(POST, sign * BACK)));
  }
  const texture = new CanvasTexture(canvas);
  if (plain) texture.minFilter = LinearMipmapNearestFilter;
  else Object.assign(texture, { anisotropy: 4, colorSpace: SRGBColorSpace });
  return texture;
}

// Lines from pairs of points (x, y, z in uu).
function lines(points, colour, opacity) {
  const geometry = new BufferGeometry().setFromPoints(points.map((p) => place(...p)));
  return new LineSegments(geometry, new LineBasicMaterial({ color: colour, transparent: true, opacity }));
}

// Walls with ramps, glass that fades upward; seen from inside only, so that no camera is blocked.
function wallGeometry() {
  const positions = [];
  const colours = [];
  const [blue, orange, grey] = [new Color(BLUE), new Color(ORANGE), new Color(0x9fb4c8)];
  const corner = ([x, y, z]) => {
    positions.push(...place(x, y, z).toArray());
    const c = grey.clone().lerp(y < 0 ? blue : orange, Math.min(1, Math.abs(y) / BACK) ** 2);
    colours.push(c.r, c.g, c.b, 0.24 * (1 - z / CEILING) ** 1.5 + 0.03 + 0.3 * Math.max(0, 1 - z / RAMP) ** 1.5);
  };
  RIM.forEach((p, i) => {
    const q = next(RIM, i);
    const [left, right] = [p, q].map((at) => profile(at, isMouth(p, q)));
    for (let k = 1; k < left.length; k++) {
      corner(left[k - 1]), corner(right[k - 1]), corner(right[k]);
      corner(left[k - 1]), corner(right[k]), corner(left[k]);
    }
  });
  const geometry = new BufferGeometry();
  geometry.setAttribute("position", new Float32BufferAttribute(positions, 3));
  geometry.setAttribute("color", new Float32BufferAttribute(colours, 4));
  return geometry;
}

// The floor in small pieces: large ones tear where pictures are computed without a graphics card.
function floorGeometry() {
  const ys = [...RIM.map(({ y }) => y), ...Array.from({ length: 17 }, (_, k) => (k / 8 - 1) * BACK)].sort((a, b) => a - b);
  const wide = (y) => {
    const at = RIM.findIndex((p, i) => p.x > 0 && next(RIM, i).x > 0 && p.y < next(RIM, i).y && p.y <= y + 1 && y <= next(RIM, i).y + 1);
    const [p, q] = [RIM[at], next(RIM, at)];
    return p.x + ((q.x - p.x) * (y - p.y)) / (q.y - p.y);
  };
  const sheet = (rows, half) => {
    const piece = new PlaneGeometry(2, 2, 12, rows.length - 1);
    const at = piece.attributes.position;
    for (let i = 0; i < at.count; i++) {
      const y = rows[Math.floor(i / 13)];
      at.setXYZ(i, at.getX(i) * half(y) * UNIT, 0, y * UNIT);
    }
    return piece;
  };
  const rows = ys.filter((y, i) => !i || y - ys[i - 1] > 1);
  // The floors of the goals lie over the field's edge, so that there is no gap.
  const net = (sign) => sheet([0, 1, 2].map((k) => sign * (BACK - 40 + (k / 2) * (NET - BACK + 40))), () => POST);
  const geometry = mergeGeometries([sheet(rows, wide), net(-1), net(1)]);
  const { position: at, uv } = geometry.attributes;
  const across = (NET * 2 * 1024) / 1500;
  for (let i = 0; i < at.count; i++) uv.setXY(i, at.getX(i) / UNIT / across + 0.5, at.getZ(i) / UNIT / (2 * NET) + 0.5);
  return geometry;
}

function goal(sign, colour) {
  const group = new Group();
  const y = sign * BACK;
  const z = sign * NET;
  const frame = [
    [-POST, y, 0], [-POST, y, BAR], [-POST, y, BAR], [POST, y, BAR], [POST, y, BAR], [POST, y, 0],
    [-POST, y, BAR], [-POST, z, BAR], [POST, y, BAR], [POST, z, BAR], [-POST, z, BAR], [POST, z, BAR],
    [-POST, z, 0], [-POST, z, BAR], [POST, z, 0], [POST, z, BAR], [-POST, z, 0], [POST, z, 0],
    [-POST, y, 0], [-POST, z, 0], [POST, y, 0], [POST, z, 0],
  ];
  group.add(lines(frame, colour, 0.9));
  const net = [];
  for (let i = 1; i < 12; i++) {
    const x = -POST + (2 * POST * i) / 12;
    net.push([x, z, 0], [x, z, BAR], [x, y, BAR], [x, z, BAR]);
  }
  for (let i = 1; i < 6; i++) {
    const h = (BAR * i) / 6;
    const d = y + ((z - y) * i) / 6;
    net.push([-POST, z, h], [POST, z, h], [-POST, y, h], [-POST, z, h], [POST, y, h], [POST, z, h]);
    net.push([-POST, d, 0], [-POST, d, BAR], [POST, d, 0], [POST, d, BAR], [-POST, d, BAR], [POST, d, BAR]);
  }
  group.add(lines(net, colour, 0.22));
  const bars = [-POST, POST].map((x) => new CylinderGeometry(0.28, 0.28, BAR * UNIT, 8).translate(x * UNIT, (BAR / 2) * UNIT, y * UNIT));
  bars.push(new CylinderGeometry(0.28, 0.28, 2 * POST * UNIT, 8).rotateZ(Math.PI / 2).translate(0, BAR * UNIT, y * UNIT));
  group.add(new Mesh(mergeGeometries(bars), new MeshLambertMaterial({ color: colour, emissive: colour, emissiveIntensity: 0.6 })));
  return group;
}

// The light that falls on flat ground, by theme: computed once and not for every pixel, half of which are floor.
const FLOOR_LIGHT = { true: 1.12, false: 1.34 };

export class Field {
  constructor(scene, plain) {
    this.plain = plain;
    this.floor = new Mesh(floorGeometry(), new MeshBasicMaterial({ side: DoubleSide }));
    scene.add(this.floor);
    const glass = new MeshBasicMaterial({ vertexColors: true, transparent: true, depthWrite: false });
    scene.add(new Mesh(wallGeometry(), glass));
    const edges = [];
    RIM.forEach((p, i) => {
      const q = next(RIM, i);
      const [a, b] = [p, q].map((at) => profile(at, isMouth(p, q)));
      for (const k of isMouth(p, q) ? [8, 14] : [6, 8, 14]) edges.push(a[k], b[k]);
      if (p.end) for (let k = 1; k < a.length; k++) edges.push(a[k - 1], a[k]);
    });
    scene.add(lines(edges, 0x9fc4ff, 0.25));
    scene.add(goal(-1, BLUE), goal(1, ORANGE));
  }

  addPads(scene, pads) {
    const big = pads.map((pad, i) => [pad, i]).filter(([pad]) => pad[2] > 71);
    const small = pads.map((pad, i) => [pad, i]).filter(([pad]) => pad[2] <= 71);
    const flat = (geometry) => geometry.rotateX(-Math.PI / 2);
    const glow = (transparent) => new MeshBasicMaterial({ transparent, opacity: transparent ? 0.9 : 1 });
    const instanced = (geometry, list, height) => {
      const mesh = new InstancedMesh(geometry, glow(false), list.length);
      list.forEach(([pad], k) => mesh.setColorAt(k, new Color(0xffc43d)));
      mesh.frustumCulled = false;
      scene.add(mesh);
      return { mesh, list, height, spin: 0 };
    };
    this.padMeshes = [
      instanced(flat(new RingGeometry(1.5, 1.9, 32)), big, 5),
      instanced(new SphereGeometry(0.95, 14, 10), big, 150),
      instanced(flat(new RingGeometry(0.45, 0.75, 20)), small, 5),
      instanced(new CylinderGeometry(0.32, 0.32, 0.14, 16), small, 14),
    ];
    this.padsShown = "";
  }

  // Pads that are there glow; those that were taken are dim and small, and grow while they come back.
  showPads(timers, at) {
    const states = [];
    for (let i = 0; i < 34; i++) states.push(timers[at * 34 + i] > 0 ? Math.round(timers[at * 34 + i] * 4) : 0);
    const key = states.join();
    if (key === this.padsShown) return;
    this.padsShown = key;
    const matrix = new Matrix4();
    const there = new Color(0xffc43d);
    const taken = new Color(0x55503f);
    this.padMeshes.forEach(({ mesh, list, height }, kind) => {
      list.forEach(([pad, index], k) => {
        const wait = states[index] / 4;
        const ring = kind % 2 === 0;
        const size = ring || !wait ? 1 : 0.12;
        matrix.makeScale(size, size, size).setPosition(place(pad[0], pad[1], height, new Vector3()));
        mesh.setMatrixAt(k, matrix);
        mesh.setColorAt(k, wait ? taken : there);
      });
      mesh.instanceMatrix.needsUpdate = true;
      mesh.instanceColor.needsUpdate = true;
    });
  }

  setTheme(dark) {
    this.floor.material.map?.dispose();
    this.floor.material.map = floorTexture(dark, this.plain);
    this.floor.material.color.setScalar(FLOOR_LIGHT[dark]);
    this.floor.material.needsUpdate = true;
  }
}
