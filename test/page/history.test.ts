import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import type { Page } from 'playwright-core'
import type { History } from '../../src/contract/execution-history.ts'
import { until } from '../../src/platform/process/test-wait.ts'
import { type Chromium, startChromium } from '../support/machine/chromium.ts'
import { NEEDS_CHROMIUM, type PageRig, startPageRig, untilState, WEBGL } from './rig.ts'

const SECONDS_BEFORE = 12
const BLOCKS_BEFORE = 40
const CHARTS = 3

describe('the history of the page', { timeout: 240_000, ...NEEDS_CHROMIUM }, () => {
  let rig: PageRig
  let browser: Chromium
  before(async () => {
    rig = await startPageRig()
    browser = await startChromium(WEBGL)
    await until('there is a history', async () => {
      const { seconds, blocks } = await historyOf(rig)
      return seconds.tps.filter((tps) => tps !== null).length >= SECONDS_BEFORE && blocks.id.length >= BLOCKS_BEFORE
    })
  })
  after(async () => {
    await browser[Symbol.asyncDispose]()
    await rig[Symbol.asyncDispose]()
  })

  test('fills every part after a restart of the service, before the stream has sent anything', async () => {
    await rig.restart()
    const page = await browser.context.newPage()
    // A stream that stays silent.
    await page.routeWebSocket(/\/v1\/ws/, () => {})
    await page.setViewportSize({ width: 1440, height: 900 })
    await page.goto(rig.url)
    await until('the charts are full', async () => {
      const points = await pointsOf(page)
      return points.length === CHARTS && points.every((count) => count >= 4)
    })
    await until('lanes', async () => (await page.locator('[data-lane="Verified"] .block-card').count()) >= 4)
    const heat = (await page.locator('.heat canvas').getAttribute('aria-label')) ?? ''
    assert.ok(Number(/over (\d+) blocks/.exec(heat)?.[1]) >= BLOCKS_BEFORE / 2, heat)
    assert.ok(Number(await page.locator('.graph').getAttribute('data-nodes')) > 5)
    assert.match(await statOfPart(page, 'efficiency'), /^\d/)
    assert.match(await statOfPart(page, 'depth'), /^\d/)
    await page.locator('.incidents li', { hasText: 'The service did not run. It lasted' }).first().waitFor()
    const incident = await page.locator('.incidents li', { hasText: 'Rejected' }).first().innerText()
    assert.match(incident, /^\d\d:\d\d:\d\d\s+\S+ (s|min) ago/)
    await page.close()
  })

  test('is loaded again after an interruption, and fills it without counting anything twice', async () => {
    const { page } = await browser.open('about:blank')
    const loads: string[] = []
    page.on('request', (request) => {
      if (request.url().endsWith('/v1/history')) loads.push(request.url())
    })
    await page.goto(rig.url)
    await untilState(page, 'live')
    await until('the history is loaded at the start and after the connection', () => loads.length === 2)
    await rig.proxy.disable()
    await untilState(page, 'resuming')
    const { now_ms } = await historyOf(rig)
    await until('seconds pass', async () => (await historyOf(rig)).now_ms - now_ms > 6000)
    await rig.proxy.enable()
    await untilState(page, 'live')
    await until('the history is loaded again', () => loads.length === 3)
    await until('the average is that of the service', async () => {
      const { seconds } = await historyOf(rig)
      const known = seconds.tps.filter((tps) => tps !== null)
      const average = known.reduce((sum, tps) => sum + tps, 0) / known.length
      return Math.abs(Number(await statOfPart(page, 'tpsAverage')) / average - 1) < 0.1
    })
    const [points = 0] = await pointsOf(page)
    const { seconds } = await historyOf(rig)
    assert.ok(points <= seconds.tps.length / 2 + 2, `${points} points of ${seconds.tps.length} seconds`)
    await page.close()
  })

  test('every contract among the most accessed has figures', async () => {
    const { page } = await browser.open(rig.url)
    await until('the tables are full', async () => (await page.locator('.top-table tbody tr:not(.empty)').count()) > 15)
    const addresses = await page
      .locator('.top-table .link')
      .evaluateAll((links) => [...new Set(links.map((link) => link.title))])
    assert.ok(addresses.length >= 10)
    for (const address of addresses) {
      await page.evaluate(`location.hash = 'contract=${address}'`)
      await page.locator('.drawer .whole', { hasText: address }).waitFor()
      await page.locator('.drawer [data-stat="topCount"]').waitFor()
      // The figures are fetched when the drawer opens.
      await until(`${address} has figures`, async () =>
        (await page.locator('.drawer [data-stat] .number').allInnerTexts()).some((figure) => /^[1-9]/.test(figure)),
      )
    }
    await page.close()
  })
})

async function historyOf(rig: PageRig): Promise<History> {
  return (await (await fetch(`${rig.directUrl()}v1/history`)).json()) as History
}

function pointsOf(page: Page): Promise<number[]> {
  return page.locator('.line-chart').evaluateAll((charts) => charts.map((chart) => Number(chart.dataset['points'])))
}

function statOfPart(page: Page, id: string): Promise<string> {
  return page.locator(`main [data-part] [data-stat="${id}"] .number`).first().innerText()
}
