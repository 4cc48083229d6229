"use strict";
(() => {
  const tools = document.querySelector(".tools");
  const search = tools.querySelector("input[type=search]");
  const boxes = [...tools.querySelectorAll("input[type=checkbox]")];
  const shown = tools.querySelector("output");
  // What is matched is the text a reader sees, and the full name in `title`.
  const items = [...document.querySelectorAll("[data-find]")].map((element) => ({
    element,
    text: (element.textContent + " " + element.title).toLowerCase(),
    outcomes: element.dataset.find.split(" "),
  }));
  const tiles = [...document.querySelectorAll(".tile")];
  const suites = [...document.querySelectorAll(".suite")];

  const filter = () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const wanted = new Set(boxes.filter((box) => box.checked).map((box) => box.value));
    for (const item of items) {
      const fits = item.outcomes.some((outcome) => wanted.has(outcome)) &&
        words.every((word) => item.text.includes(word));
      item.element.classList.toggle("none", !fits);
    }
    // A clause is shown with each of its cases that is.
    let count = 0;
    for (const tile of tiles) {
      const told = [...tile.querySelectorAll(".dot")].some((dot) => {
        const target = document.getElementById(dot.hash.slice(1));
        return target && target.matches("[data-find]:not(.none)");
      });
      if (told) tile.classList.remove("none");
      if (!tile.classList.contains("none")) count += 1;
    }
    // A list of which nothing is left has nothing to say.
    for (const list of document.querySelectorAll(".unjudged")) {
      list.closest("details").classList.toggle("none", !list.querySelector("li:not(.none)"));
    }
    for (const suite of suites) {
      suite.classList.toggle("none", !suite.querySelector("[data-find]:not(.none)"));
    }
    shown.value = count + (count === 1 ? " clause shown" : " clauses shown");
  };

  // A link to a case shows the case, whatever is closed or filtered.
  const follow = () => {
    const target = document.getElementById(location.hash.slice(1));
    if (!target) return;
    if (target.closest(".none")) {
      search.value = "";
      for (const box of boxes) box.checked = true;
      filter();
    }
    for (let at = target; at; at = at.parentElement) if (at.tagName === "DETAILS") at.open = true;
    target.scrollIntoView();
  };

  search.addEventListener("input", filter);
  for (const box of boxes) box.addEventListener("change", filter);
  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && event.target.tagName !== "INPUT") {
      event.preventDefault();
      search.focus();
    } else if (event.key === "Escape" && event.target === search) {
      search.value = "";
      filter();
    }
  });
  document.addEventListener("click", (event) => {
    const button = event.target.closest("button[data-do]");
    if (!button) return;
    if (button.dataset.do === "copy") {
      const line = button.parentElement.querySelector("pre");
      getSelection().selectAllChildren(line);
      if (navigator.clipboard) {
        navigator.clipboard.writeText(line.textContent).then(
          () => { button.textContent = "Copied"; },
          () => { button.textContent = "Selected"; });
      }
    } else {
      const open = button.dataset.do === "open";
      for (const story of document.querySelectorAll(".story")) story.open = open;
    }
  });
  addEventListener("hashchange", follow);
  tools.hidden = false;
  filter();
  follow();
})();
