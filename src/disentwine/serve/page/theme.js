// Before the first paint, so that a chosen theme does not flash; without a choice the system decides.
{
  const root = document.documentElement;
  const stored = localStorage.getItem("disentwine-theme");
  if (stored === "light" || stored === "dark") root.dataset.theme = stored;
}
