import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, test } from 'node:test'
import type { Page } from 'playwright-core'
import { until } from '../../src/platform/process/test-wait.ts'
import { cleanName, NAME_CHARACTERS_MAX } from '../../src/ui/safe-text.ts'
import { startChromium } from '../support/machine/chromium.ts'
import { HOSTILE_TEXTS } from './hostile-texts.ts'
import { NEEDS_CHROMIUM, type PageRig, startPageRig, untilState, WEBGL } from './rig.ts'

/** A row of the lists is one line; a row of twice the height has a name that wrapped. */
const ROW_HEIGHT_MAX = 40

describe('hostile texts', { timeout: 240_000, ...NEEDS_CHROMIUM }, () => {
  test('are at least sixty, and each is reduced to one line of 64 visible characters', () => {
    assert.ok(HOSTILE_TEXTS.length >= 60)
    for (const text of HOSTILE_TEXTS) {
      const name = cleanName(text)
      assert.ok(Array.from(name).length <= NAME_CHARACTERS_MAX, name)
      assert.doesNotMatch(name, /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u)
    }
  })

  test('have no effect as names, as hex of a hostile service, in the URL and in the search', async () => {
    // A first rig provides the addresses: the chain is the same for the same seed.
    const names = new Map<string, string>()
    await using rig = await startPageRig({ names, abandonedShare: 0 })
    for (const [at, address] of [...rig.ring.labels.keys()].entries()) names.set(address, textAt(at))
    await using browser = await startChromium(WEBGL)
    const page = await browser.context.newPage()
    const happened = await watch(page)
    await page.route('**/page/names.json', (route) => route.fulfill({ json: Object.fromEntries(names) }))
    await page.routeWebSocket(/\/v1\/ws/, (client) => {
      let seen = 0
      const server = client.connectToServer()
      server.onMessage((text) => client.send(spoil(String(text), () => textAt(seen++))))
    })
    await page.setViewportSize({ width: 1440, height: 900 })
    await page.goto(rig.url)
    await untilState(page, 'live')
    await until('hostile names are shown', async () => (await page.locator('.pairs li').count()) > 0)
    await until('the top lists are filled', async () => (await page.locator('.top-table tbody .hex').count()) > 10)
    await expectCalm(page, happened)

    const hashes = HOSTILE_TEXTS.map((text, at) => `${['contract=', 'block=', ''][at % 3]}${text}`)
    await page.evaluate(`(async () => {
      for (const hash of ${JSON.stringify(hashes)}) {
        location.hash = hash
        await new Promise((next) => setTimeout(next))
      }
    })()`)
    assert.equal(await page.locator('.drawer').count(), 0)
    for (const text of HOSTILE_TEXTS.filter((_, at) => at % 6 === 0)) {
      await page.fill('#search', text)
      await page.press('#search', 'Enter')
    }
    await page.fill('#search', '')
    await labelAll(page, rig)
    await expectCalm(page, happened)
    await page.setViewportSize({ width: 390, height: 844 })
    await expectCalm(page, happened)
  })
})

test('another origin may read, but never with credentials', { timeout: 120_000, ...NEEDS_CHROMIUM }, async () => {
  await using rig = await startPageRig()
  const other = createServer((_, response) => response.end('<p>another origin')).listen(0, '127.0.0.1')
  using _closing = { [Symbol.dispose]: () => void other.close() }
  await once(other, 'listening')
  await using browser = await startChromium()
  const { page } = await browser.open(`http://127.0.0.1:${(other.address() as AddressInfo).port}/`)
  const ask = (init: string) =>
    page.evaluate(`fetch('${rig.url}v1/tps', ${init}).then((r) => r.status, () => 'refused')`)
  assert.equal(await ask('{}'), 200)
  assert.equal(await ask(`{ credentials: 'include' }`), 'refused')
})

function textAt(at: number): string {
  return HOSTILE_TEXTS[at % HOSTILE_TEXTS.length] ?? ''
}

/** Replaces every fifth address or slot of a frame, like a hostile service. */
function spoil(text: string, next: () => string): string {
  let at = 0
  const isHit = () => at++ % 5 === 0
  return JSON.stringify(
    JSON.parse(text, (key, value: unknown) => {
      const isHex = typeof value === 'string' && /^0x[0-9a-f]{40,64}$/.test(value)
      return isHex && key !== 'block_hash' && isHit() ? next() : value
    }),
  )
}

/** Gives contracts hostile names by hand, and opens them. */
async function labelAll(page: Page, rig: PageRig): Promise<void> {
  for (const [at, address] of [...rig.ring.labels.keys()].slice(0, 4).entries()) {
    await page.goto(`${rig.url}#contract=${address}`)
    await page.fill('input[name="label"]', textAt(at * 15 + 3))
    await page.press('input[name="label"]', 'Enter')
  }
}

type Happened = { readonly dialogs: string[]; readonly errors: string[] }

async function watch(page: Page): Promise<Happened> {
  const happened: Happened = { dialogs: [], errors: [] }
  page.on('dialog', (dialog) => {
    happened.dialogs.push(dialog.message())
    void dialog.dismiss()
  })
  page.on('pageerror', (error) => happened.errors.push(String(error)))
  page.on('console', (message) => {
    if (message.type() === 'error') happened.errors.push(message.text())
  })
  await page.addInitScript(
    `globalThis.reports = []; addEventListener('securitypolicyviolation', (event) => reports.push(event.violatedDirective + ' ' + event.blockedURI))`,
  )
  return happened
}

async function expectCalm(page: Page, { dialogs, errors }: Happened): Promise<void> {
  assert.deepEqual(dialogs, [])
  assert.deepEqual(errors, [])
  assert.deepEqual(await page.evaluate('reports'), [], 'reports of the content security policy')
  assert.deepEqual(
    await page.evaluate(
      `[...document.querySelectorAll('img, iframe, object, embed, form[action], base, meta[http-equiv], style, script:not([src])')].map((element) => element.outerHTML)`,
    ),
    [],
  )
  assert.equal(await page.evaluate('document.documentElement.scrollWidth <= innerWidth'), true, 'wider than the page')
  const high = await page.evaluate(
    `[...document.querySelectorAll('.top-table tbody tr, .pairs li, .plain-table tr')].filter((row) => row.offsetHeight > ${ROW_HEIGHT_MAX}).map((row) => row.offsetHeight + ' ' + row.innerText.slice(0, 60))`,
  )
  assert.deepEqual(high, [])
}
