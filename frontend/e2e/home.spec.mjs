// The first page: a scene to break, and the course.

import assert from "node:assert/strict";
import { test } from "node:test";

import { HomePage, LessonPage, browserForTests } from "./pages.mjs";

const browser = browserForTests();

test("the paused holder destroys B's work, and the fence saves it", () =>
  browser.visit({}, async (page) => {
    const home = new HomePage(page);
    await home.open();
    assert.match(await home.play(), /B's 20 are gone/);
    assert.match(await home.badge.innerText(), /LIVE/);
    await page.getByRole("button", { name: "Again, with the fence on" }).click();
    assert.match(await home.play(), /Fenced/);
  }));

test("the course leads to its lessons and keeps how far one got", () =>
  browser.visit({}, async (page) => {
    const home = new HomePage(page);
    await home.open();
    await home.lesson("The paused holder").click();
    const lesson = new LessonPage(page);
    await lesson.ready();
    await lesson.run();
    await lesson.run();
    await page.getByRole("link", { name: "Fencepost" }).click();
    await page.getByText("step 2 of 5").waitFor();
    // What is planned is said to be planned, and leads nowhere.
    assert.equal(await page.getByRole("link", { name: "Redlock" }).count(), 0);
    await page.getByText("Redlock").waitFor();
  }));

test("without a server the same machines run in the page, and the badge says so", () =>
  browser.visit({ expectErrors: true }, async (page) => {
    await page.route("**/api/**", (route) => route.abort());
    const home = new HomePage(page);
    await home.open();
    assert.match(await home.play(), /B's 20 are gone/);
    assert.match(await home.badge.innerText(), /SIMULATED/);
    const lesson = new LessonPage(page);
    await lesson.open("03-the-paused-holder");
    await lesson.runToEnd();
    assert.match(await lesson.badge.innerText(), /SIMULATED/);
  }));

test("an address that leads nowhere says so", () =>
  browser.visit({ expectErrors: true }, async (page) => {
    await page.goto("/lessons/99-nothing");
    await page.getByRole("heading", { name: /no lesson of this name/ }).waitFor();
    await page.goto("/nowhere");
    await page.getByRole("heading", { name: /nothing at this address/ }).waitFor();
  }));
