// Sets the theme that a person chose on this browser before anything is painted.
try {
  const chosen = localStorage.getItem("ziggurat.theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
} catch {
  // Storage may be forbidden; the theme of the system is good then.
}
