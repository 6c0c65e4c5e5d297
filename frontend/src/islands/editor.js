export function mount(element) {
  element.dataset.mounted = "true";
}
