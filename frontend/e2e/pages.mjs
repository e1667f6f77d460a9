// Page objects: what a person sees and does, in their words. Specs use these and roles,
// labels and test ids, never the markup.
//
// FENCEPOST_URL is the server, CHROMIUM the browser (else the usual places).

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { after, before } from "node:test";

import { chromium } from "playwright-core";

const URL_DEFAULT = "http://127.0.0.1:8787";
const BROWSERS = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
const PATIENCE_MS = 30_000;

export const baseURL = process.env.FENCEPOST_URL ?? URL_DEFAULT;

/** A browser for the tests of one file: `{visit}` gives a page of its own each time. */
export function browserForTests() {
  const holder = {};
  before(async () => {
    const executablePath = process.env.CHROMIUM ?? BROWSERS.find((path) => existsSync(path));
    holder.browser = await chromium.launch({
      executablePath,
      args: [
        "--no-sandbox",
        "--disable-gpu",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
      ],
    });
  });
  after(() => holder.browser?.close());
  return {
    /**
     * Runs `visit(page, context)` and fails if the page has reported an error.
     * Motion is reduced unless asked for, so that nothing has to be waited for twice.
     */
    async visit(options, visit) {
      const { expectErrors = false, ...rest } = options;
      const context = await holder.browser.newContext({
        baseURL,
        viewport: { width: 1440, height: 900 },
        reducedMotion: "reduce",
        ...rest,
      });
      const errors = [];
      try {
        const page = await context.newPage();
        page.setDefaultTimeout(PATIENCE_MS);
        page.on("pageerror", (error) => errors.push(error.message));
        page.on("console", (message) => {
          // An injected crash is answered with 503, which the browser always reports.
          const isInjected = message.text().includes("status of 503");
          if (message.type() === "error" && !isInjected) errors.push(message.text());
        });
        await visit(page, context);
        if (!expectErrors) assert.deepEqual(errors, [], "the console has no errors");
      } finally {
        await context.close();
      }
    },
  };
}

/** The first page. */
export class HomePage {
  constructor(page) {
    this.page = page;
    this.verdict = page.getByTestId("verdict");
    this.badge = page.getByTestId("badge");
  }

  async open() {
    await this.page.goto("/");
    await this.page.getByRole("heading", { level: 1 }).waitFor();
  }

  pauseA() {
    return this.page.getByRole("button", { name: /Pause A/ }).click();
  }

  letBIn() {
    return this.page.getByRole("button", { name: /Let B in/ }).click();
  }

  wakeA() {
    return this.page.getByRole("button", { name: /Wake A/ }).click();
  }

  /** The whole story; what it came to. */
  async play() {
    await this.pauseA();
    await this.letBIn();
    await this.wakeA();
    await this.page.locator("[data-testid=verdict]:not([data-kind=plain])").waitFor();
    return this.verdict.innerText();
  }

  lesson(title) {
    return this.page.getByRole("link", { name: title, exact: true });
  }
}

/** A lesson. */
export class LessonPage {
  constructor(page) {
    this.page = page;
    this.badge = page.getByTestId("badge");
    this.next = page.getByTestId("next");
    this.back = page.getByTestId("back");
    this.prediction = page.getByTestId("prediction");
    this.broken = page.getByTestId("broken");
    this.rejection = page.getByRole("region", { name: "Refusal" });
    this.debrief = page.getByTestId("debrief");
    this.lost = page.getByTestId("connection-lost");
    this.position = page.getByRole("slider", { name: "Position in the recording" });
  }

  async open(slug) {
    await this.page.goto(`/lessons/${slug}`);
    await this.ready();
  }

  /** The lab is there and nothing runs. */
  async ready() {
    await this.page.locator("[data-testid=badge]:not([data-state=starting])").waitFor();
    await this.settled();
  }

  /** No step is running, and the cursor has arrived. */
  async settled() {
    await this.page.waitForFunction(() => {
      const next = document.querySelector("[data-testid=next]");
      return next && next.dataset.running === undefined && next.dataset.walking === undefined;
    });
  }

  /** Which step is open: the heading's number, 0 for the introduction. */
  async step() {
    const text = await this.page.getByText(/^Step \d+ of \d+$/).textContent({ timeout: 1_000 });
    return Number(/\d+/.exec(text)[0]);
  }

  async heading() {
    return this.page.getByRole("heading", { level: 1 }).innerText();
  }

  /** Runs the next step. */
  async run() {
    await this.next.click();
    await this.settled();
  }

  /** Answers the question with the option whose text has this in it, and lets it run. */
  async predict(text) {
    await this.prediction.getByRole("radio", { name: text }).check();
    await this.prediction.getByTestId("predict").click();
    await this.settled();
    await this.page.locator("[data-testid=prediction][data-state=answered]").waitFor();
  }

  isAsked() {
    return this.page.locator("[data-testid=prediction][data-state=open]").isVisible();
  }

  /** To the end, the first option at every question. */
  async runToEnd() {
    for (let presses = 0; presses < 30; presses += 1) {
      if (await this.debrief.isVisible()) return;
      if (await this.isAsked()) {
        await this.prediction.getByRole("radio").first().check();
        await this.prediction.getByTestId("predict").click();
        await this.settled();
      } else {
        await this.run();
      }
    }
    assert.fail("the lesson has no end");
  }

  /** An invariant of the strip, by its words. */
  invariant(words) {
    return this.page.getByRole("listitem").filter({ hasText: words }).first();
  }

  /** What the tables say. */
  async tables() {
    await this.page.getByRole("tab", { name: "Tables" }).click();
    return this.page.getByRole("tabpanel", { name: "Tables" }).innerText();
  }

  /** The sentences of the transcript. */
  async transcript() {
    await this.page.getByRole("tab", { name: "Transcript" }).click();
    return this.page.getByRole("tabpanel", { name: "Transcript" }).getByRole("listitem").allInnerTexts();
  }

  /** The newest event of the recording is shown. */
  async isNewest() {
    const [, shown, last] = /^event (\d+) of (\d+)/.exec(await this.where());
    return shown === last;
  }

  /** Where the recording is, in words: `event 12 of 30: …`. */
  where() {
    return this.position.getAttribute("aria-valuetext");
  }
}
