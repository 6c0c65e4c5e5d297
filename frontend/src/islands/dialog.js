// A dialog that the server sent: it is opened when it comes, and gone from the page when it is closed.
//
// The focus goes back to where it was. What was pressed in a menu is out of sight by then: its button stands for it.
function placeOf(element) {
  const menu = element?.closest("[popover]");
  if (!menu) return element;
  return document.getElementById(menu.dataset.opener) ?? document.querySelector(`[popovertarget="${menu.id}"]`);
}

export function mount(dialog) {
  const before = placeOf(document.activeElement);
  const goBack = () => {
    if (document.activeElement === document.body && before?.isConnected) before.focus();
  };
  const closed = () => {
    dialog.remove();
    goBack();
  };
  dialog.addEventListener("close", closed);
  if (!dialog.open) dialog.showModal();
  return () => {
    dialog.removeEventListener("close", closed);
    goBack();
  };
}
