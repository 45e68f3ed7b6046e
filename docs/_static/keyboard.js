// What is scrolled sideways takes the focus of a keyboard, whose arrows then scroll it.
addEventListener("load", () => {
  for (const box of document.querySelectorAll("pre, .table-wrapper")) if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
});
