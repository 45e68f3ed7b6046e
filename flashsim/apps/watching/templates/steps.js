// A picture in steps: a slider over frames of rectangles and texts. Jupyter calls `render` (anywidget), a page of its own calls `draw`.

const SVG = "http://www.w3.org/2000/svg";

function make(name, parent, properties = {}) {
  return parent.appendChild(Object.assign(document.createElement(name), properties));
}

// The shapes of a frame: those of the frame before, but for what has changed.
function shapesOf(frames, number) {
  const shapes = [];
  for (const frame of frames.slice(0, number + 1)) {
    shapes.length = frame.length;
    for (const [place, shape] of frame.changes) shapes[place] = shape;
  }
  return shapes;
}

function paint(svg, shapes) {
  svg.replaceChildren(...shapes.map(([x, y, width, height, kind, text]) => {
    const shape = document.createElementNS(SVG, kind === "text" ? "text" : "rect");
    const values = kind === "text" ? { x, y } : { x, y, width, height, class: kind };
    for (const [name, value] of Object.entries(values)) shape.setAttribute(name, value);
    if (kind === "text") shape.textContent = text;
    else if (text) shape.appendChild(document.createElementNS(SVG, "title")).textContent = text;
    return shape;
  }));
}

function draw(root, picture, number = picture.still, changed = () => {}) {
  const last = picture.frames.length - 1;
  root.classList.add("flashsim-steps");
  const controls = make("div", root, { className: "controls" });
  const previous = make("button", controls, { type: "button", textContent: "Previous" });
  const play = make("button", controls, { type: "button", textContent: "Play" });
  const next = make("button", controls, { type: "button", textContent: "Next" });
  const slider = make("input", controls, { type: "range", min: 0, max: last, value: number });
  slider.setAttribute("aria-label", `Step of ${picture.title}`);
  const place = make("span", controls);
  const caption = make("p", root, { className: "caption" });
  caption.setAttribute("aria-live", "polite");
  const pane = make("div", root, { className: "picture", tabIndex: 0 });
  pane.setAttribute("role", "group");
  pane.setAttribute("aria-label", picture.title);
  const svg = pane.appendChild(document.createElementNS(SVG, "svg"));
  svg.setAttribute("viewBox", `0 0 ${picture.width} ${picture.height}`);
  svg.setAttribute("role", "img");
  const detail = make("p", root, { className: "detail" });
  let timer = null;

  function show(wanted) {
    number = Math.min(last, Math.max(0, wanted));
    slider.value = number;
    slider.setAttribute("aria-valuetext", `step ${number} of ${last}: ${picture.frames[number].caption}`);
    place.textContent = `${number} / ${last}`;
    caption.textContent = picture.frames[number].caption;
    svg.setAttribute("aria-label", caption.textContent);
    detail.textContent = "";
    paint(svg, shapesOf(picture.frames, number));
    changed(number);
  }

  function stop() {
    clearInterval(timer);
    timer = null;
    play.textContent = "Play";
  }

  function tick() {
    if (number < last && root.isConnected) show(number + 1);
    else stop();
  }

  function toggle() {
    if (timer !== null) return stop();
    if (number === last) show(0);
    timer = setInterval(tick, 400);
    play.textContent = "Pause";
  }

  previous.onclick = () => show(number - 1);
  next.onclick = () => show(number + 1);
  play.onclick = toggle;
  slider.oninput = () => show(Number(slider.value));
  // The slider has its own arrow keys; these are for buttons. Jupyter's own keys are not to see them.
  root.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!step || event.ctrlKey || event.altKey || event.metaKey) return;
    event.stopPropagation();
    if (event.target === slider || event.target === pane) return;
    event.preventDefault();
    show(number + step);
  });
  svg.onpointerover = (event) => { detail.textContent = event.target.querySelector?.("title")?.textContent ?? ""; };
  show(number);
  return { show, stop };
}

function render({ model, el }) {
  const changed = (number) => { model.set("number", number); model.save_changes(); };
  const steps = draw(el.appendChild(document.createElement("div")), model.get("picture"), model.get("number"), changed);
  const follow = () => steps.show(model.get("number"));
  model.on("change:number", follow);
  return () => { model.off("change:number", follow); steps.stop(); };
}

export default { render };
