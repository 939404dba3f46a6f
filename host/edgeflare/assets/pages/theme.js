"use strict";
(() => {
  const root = document.documentElement;
  const remembered = () => {
    try { return localStorage.getItem("edgeflare-theme"); } catch { return null; }
  };
  const remember = (theme) => {
    try { localStorage.setItem("edgeflare-theme", theme); } catch { /* the choice lasts as long as the page */ }
  };
  const preferred = matchMedia("(prefers-color-scheme: dark)");
  const current = () => root.dataset.theme || (preferred.matches ? "dark" : "light");
  const chosen = remembered();
  if (chosen === "dark" || chosen === "light") root.dataset.theme = chosen;
  document.addEventListener("DOMContentLoaded", () => {
    const button = document.getElementById("theme");
    const show = () => {
      const other = current() === "dark" ? "light" : "dark";
      button.textContent = other === "dark" ? "Dark" : "Light";
      button.setAttribute("aria-label", `Show the page in ${other} colours`);
    };
    button.addEventListener("click", () => {
      root.dataset.theme = current() === "dark" ? "light" : "dark";
      remember(root.dataset.theme);
      show();
    });
    preferred.addEventListener("change", show);
    button.hidden = false;
    show();
    const resized = new ResizeObserver((regions) => regions.forEach(({ target }) => {
      const cut = target.scrollWidth > target.clientWidth + 1;
      target.classList.toggle("cut", cut);
      target.previousElementSibling.hidden = !cut;
    }));
    document.querySelectorAll(".wide").forEach((region) => {
      const hint = document.createElement("p");
      hint.className = "sideways";
      hint.textContent = "Wider than the page: scroll it sideways. →";
      hint.hidden = true;
      region.before(hint);
      resized.observe(region);
    });
  });
})();
