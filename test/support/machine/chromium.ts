import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type BrowserContext, chromium, type Page } from 'playwright-core'

export type Chromium = AsyncDisposable & {
  readonly context: BrowserContext
  /** Opens a page and collects its errors. */
  open(url: string): Promise<{ readonly page: Page; readonly errors: string[] }>
}

/** Playwright's own 30 s are too few on a machine that others keep busy. */
const WAIT_MS = 90_000

/** Debian's Chromium, headless, with a temporary profile and without background network requests. */
export async function startChromium(more: readonly string[] = []): Promise<Chromium> {
  const profile = await mkdtemp(join(tmpdir(), 'sluice-chromium-'))
  const context = await chromium.launchPersistentContext(profile, {
    executablePath: '/usr/bin/chromium',
    timeout: WAIT_MS,
    headless: true,
    args: [
      '--no-sandbox',
      '--disable-gpu',
      '--disable-quic',
      '--no-first-run',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
      ...more,
    ],
  })
  context.setDefaultTimeout(WAIT_MS)
  return {
    context,
    async open(url) {
      const page = await context.newPage()
      const errors: string[] = []
      page.on('pageerror', (error) => errors.push(String(error)))
      page.on('console', (message) => {
        if (message.type() === 'error') errors.push(message.text())
      })
      await page.goto(url)
      return { page, errors }
    },
    async [Symbol.asyncDispose]() {
      await context.close()
      await rm(profile, { recursive: true, force: true })
    },
  }
}
