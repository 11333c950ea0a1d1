/**
 * The live page over time, in Chromium without a GPU, with the real service and the simulated chain at about ten messages per
 * second: script size, first paint, frames per second while scrolling, and the heap after each minute, garbage collected, with
 * its slope. One JSON line per figure. Minutes may be a fraction; the heap is then sampled more often.
 *
 * The browser is measured, so the service and the ring writer run with lower priority.
 *
 *   npx node bench/page-soak.ts [minutes] [blockMs]
 */
import { constants, cpus, setPriority } from 'node:os'
import { setTimeout as pause } from 'node:timers/promises'
import type { Page } from 'playwright-core'
import { openPage } from '../src/processes/compose/pages/live.ts'
import { startPageRig, statOf, untilState, WEBGL } from '../test/page/rig.ts'
import { startChromium } from '../test/support/machine/chromium.ts'

const MINUTES = Number(process.argv[2] ?? 30)
/** Seven frames per block (TPS, contention, conflicts, four stages): ten per second. */
const BLOCK_MS = Number(process.argv[3] ?? 700)
const LOADS = 5
const SCROLL_MS = 4000
/** The model is full after five minutes (300 blocks; the chart's hour is downsampled); from then on the heap must not grow. */
const WARM_MINUTES = Math.min(5, MINUTES / 2)
const GOALS = { scriptBytes: 150_000, firstPaintMs: 1000, scrollFps: 55, growthPercent: 10 }
const LOOKS = Math.max(4, Math.ceil(MINUTES))

const { files } = await openPage()
const scripts = files.filter(({ type }) => type.startsWith('text/javascript'))
report('script', {
  gzippedBytes: scripts.reduce((sum, { body, gzip }) => sum + (gzip ?? body).length, 0),
  goal: GOALS.scriptBytes,
})

await using rig = await startPageRig({ blockMs: BLOCK_MS, tps: 150 })
await using browser = await startChromium([...WEBGL, '--js-flags=--expose-gc'])
// Set after the browser was started, which would inherit it.
setPriority(constants.priority.PRIORITY_BELOW_NORMAL)
const { page, errors } = await browser.open(rig.url)
await page.setViewportSize({ width: 1440, height: 900 })
await untilState(page, 'live')

const paints: number[] = []
for (let load = 0; load < LOADS; load++) {
  await page.reload()
  await untilState(page, 'live')
  paints.push(Number(await page.evaluate(`performance.getEntriesByName('first-contentful-paint')[0].startTime`)))
}
report('first paint', { milliseconds: Math.round(median(paints)), goal: GOALS.firstPaintMs })

await page.setViewportSize({ width: 390, height: 844 })
report('scroll', { framesPerSecond: await scrollFps(page), goal: GOALS.scrollFps })
await page.setViewportSize({ width: 1440, height: 900 })

const session = await page.context().newCDPSession(page)
const heaps: { minute: number; bytes: number }[] = []
const startedSeq = Number(await statOf(page, 'seq'))
for (let look = 1; look <= LOOKS; look++) {
  const minute = (look * MINUTES) / LOOKS
  await pause((MINUTES * 60_000) / LOOKS)
  await session.send('HeapProfiler.collectGarbage')
  const { usedSize } = await session.send('Runtime.getHeapUsage')
  heaps.push({ minute, bytes: usedSize })
  report('heap', { minute, mebibytes: Number((usedSize / 2 ** 20).toFixed(2)) })
}
const seconds = MINUTES * 60
const messagesPerSecond = Number(((Number(await statOf(page, 'seq')) - startedSeq) / seconds).toFixed(1))
const warm = heaps.filter(({ minute }) => minute >= WARM_MINUTES).map(({ bytes }) => bytes)
const half = Math.ceil(warm.length / 2)
const growth = median(warm.slice(-half)) / median(warm.slice(0, half)) - 1
report('soak', {
  minutes: MINUTES,
  messagesPerSecond,
  kibibytesPerMinute: Number((slopeOf(heaps.slice(-warm.length)) / 1024).toFixed(1)),
  growthPercent: Number((growth * 100).toFixed(1)),
  goal: GOALS.growthPercent,
  errors: errors.length,
})

/** Scrolls up and down for a while and counts the rendered frames. */
async function scrollFps(of: Page): Promise<number> {
  const frames = Number(
    await of.evaluate(`new Promise((done) => {
      const startedMs = performance.now()
      let frames = 0
      const step = (nowMs) => {
        frames += 1
        scrollTo(0, (1 - Math.cos((nowMs - startedMs) / 600)) * 0.5 * (document.documentElement.scrollHeight - innerHeight))
        if (nowMs - startedMs < ${SCROLL_MS}) requestAnimationFrame(step)
        else done(frames)
      }
      requestAnimationFrame(step)
    })`),
  )
  return Number(((frames * 1000) / SCROLL_MS).toFixed(1))
}

function report(path: string, figures: Record<string, unknown>): void {
  console.log(JSON.stringify({ bench: 'page', path, ...figures, node: process.version, cores: cpus().length }))
}

/** Bytes per minute, by least squares. */
function slopeOf(points: readonly { minute: number; bytes: number }[]): number {
  const minutes = points.reduce((sum, { minute }) => sum + minute, 0) / points.length
  const bytes = points.reduce((sum, point) => sum + point.bytes, 0) / points.length
  const over = points.reduce((sum, point) => sum + (point.minute - minutes) * (point.bytes - bytes), 0)
  return over / points.reduce((sum, { minute }) => sum + (minute - minutes) ** 2, 0)
}

function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[sorted.length >> 1] ?? Number.NaN
}
