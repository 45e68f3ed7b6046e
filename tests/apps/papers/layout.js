// What runs into what on a page: `layout()` returns a sentence for each word, line or box that is in another's place or cut off.
(() => {
  const found = [];
  const meet = (a, b, by) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > by && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > by;
  const open = element => element.checkVisibility({contentVisibilityAuto: true, visibilityProperty: true});

  // Words of the page: each run of text within the screen and within the boxes that cut it off, and clear of every other.
  const lines = [];
  const walker = document.createTreeWalker(document.querySelector("main"), NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode, parent = node.parentElement;
    if (!node.data.trim() || parent.closest("svg") || !open(parent)) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    for (const box of range.getClientRects()) {
      if (box.width < 1) continue;
      const words = node.data.trim().slice(0, 40);
      if (box.left < -0.5 || box.right > innerWidth + 0.5) found.push(`beyond the screen: ${words}`);
      const cell = parent.closest("td, th, dd, dt, li, p, summary, pre")?.getBoundingClientRect();
      if (cell && (box.left < cell.left - 1 || box.right > cell.right + 1)) found.push(`out of its box: ${words}`);
      lines.push([box, words]);
    }
  }
  lines.sort((a, b) => a[0].top - b[0].top);
  lines.forEach(([box, words], index) => {
    for (let next = index + 1; next < lines.length && lines[next][0].top < box.bottom - 3; next++)
      if (meet(box, lines[next][0], 3)) found.push(`words on words: ${words} | ${lines[next][1]}`);
  });
  for (const element of document.body.querySelectorAll("*"))
    if (!element.closest("svg") && open(element) && getComputedStyle(element).overflowX !== "visible" && element.scrollWidth > element.clientWidth + 1)
      found.push(`cut off or to be scrolled: ${element.tagName} ${element.className}`);

  // Labels of pictures: inside the picture, clear of one another and of every line, bar and mark.
  document.querySelectorAll("figure svg").forEach((drawing, number) => {
    if (!open(drawing)) return;
    const whole = drawing.getBoundingClientRect();
    const words = group => [...group.childNodes].filter(node => node.nodeType === Node.COMMENT_NODE).map(node => node.data.trim()).join(" ");
    const labels = [...drawing.querySelectorAll("g[id*='text_']")].map(group => [group.getBoundingClientRect(), words(group)]).filter(([box]) => box.width);
    const name = `picture ${number}`;
    labels.forEach(([box, label], index) => {
      if (box.left < whole.left || box.right > whole.right || box.top < whole.top || box.bottom > whole.bottom) found.push(`${name}, cut off: ${label}`);
      for (const [other, its] of labels.slice(index + 1)) if (meet(box, other, 0.5)) found.push(`${name}, labels: ${label} | ${its}`);
    });
    const hits = (points, what) => {
      for (const [box, label] of labels)
        if (points.some(([x, y]) => x > box.left + 0.5 && x < box.right - 0.5 && y > box.top + 0.5 && y < box.bottom - 0.5)) found.push(`${name}, ${what}: ${label}`);
    };
    for (const shape of drawing.querySelectorAll("path, use, image")) {
      if (shape.closest("defs, clipPath, g[id*='text_']")) continue;
      const style = getComputedStyle(shape), box = shape.getBoundingClientRect(), clip = shape.getAttribute("clip-path");
      const frame = clip ? document.querySelector(clip.slice(4, -1)).firstElementChild : null;
      const matrix = shape.getScreenCTM();
      const limits = frame && ["x", "y", "width", "height"].map(key => frame[key].baseVal.value);
      const visible = (x, y) => !limits || (x >= limits[0] && x <= limits[0] + limits[2] && y >= limits[1] && y <= limits[1] + limits[3]);
      const white = style.fill === "none" || style.fill === "rgb(255, 255, 255)" || style.fillOpacity === "0";
      if (shape.tagName === "path" && style.stroke !== "none") {
        const length = shape.getTotalLength(), steps = Math.min(4000, Math.ceil(length * matrix.a));
        const points = [];
        for (let step = 0; step <= steps; step++) {
          const point = shape.getPointAtLength(length * step / Math.max(1, steps));
          if (visible(point.x, point.y)) points.push([point.x * matrix.a + matrix.e, point.y * matrix.d + matrix.f]);
        }
        hits(points, `line ${shape.parentElement.id}`);
      }
      if (shape.tagName === "use" && !shape.closest("g[id*='tick']")) hits([[(box.left + box.right) / 2, (box.top + box.bottom) / 2]], "mark");
      if (shape.tagName === "image" || (shape.tagName === "path" && !white && shape.closest("g[id*='patch_']") && !limits))
        for (const [other, label] of labels) if (meet(box, other, 0.5)) found.push(`${name}, area: ${label}`);
      if (shape.tagName === "path" && !white && limits && shape.closest("g[id*='patch_']"))
        for (const [other, label] of labels) if (meet(box, other, 0.5) && other.bottom > box.top + 1) found.push(`${name}, bar: ${label}`);
    }
  });
  return [...new Set(found)];
})()
