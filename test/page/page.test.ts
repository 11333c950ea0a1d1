import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { after, before, describe, test } from 'node:test'
import type { Page } from 'playwright-core'
import { until } from '../../src/platform/process/test-wait.ts'
import { openPage } from '../../src/processes/compose/pages/live.ts'
import { type Chromium, startChromium } from '../support/machine/chromium.ts'
import { NEEDS_CHROMIUM, type PageRig, startPageRig, statOf, untilState, WEBGL } from './rig.ts'

const JAVASCRIPT_GZIPPED_MAX = 150_000
const IS_FULL = process.env['SLUICE_FULL'] === '1'
const PARTS = ['tps', 'pipeline', 'contention', 'tops', 'graph', 'gas', 'incidents']

describe('the live page', { timeout: 240_000, ...NEEDS_CHROMIUM }, () => {
  let rig: PageRig
  let browser: Chromium
  let page: Page
  let errors: string[]

  before(async () => {
    rig = await startPageRig()
    browser = await startChromium(WEBGL)
    ;({ page, errors } = await browser.open(rig.url))
    await page.setViewportSize({ width: 1440, height: 900 })
    await untilState(page, 'live')
  })
  after(async () => {
    await browser[Symbol.asyncDispose]()
    await rig[Symbol.asyncDispose]()
  })

  test('is at most 150 kB of JavaScript, gzipped', async () => {
    const { files } = await openPage()
    const scripts = files.filter(({ type }) => type.startsWith('text/javascript'))
    const bytes = scripts.reduce((sum, { body, gzip }) => sum + (gzip ?? body).length, 0)
    assert.ok(scripts.length >= 3)
    assert.ok(bytes <= JAVASCRIPT_GZIPPED_MAX, `${bytes} bytes`)
  })

  test('has its eight parts in order, and each updates', async () => {
    const parts = await page.locator('main [data-part]').evaluateAll((all) => all.map((part) => part.dataset['part']))
    assert.deepEqual(parts, PARTS)
    await page.locator('.graph canvas').first().waitFor({ state: 'attached' })
    const before = await Promise.all(PARTS.map((part) => lookOf(page, part)))
    const seq = await statOf(page, 'seq')
    await until('the strip moves', async () => (await statOf(page, 'seq')) !== seq)
    for (const [at, part] of PARTS.entries()) {
      await until(`${part} moves`, async () => !(await lookOf(page, part)).equals(before[at] as Buffer), 30_000)
    }
  })

  test('says that its data is simulated, and does not where it is real', async () => {
    assert.equal(await page.locator('.bar .simulated').innerText(), 'simulated data')
    await using real = await startPageRig({ isSimulated: false })
    const opened = await browser.open(real.url)
    await untilState(opened.page, 'live')
    assert.equal(await opened.page.locator('.simulated').count(), 0)
    await opened.page.close()
  })

  test('pauses with Space, counts held blocks, and resumes', async () => {
    await page.locator('body').press(' ')
    await untilState(page, 'paused')
    const seq = await statOf(page, 'seq')
    await until('blocks are held', async () => heldOf(await page.locator('.chip').innerText()) >= 3)
    assert.equal(await statOf(page, 'seq'), seq)
    assert.match(await page.locator('.chip').innerText(), /^\d+ new blocks$/)
    await page.locator('.chip').click()
    await untilState(page, 'live')
    await until('the strip moves again', async () => (await statOf(page, 'seq')) !== seq)
    assert.equal(await page.locator('.chip').count(), 0)
  })

  test('opens a block from its lane: stages, contended slots, pairs; Escape closes', async () => {
    const card = page.locator('[data-lane="Verified"] .block-card').first()
    const drawer = page.locator('.drawer')
    // Cards move: on a busy machine another one may be below the pointer.
    await until('a verified block is open', async () => {
      await card.click()
      const verified = drawer.locator('tr.stage-verified').waitFor({ timeout: 10_000 })
      const isOpen = await verified.then(
        () => true,
        () => false,
      )
      if (!isOpen) await page.keyboard.press('Escape')
      return isOpen
    })
    const number = new URL(page.url()).hash.replace('#block=', '')
    assert.match(await drawer.locator('h2').innerText(), new RegExp(`Block ${number}`))
    assert.ok((await drawer.locator('table').nth(1).locator('tbody tr').count()) > 0, 'contended slots')
    assert.ok((await drawer.locator('table').nth(2).locator('tbody tr').count()) > 0, 'pairs')
    assert.equal(await page.evaluate('document.activeElement.id'), 'drawer-title')
    await page.keyboard.press('Escape')
    await drawer.waitFor({ state: 'detached' })
    assert.equal(new URL(page.url()).hash, '')
  })

  test('the next block shows nothing of the previous one while it loads, and keeps the focus', async () => {
    const number = Number(await statOf(page, 'block').then((text) => text.replace(/\D/g, ''))) - 4
    const next = `**/v1/blocks/${number + 1}/**`
    const { promise: released, resolve: release } = Promise.withResolvers<undefined>()
    await page.route(next, async (route) => {
      await released
      await route.continue()
    })
    await page.goto(`${rig.url}#block=${number}`)
    const drawer = page.locator('.drawer')
    await drawer.locator('.ids').waitFor()
    await drawer.locator('nav.steps button').nth(1).click()
    await drawer.locator('h2', { hasText: `Block ${number + 1}` }).waitFor()
    assert.deepEqual(
      await Promise.all(['.ids', 'tr.stage-proposed'].map((part) => drawer.locator(part).count())),
      [0, 0],
    )
    release(undefined)
    await drawer.locator('.ids').waitFor()
    assert.equal(await page.evaluate('document.activeElement.textContent'), `${number + 2} →`)
    await page.unroute(next)
    await page.keyboard.press('Escape')
    await drawer.waitFor({ state: 'detached' })
  })

  test('a drawer has the focus when it appears, and takes it from nothing later', async () => {
    await page.evaluate(FOCUS_WHEN_OPENED)
    await page.fill('#search', await statOf(page, 'block'))
    await page.press('#search', 'Enter')
    await page.locator('.drawer').waitFor()
    assert.equal(await page.evaluate('focusWhenOpened'), 'drawer-title')
    await page.keyboard.press('Escape')
    await page.locator('.drawer').waitFor({ state: 'detached' })
    assert.equal(await page.evaluate('document.activeElement.id'), 'search')
    await page.evaluate('document.activeElement.blur()')
  })

  test('finds a block and a contract, and names the blocks that are held', async () => {
    const newest = await statOf(page, 'block')
    await page.keyboard.press('/')
    await page.keyboard.type(newest)
    await page.keyboard.press('Enter')
    await page.locator('.drawer h2', { hasText: `Block ${newest}` }).waitFor()
    const [address] = [...rig.ring.labels.keys()] as [string]
    await page.fill('#search', address.toUpperCase().replace('0X', '0x'))
    await page.press('#search', 'Enter')
    await page.locator('.drawer .whole', { hasText: address }).waitFor()
    const neighbours = page.locator('.drawer table').nth(1).locator('tbody tr')
    await until('the contract has neighbours', async () => (await neighbours.count()) > 0)
    await page.fill('#search', 'nonsense')
    await page.press('#search', 'Enter')
    await page.locator('.refused', { hasText: /Nothing found for “nonsense”. Held are blocks \d+ to \d+/ }).waitFor()
    await page.fill('#search', '')
    // The browser reports responses with 404; both requests of the view get one.
    const refusals = Promise.all(
      ['lifecycle', 'contention'].map((path) => page.waitForResponse((reply) => reply.url().endsWith(`/1/${path}`))),
    )
    await page.goto(`${rig.url}#block=1`)
    await page.locator('.notice', { hasText: /Nothing found: .* Held are blocks \d+ to \d+/ }).waitFor()
    await refusals
    await page.goto(`${rig.url}#`)
    await page.locator('.drawer').waitFor({ state: 'detached' })
    errors.splice(0, errors.length, ...errors.filter((error) => !error.includes('404')))
  })

  test('stores a name of a contract', async () => {
    const [address] = [...rig.ring.labels.keys()] as [string]
    await page.goto(`${rig.url}#contract=${address}`)
    await page.fill('input[name="label"]', '  My\u202e token ')
    await page.press('input[name="label"]', 'Enter')
    await page.locator('.drawer h2', { hasText: 'My token' }).waitFor()
    await page.reload()
    await page.locator('.drawer h2', { hasText: 'My token' }).waitFor()
    await page.keyboard.press('Escape')
  })

  test('every number has an explanation, also by keyboard', async () => {
    const unexplained = await page.evaluate(
      `[...document.querySelectorAll('[data-stat]')].filter((stat) => !stat.querySelector('.why')).length`,
    )
    assert.equal(unexplained, 0)
    const mark = page.locator('[data-explains="efficiency"]').first()
    await mark.focus()
    await page.keyboard.press('Enter')
    await page.locator('.popover', { hasText: 'values above 95 are normal' }).waitFor()
    await page.keyboard.press('Escape')
    await page.locator('.popover').waitFor({ state: 'hidden' })
    assert.equal(await page.evaluate(`document.activeElement.dataset.explains`), 'efficiency')
  })

  test('follows the system theme until one is selected, and stores the choice', async () => {
    const ground = () => page.evaluate('getComputedStyle(document.documentElement).backgroundColor')
    await page.emulateMedia({ colorScheme: 'light' })
    const light = await ground()
    await page.emulateMedia({ colorScheme: 'dark' })
    const dark = await ground()
    assert.notEqual(dark, light)
    await page.locator('.theme').click()
    await page.locator('.theme').click()
    assert.equal(await ground(), light)
    await page.reload()
    await untilState(page, 'live')
    assert.equal(await ground(), light)
    await page.locator('.theme').click()
    assert.equal(await ground(), dark)
  })

  for (const colorScheme of ['dark', 'light'] as const) {
    // A block and a contract are open beside the live page, so that one run checks both.
    for (const width of [1440, 390]) {
      for (const view of width === 1440 || IS_FULL ? ['block', 'contract', 'api'] : ['block']) {
        test(`axe finds nothing serious: ${view}, ${colorScheme}, ${width} pixels`, async () => {
          await page.setViewportSize({ width, height: 900 })
          await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
          await page.goto(`${rig.url}#${await hashOf(view)}`)
          await page.locator('main').waitFor()
          if (view === 'block') await page.locator('.drawer table').nth(2).waitFor()
          if (view === 'contract') await page.locator('.drawer table').nth(1).waitFor()
          assert.deepEqual(await seriousFindings(page), [])
          await page.setViewportSize({ width: 1440, height: 900 })
        })
      }
    }
  }

  async function hashOf(view: string): Promise<string> {
    if (view === 'contract') return `contract=${[...rig.ring.labels.keys()][0]}`
    if (view === 'api') return 'api'
    const asked = `fetch('/v1/status').then((response) => response.json()).then((status) => status.block_number)`
    return `block=${Number(await page.evaluate(asked)) - 10}`
  }

  test('documents the API with examples that work', async () => {
    await page.goto(`${rig.url}#api`)
    const cards = page.locator('.route')
    for (const [path, response] of [
      ['/v1/tps', /"tps": \d+/],
      ['/v1/status', /"status": "healthy"/],
      ['/metrics', /sluice_execution_/],
    ] as const) {
      const card = cards.filter({ hasText: path }).first()
      await card.locator('.try').click()
      await card.locator('.response', { hasText: response }).waitFor()
    }
    await page.locator('summary', { hasText: 'Lifecycle' }).click()
    await page.locator('details[open] pre', { hasText: '"to_stage"' }).waitFor()
    await page.goto(`${rig.url}#`)
  })

  test('shows that the service requires a token', async () => {
    const locked = await browser.context.newPage()
    await locked.route('**/v1/status', (route) => route.fulfill({ status: 401, json: { error: 'token missing' } }))
    await locked.goto(rig.url)
    await untilState(locked, 'locked')
    await locked.close()
  })

  test('logs nothing to the console and violates no content security policy', () => assert.deepEqual(errors, []))
})

/** A picture of a part: it changes when what it shows changes, canvases included. */
function lookOf(page: Page, part: string): Promise<Buffer> {
  return page.locator(`[data-part="${part}"]`).screenshot({ animations: 'disabled' })
}

/** Records in the page which element has the focus when a drawer is added. */
const FOCUS_WHEN_OPENED = `new MutationObserver((_, observer) => {
  if (document.querySelector('.drawer') === null) return
  globalThis.focusWhenOpened = document.activeElement.id
  observer.disconnect()
}).observe(document.getElementById('page'), { childList: true })`

function heldOf(text: string): number {
  return Number(text.replaceAll(/\D/g, ''))
}

async function seriousFindings(page: Page): Promise<string[]> {
  const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
  await page.evaluate(axe)
  const found = (await page.evaluate(
    `axe.run().then((result) => result.violations.map(({ id, impact, nodes }) => ({ id, impact, at: nodes.slice(0, 3).map((node) => node.html.slice(0, 160) + ' ' + node.failureSummary.slice(0, 200)) })))`,
  )) as { id: string; impact: string; at: string[] }[]
  return found
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .map(({ id, at }) => `${id}: ${at.join(' | ')}`)
}
