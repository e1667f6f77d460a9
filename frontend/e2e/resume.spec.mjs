// Nothing is lost: not by a reload, not by a lost connection, not by an expired lab.

import assert from "node:assert/strict";
import { test } from "node:test";

import { LessonPage, baseURL, browserForTests } from "./pages.mjs";

const browser = browserForTests();

const lab = (page) =>
  page.evaluate(() => JSON.parse(localStorage.getItem("fencepost.place.04-the-fence")).lab);

test("a reload resumes in the same lab, at the same step, with the answers given", () =>
  browser.visit({}, async (page) => {
    const lesson = new LessonPage(page);
    await lesson.open("04-the-fence");
    for (let step = 1; step <= 3; step += 1) await lesson.run();
    await lesson.next.click();
    await lesson.prediction.getByRole("radio").nth(1).check();
    await lesson.prediction.getByTestId("predict").click();
    await lesson.settled();
    const [before, heading, place] = [await lab(page), await lesson.heading(), await lesson.where()];

    await page.reload();
    await lesson.ready();
    assert.equal(await lab(page), before);
    assert.equal(await lesson.heading(), heading);
    assert.equal(await lesson.where(), place);
    assert.equal(await lesson.prediction.getByRole("radio").nth(1).isChecked(), true);
    assert.match(await lesson.badge.innerText(), /LIVE/);

    // The clients know what they knew: A wakes with its old token and is fenced.
    await lesson.runToEnd();
    assert.equal(await page.locator("[data-testid=trouble]").count(), 0);
  }));

test("a lost connection is waited out, and the step goes on without loss", () =>
  browser.visit({ expectErrors: true }, async (page, context) => {
    const lesson = new LessonPage(page);
    await lesson.open("04-the-fence");
    await lesson.run();
    await context.setOffline(true);
    await lesson.lost.waitFor();
    // What is asked for now is done when there is a connection again.
    await lesson.next.click();
    await context.setOffline(false);
    await lesson.settled();
    await lesson.lost.waitFor({ state: "detached" });
    assert.equal(await lesson.step(), 2);
    await lesson.runToEnd();
    assert.equal(await page.locator("[data-testid=trouble]").count(), 0);

    const events = await log(await lab(page));
    events.forEach((event, index) => assert.equal(event.seq, index + 1));
    const shown = (await lesson.where()).match(/of (\d+)/)[1];
    assert.equal(Number(shown), events.length);
  }));

test("a proxy that loses the server's connection is no outcome, and no step is skipped", () =>
  browser.visit({ expectErrors: true }, async (page) => {
    const lesson = new LessonPage(page);
    await lesson.open("04-the-fence");
    for (let step = 1; step <= 3; step += 1) await lesson.run();
    // As a development proxy answers when the connection behind it has just been closed.
    let n_lost = 0;
    await page.route("**/api/labs/*/events", (route) => {
      if (route.request().method() !== "POST" || n_lost === 2) return route.continue();
      n_lost += 1;
      return route.fulfill({ status: 503, contentType: "text/plain", body: "restarted mid-request" });
    });
    await lesson.runToEnd();
    assert.equal(n_lost, 2);
    assert.equal(await page.locator("[data-testid=trouble]").count(), 0);
    const steps = (await log(await lab(page))).filter((event) => event.text?.startsWith("step: "));
    assert.equal(steps.length, 8);
  }));

test("an expired lab is said to be expired, and one button gives a fresh one", () =>
  browser.visit({ expectErrors: true }, async (page) => {
    const lesson = new LessonPage(page);
    await lesson.open("04-the-fence");
    await lesson.run();
    const old = await lab(page);
    await fetch(`${baseURL}/api/labs/${old}`, { method: "DELETE" });
    await page.reload();
    const trouble = page.getByTestId("trouble");
    await trouble.getByText("This lab has expired.").waitFor();
    await trouble.getByRole("button", { name: "Start in a fresh lab" }).click();
    await lesson.ready();
    await lesson.run();
    assert.notEqual(await lab(page), old);
    assert.equal(await lesson.step(), 1);
  }));

async function log(name) {
  const answer = await fetch(`${baseURL}/api/labs/${name}/events?after=0&limit=1000`);
  return (await answer.json()).events;
}
