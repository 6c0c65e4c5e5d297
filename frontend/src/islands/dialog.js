// A dialog that the server sent: it is opened when it comes, and gone from the page when it is closed.
export function mount(dialog) {
  const before = document.activeElement;
  const closed = () => dialog.remove();
  dialog.addEventListener("close", closed);
  if (!dialog.open) dialog.showModal();
  return () => {
    dialog.removeEventListener("close", closed);
    if (document.activeElement === document.body && before?.isConnected) before.focus();
  };
}
