// Masks over images: one slider sets the opacity of all of them, boxes take classes out, by their color.
//
//   <div data-island="masks"> <div data-mask-controls hidden> <input type="range" data-mask-opacity>
//     <input type="checkbox" data-mask-color="#804080"> … </div>
//     <span class="overlay"> … <img data-mask src="…"> <span class="mask-wait" data-late="…">waiting …</span></span> … </div>
//
// `is-drawn` on an overlay says that its mask is here; where it cannot come, the text that waits becomes that of `data-late`.
//
// Images come from this host, so that a canvas may read them. Without the script all classes are shown, half clear.
export function mount(element) {
  const controls = element.querySelector("[data-mask-controls]");
  const opacity = element.querySelector("[data-mask-opacity]");
  const boxes = [...element.querySelectorAll("[data-mask-color]")];
  const masks = [...element.querySelectorAll("img[data-mask]")];
  if (controls) controls.hidden = false;

  const setOpacity = () => masks.forEach((mask) => ((mask.drawn ?? mask).style.opacity = Number(opacity.value) / 100));

  const told = (mask) => {
    if (mask.complete && mask.naturalWidth) mask.closest(".overlay")?.classList.add("is-drawn");
  };
  const failed = (event) => {
    const text = event.target.matches?.("img[data-mask]") && event.target.parentElement.querySelector(".mask-wait");
    if (text) text.textContent = text.dataset.late;
  };

  const draw = (mask) => {
    told(mask);
    if (!mask.complete || !mask.naturalWidth) return;
    const hidden = new Set(boxes.filter((box) => !box.checked).map((box) => parseInt(box.dataset.maskColor.slice(1), 16)));
    if (!hidden.size && !mask.drawn) return;
    if (!mask.drawn) {
      mask.drawn = document.createElement("canvas");
      mask.drawn.className = mask.className;
      mask.drawn.width = mask.naturalWidth;
      mask.drawn.height = mask.naturalHeight;
      mask.drawn.style.opacity = mask.style.opacity;
      mask.after(mask.drawn);
      mask.classList.add("replaced");
    }
    const context = mask.drawn.getContext("2d", { willReadFrequently: true });
    context.clearRect(0, 0, mask.drawn.width, mask.drawn.height);
    context.drawImage(mask, 0, 0);
    const image = context.getImageData(0, 0, mask.drawn.width, mask.drawn.height);
    const data = image.data;
    for (let at = 0; at < data.length; at += 4) {
      if (hidden.has((data[at] << 16) | (data[at + 1] << 8) | data[at + 2])) data[at + 3] = 0;
    }
    context.putImageData(image, 0, 0);
  };

  const changed = () => masks.forEach(draw);
  const loaded = (event) => {
    if (event.target.matches?.("img[data-mask]")) draw(event.target);
  };
  opacity?.addEventListener("input", setOpacity);
  boxes.forEach((box) => box.addEventListener("change", changed));
  element.addEventListener("load", loaded, true); // images that come while one scrolls
  element.addEventListener("error", failed, true);
  masks.forEach(told);
  if (opacity) setOpacity();
  return () => {
    opacity?.removeEventListener("input", setOpacity);
    boxes.forEach((box) => box.removeEventListener("change", changed));
    element.removeEventListener("load", loaded, true);
    element.removeEventListener("error", failed, true);
  };
}
