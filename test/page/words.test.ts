import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import type { Page } from 'playwright-core'
import { until } from '../../src/platform/process/test-wait.ts'
import { type Chromium, startChromium } from '../support/machine/chromium.ts'
import { NEEDS_CHROMIUM, type PageRig, startPageRig, statOf, untilState, WEBGL } from './rig.ts'

/** A part that is only its heading. */
const HEADING_PX_MAX = 48
/** Words of the implementation, which a reader of the page need not know. */
const JARGON = /degraded|\bstale\b|\bdepth\b|\bframes?\b|cursor|sequential|snapshot|conflict share/i
const CLOCK_S_MAX = 120

describe('words, times and empty parts of the page', { timeout: 240_000, ...NEEDS_CHROMIUM }, () => {
  let rig: PageRig
  let browser: Chromium
  let page: Page
  before(async () => {
    rig = await startPageRig()
    browser = await startChromium(WEBGL)
    ;({ page } = await browser.open(rig.url))
    await page.setViewportSize({ width: 1440, height: 900 })
    await untilState(page, 'live')
    await until('there are figures', async () => /^\d/.test(await statOf(page, 'depth')))
  })
  after(async () => {
    await browser[Symbol.asyncDispose]()
    await rig[Symbol.asyncDispose]()
  })

  test('incidents are one line where there are none', async () => {
    const quiet = await browser.context.newPage()
    await quiet.setViewportSize({ width: 1440, height: 900 })
    // A stream that stays silent: a busy machine would be late, which is an incident.
    await quiet.routeWebSocket(/\/v1\/ws/, () => {})
    await quiet.route('**/v1/history', async (route) => {
      const response = await route.fetch()
      await route.fulfill({ response, json: { ...(await response.json()), incidents: [] } })
    })
    await quiet.goto(rig.url)
    await quiet.locator('[data-lane="Verified"] .block-card').first().waitFor()
    const part = quiet.locator('[data-part="incidents"]')
    assert.match(await part.innerText(), /^Incidents\s+none/i)
    assert.equal(await part.locator('ol, .filters').count(), 0)
    const { height } = (await part.boundingBox()) ?? { height: Number.NaN }
    assert.ok(height <= HEADING_PX_MAX, `${height} pixels`)
    await quiet.close()
  })

  test('numbers have plain words', async () => {
    const labelOf = async (id: string) => (await page.locator(`main [data-stat="${id}"]`).first().innerText()).trim()
    assert.match(await labelOf('depth'), /parallel waves/i)
    assert.match(await labelOf('conflictShare'), /waiting on conflicts/i)
    assert.match(await labelOf('replayed'), /came late/i)
    assert.doesNotMatch(await page.locator('main').innerText(), JARGON)
  })

  test('the newest block has its time of day', async () => {
    const [, hours, minutes, seconds] = /^(\d\d):(\d\d):(\d\d)$/.exec(await statOf(page, 'time')) ?? []
    const nowS = Number(
      await page.evaluate(
        '(() => { const now = new Date(); now.setMilliseconds(0); return (now - new Date(now).setHours(0, 0, 0)) / 1000 })()',
      ),
    )
    const ageS = (nowS - (Number(hours) * 3600 + Number(minutes) * 60 + Number(seconds)) + 86_400) % 86_400
    assert.ok(ageS <= CLOCK_S_MAX, `${ageS} s before the clock of the browser`)
  })

  test('the charts of throughput, gas and block time show an hour', async () => {
    assert.equal(await page.locator('.switch [aria-pressed="true"]').innerText(), '1 h')
    const charts = page.locator('[data-part="tps"] .line-chart, [data-part="gas"] .line-chart')
    assert.equal(await charts.count(), 3)
  })
})
