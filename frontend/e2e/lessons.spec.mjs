// Lessons 3, 4 and 6 from start to end, the way a person takes them.

import assert from "node:assert/strict";
import { test } from "node:test";

import { LessonPage, browserForTests } from "./pages.mjs";

const browser = browserForTests();

test("lesson 3: the paused holder overwrites what it has not seen, then a fence stops it", () =>
  browser.visit({}, async (page) => {
    const lesson = new LessonPage(page);
    await lesson.open("03-the-paused-holder");
    assert.match(await lesson.badge.innerText(), /LIVE/);

    await lesson.run();
    assert.equal(await lesson.heading(), "B works, alone");
    await lesson.run();
    await lesson.run();
    assert.match(await lesson.tables(), /balance\s+120/);

    // The decisive step waits for a prediction.
    await lesson.next.click();
    assert.ok(await lesson.isAsked());
    assert.match(await lesson.tables(), /balance\s+120/);
    await lesson.predict(/because A's lease is over/);
    assert.equal(await page.evaluate(() => document.activeElement.id), "question");
    assert.match(await lesson.prediction.innerText(), /You predicted something else/i);
    assert.match(await lesson.prediction.innerText(), /B's 20 are gone/);
    assert.match(await lesson.tables(), /balance\s+(changed:\s+)?95/);
    // Bringing the verdict into sight has moved its own column and nothing else.
    assert.equal(await page.evaluate(() => document.querySelector(".lesson-page").scrollTop), 0);
    assert.ok((await lesson.broken.count()) >= 2);
    assert.match((await lesson.broken.allInnerTexts()).join(" "), /no lost update/);

    await lesson.run();
    await lesson.run();
    assert.ok(await lesson.debrief.isVisible());

    // The same script, one rule changed.
    await page.getByRole("button", { name: /Now run it with: With a fence/ }).click();
    await lesson.ready();
    await lesson.run();
    await lesson.run();
    await lesson.run();
    await lesson.next.click();
    await lesson.predict(/because 2 is not above 3/);
    assert.match(await lesson.prediction.innerText(), /You predicted it/i);
    await lesson.rejection.waitFor();
    const card = await lesson.rejection.innerText();
    assert.match(card, /Fenced by ledger/);
    assert.match(card, /95/);
    assert.equal(await lesson.broken.count(), 0);
    assert.match(await lesson.tables(), /balance\s+120/);
    await lesson.run();
    assert.ok(await lesson.debrief.isVisible());
  }));

test("lesson 4: the token survives a crash, and the stale write is refused twice", () =>
  browser.visit({}, async (page) => {
    const lesson = new LessonPage(page);
    await lesson.open("04-the-fence");
    for (let step = 1; step <= 3; step += 1) await lesson.run();
    await lesson.next.click();
    assert.ok(await lesson.isAsked());
    await lesson.prediction.getByRole("radio").first().check();
    await lesson.prediction.getByTestId("predict").click();
    await lesson.settled();
    assert.match(await lesson.tables(), /token\s+4/);
    await lesson.run();
    await lesson.next.click();
    await lesson.prediction.getByRole("radio").first().check();
    await lesson.prediction.getByTestId("predict").click();
    await lesson.rejection.first().waitFor();
    assert.match(await lesson.rejection.first().innerText(), /Fenced by ledger/);
    // The picture rests on the refusal, not on the bookkeeping after it.
    const caption = page.locator(".stage-caption");
    await caption.getByText(/refused/).waitFor();
    await page.waitForTimeout(3_500);
    assert.match(await caption.innerText(), /refused/);
    assert.match(await lesson.badge.innerText(), /LIVE/);
    // The transcript has opened at the cursor.
    await lesson.transcript();
    const here = page.locator("#panel-transcript [aria-current=step]");
    await here.waitFor();
    assert.match(await here.innerText(), /refused/);
    const [row, pane] = [await here.boundingBox(), await page.locator("#panel-transcript").boundingBox()];
    assert.ok(row.y >= pane.y && row.y + row.height <= pane.y + pane.height, "in sight");
    await lesson.runToEnd();
    assert.ok(await lesson.debrief.isVisible());
    assert.ok((await lesson.transcript()).some((line) => /crash/i.test(line)));
  }));

test("lesson 6: the stale write gets in before the first write, and a claim closes the gap", () =>
  browser.visit({}, async (page) => {
    const lesson = new LessonPage(page);
    await lesson.open("06-before-the-first-write");
    for (let step = 1; step <= 3; step += 1) await lesson.run();
    await lesson.next.click();
    await lesson.predict(/because 2 is above 1/);
    assert.match(await lesson.broken.first().innerText(), /no older effect/);
    await lesson.run();
    await lesson.run();
    assert.ok(await lesson.debrief.isVisible());

    await page.getByRole("button", { name: /Now run it with: Claim first/ }).click();
    await lesson.ready();
    await lesson.runToEnd();
    assert.ok(await lesson.debrief.isVisible());
    assert.equal(await page.locator("[data-testid=trouble]").count(), 0);
    await lesson.back.click();
    assert.match(await lesson.tables(), /balance\s+120/);
  }));

test("back shows the recording, and says so; end returns to the lab", () =>
  browser.visit({}, async (page) => {
    const lesson = new LessonPage(page);
    await lesson.open("03-the-paused-holder");
    await lesson.run();
    await lesson.run();
    const sent = async () => (await lesson.transcript()).filter((line) => / asks /.test(line));
    const sentOnce = await sent();
    assert.ok(sentOnce.length > 0);
    await lesson.back.click();
    assert.equal(await lesson.step(), 1);
    assert.match(await lesson.badge.innerText(), /RECORDED/);
    assert.ok(!(await lesson.isNewest()));
    await lesson.run();
    assert.equal(await lesson.step(), 2);
    assert.match(await lesson.badge.innerText(), /LIVE/);
    assert.ok(await lesson.isNewest());
    // It was shown again, not run again. (A lease may have expired meanwhile: that is no request.)
    assert.deepEqual(await sent(), sentOnce);
  }));

test("a fault by hand reaches the real object", () =>
  browser.visit({}, async (page) => {
    const lesson = new LessonPage(page);
    await lesson.open("03-the-paused-holder");
    await lesson.run();
    await page.getByTestId("break").click();
    const tray = page.getByTestId("tray");
    await tray.getByRole("button", { name: "Pause A" }).click();
    await tray.getByRole("button", { name: "Wake A" }).waitFor();
    await tray.getByRole("group", { name: "lease · orders" }).getByRole("button", { name: "Crash" }).click();
    await page.keyboard.press("Escape");
    await tray.waitFor({ state: "detached" });
    await page.waitForFunction(() => /crashed/i.test(document.body.innerText));
    const lines = await lesson.transcript();
    assert.ok(lines.some((line) => /A .*(pause|stop)/i.test(line)), lines.join("\n"));
    assert.ok(lines.some((line) => /orders lease.*crash/i.test(line)), lines.join("\n"));
  }));

test("compare runs the other setting in a lab of its own", () =>
  browser.visit({}, async (page) => {
    const lesson = new LessonPage(page);
    await lesson.open("03-the-paused-holder");
    for (let step = 1; step <= 3; step += 1) await lesson.run();
    await lesson.next.click();
    await lesson.predict(/because nothing in the write says/);
    await page.getByTestId("compare").click();
    const dialog = page.getByRole("dialog", { name: "Compare" });
    await dialog.getByText(/Lines that differ are marked/).waitFor();
    const mine = await dialog.getByRole("region", { name: "No fence" }).innerText();
    const other = await dialog.getByRole("region", { name: "With a fence" }).innerText();
    assert.match(mine, /applied/);
    assert.match(other, /fenced/);
    await page.keyboard.press("Escape");
    await dialog.waitFor({ state: "hidden" });
  }));
