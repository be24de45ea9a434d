// The bar of time below the picture, with a mark for everything that happened.

const CLASSES = { goal: "goal", touch: "touch", demo: "demo" };

export const clock = (seconds) => {
  const s = Math.max(0, Math.floor(seconds));
  return `${Math.floor(s / 60)}:${String(s % 60).padStart(2, "0")}`;
};

export class Timeline {
  constructor(element, app) {
    this.app = app;
    this.bar = element;
    this.marks = element.querySelector(".marks");
    this.played = element.querySelector(".played");
    this.knob = element.querySelector(".knob");
    this.shown = "";
    const seek = (event) => {
      const box = this.bar.getBoundingClientRect();
      app.seek(((event.clientX - box.left) / box.width) * app.game.length);
    };
    element.addEventListener("pointerdown", (event) => {
      element.setPointerCapture(event.pointerId);
      seek(event);
      element.onpointermove = seek;
    });
    const release = () => (element.onpointermove = null);
    element.addEventListener("pointerup", release);
    element.addEventListener("pointercancel", release);
  }

  show() {
    const { game, seconds } = this.app;
    const share = game.length ? Math.min(1, seconds / game.length) : 0;
    this.played.style.width = this.knob.style.left = `${share * 100}%`;
    this.bar.setAttribute("aria-valuenow", seconds.toFixed(1));
    this.bar.setAttribute("aria-valuemax", game.length.toFixed(1));
    this.bar.setAttribute("aria-valuetext", clock(seconds));
    const key = `${this.app.number}/${game.events.length}/${Math.round(game.length / 2)}`;
    if (key === this.shown) return;
    this.shown = key;
    const marks = game.events.filter((event) => CLASSES[event.kind]).slice(-2000).map((event) => {
      const mark = document.createElement("i");
      mark.className = `${CLASSES[event.kind]} team${event.team}`;
      mark.style.left = `${(event.seconds / Math.max(game.length, 1e-3)) * 100}%`;
      mark.title = `${event.kind} at ${clock(event.seconds)}`;
      return mark;
    });
    this.marks.replaceChildren(...marks);
  }
}
