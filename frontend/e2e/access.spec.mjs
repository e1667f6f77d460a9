// Everybody can use it: by keyboard alone, on a phone, with a screen reader, in the dark.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { test } from "node:test";

import { HomePage, LessonPage, browserForTests } from "./pages.mjs";

const browser = browserForTests();
const axeSource = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

async function assertAccessible(page, what) {
  // The page's policy forbids foreign scripts, so it is evaluated, not added.
  await page.evaluate(axeSource);
  const { violations } = await page.evaluate(() => globalThis.axe.run());
  const found = violations.map((one) => {
    const nodes = one.nodes.slice(0, 4).map((node) => `${node.target} ${node.failureSummary}`);
    return `${one.id}: ${one.help}\n  ${nodes.join("\n  ")}`;
  });
  assert.deepEqual(found, [], what);
}

for (const colorScheme of ["light", "dark"]) {
  test(`axe finds nothing on the first page (${colorScheme})`, () =>
    browser.visit({ colorScheme }, async (page) => {
      const home = new HomePage(page);
      await home.open();
      await home.lesson("The fence").waitFor();
      await page.getByRole("button", { name: /Pause A/, disabled: false }).waitFor();
      await assertAccessible(page, "at the beginning");
      await home.play();
      await assertAccessible(page, "with a verdict");
    }));

  test(`axe finds nothing in a lesson (${colorScheme})`, () =>
    browser.visit({ colorScheme }, async (page) => {
      const lesson = new LessonPage(page);
      await lesson.open("03-the-paused-holder");
      await assertAccessible(page, "introduction");
      for (let step = 1; step <= 3; step += 1) await lesson.run();
      await lesson.next.click();
      await assertAccessible(page, "question");
      await lesson.predict(/because nothing in the write says/);
      await assertAccessible(page, "verdict");
      for (const tab of ["Source", "Transcript"]) {
        await page.getByRole("tab", { name: tab }).click();
        await assertAccessible(page, tab);
      }
      await page.getByTestId("break").click();
      await assertAccessible(page, "tray");
      await page.keyboard.press("Escape");
      await page.getByTestId("keys").click();
      await assertAccessible(page, "keys");
      await page.keyboard.press("Escape");
      await lesson.runToEnd();
      await assertAccessible(page, "debrief");
    }));
}

test("a lesson can be taken with the keyboard alone, and the focus is seen", () =>
  browser.visit({}, async (page) => {
    const lesson = new LessonPage(page);
    await lesson.open("03-the-paused-holder");
    for (let step = 1; step <= 3; step += 1) {
      await page.keyboard.press("ArrowRight");
      await page.getByText(`Step ${step} of 5`).waitFor();
      await lesson.settled();
    }
    await page.keyboard.press("ArrowRight");
    await lesson.prediction.waitFor();
    // Next leads to the question; from there Tab reaches the options.
    await page.keyboard.press("ArrowRight");
    await page.keyboard.press("Tab");
    await page.keyboard.press("ArrowDown");
    const outline = await page.evaluate(() => getComputedStyle(document.activeElement).outlineStyle);
    assert.notEqual(outline, "none");
    await page.keyboard.press("Enter");
    await lesson.settled();
    await page.locator("[data-testid=prediction][data-state=answered]").waitFor();
    await page.keyboard.press("ArrowLeft");
    assert.equal(await lesson.step(), 3);
    await page.keyboard.press("2");
    assert.equal(await lesson.step(), 2);
    await page.keyboard.press("Shift+ArrowLeft");
    assert.match(await lesson.badge.innerText(), /RECORDED/);
    await page.keyboard.press("End");
    await lesson.settled();
    await page.keyboard.press("?");
    await page.getByRole("dialog", { name: "Keys" }).waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("dialog", { name: "Keys" }).waitFor({ state: "hidden" });
    for (let presses = 0; presses < 9 && !(await lesson.debrief.isVisible()); presses += 1) {
      await page.keyboard.press("ArrowRight");
      await lesson.settled();
    }
    assert.ok(await lesson.debrief.isVisible());
  }));

test("a phone needs no sideways scrolling, and Next is in reach", () =>
  browser.visit({ viewport: { width: 390, height: 844 }, hasTouch: true }, async (page) => {
    const isWide = () =>
      page.evaluate(() => document.documentElement.scrollWidth > document.documentElement.clientWidth);
    const home = new HomePage(page);
    await home.open();
    assert.equal(await isWide(), false);
    assert.ok(await page.getByRole("button", { name: /Pause A/ }).isVisible());
    const lesson = new LessonPage(page);
    await lesson.open("03-the-paused-holder");
    assert.equal(await isWide(), false);
    await lesson.runToEnd();
    assert.equal(await isWide(), false);
    for (const tab of ["Lanes", "Tables", "Source", "Transcript", "Lesson"]) {
      await page.getByRole("tab", { name: tab }).click();
      assert.equal(await isWide(), false, tab);
    }
    const box = await lesson.next.boundingBox();
    assert.ok(box.y + box.height <= 844);
  }));

test("the transcript tells each event once, and one polite sentence goes with the cursor", () =>
  browser.visit({}, async (page) => {
    const lesson = new LessonPage(page);
    await lesson.open("03-the-paused-holder");
    await lesson.run();
    assert.equal(await page.locator("[aria-live=polite]").count(), 1);
    const spoken = await page.locator("[aria-live=polite]").innerText();
    const lines = await lesson.transcript();
    assert.ok(lines.at(-1).includes(spoken.trim().slice(0, 20)), `${lines.at(-1)} / ${spoken}`);
  }));
