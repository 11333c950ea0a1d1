import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import type { Page } from 'playwright-core'
import { createManualClock } from '../../src/core/clock.ts'
import { createHistoryDocument } from '../../src/execution/history/document.ts'
import { feedHour, openTestHistory } from '../../src/execution/history/test-history.ts'
import { until } from '../../src/platform/process/test-wait.ts'
import { type Chromium, startChromium } from '../support/machine/chromium.ts'
import { NEEDS_CHROMIUM, type PageRig, startPageRig, statOf, untilState, WEBGL } from './rig.ts'

/** The goal, which is printed: browsers call a task long from here on. */
const LONG_TASK_MS = 50
/** What fails the test. It is far above the goal, because on a virtual machine time that its host takes away counts as time of the processor. */
const TASK_MS_MAX = 250
/** While the scripts are evaluated and the first layout is made. */
const LOAD_TASK_MS_MAX = 1000
const FRAMES = 200

describe('tasks of the main thread of the page', { timeout: 240_000, ...NEEDS_CHROMIUM }, () => {
  let rig: PageRig
  let browser: Chromium
  before(async () => {
    rig = await startPageRig({ blockMs: 200, tps: 2000 })
    browser = await startChromium(WEBGL)
  })
  after(async () => {
    await browser[Symbol.asyncDispose]()
    await rig[Symbol.asyncDispose]()
  })

  test('none is long: while the page loads an hour of history, and with a busy stream afterwards', async (t) => {
    const page = await browser.context.newPage()
    await page.setViewportSize({ width: 1440, height: 900 })
    await serveHourOnce(page)
    const loading = await traceTasks(page)
    await page.goto(rig.url)
    await untilState(page, 'live')
    await until('lanes are full', async () => (await page.locator('[data-lane="Verified"] .block-card').count()) >= 4)
    const loadMs = await loading.stop()

    const following = await traceTasks(page)
    const seq = Number(await statOf(page, 'seq'))
    await until('many frames are drawn', async () => Number(await statOf(page, 'seq')) > seq + FRAMES)
    const followMs = await following.stop()

    t.diagnostic(`longest tasks in ms of processor time: loading ${shown(loadMs)}; following ${shown(followMs)}`)
    assert.ok(loadMs.length > 20 && followMs.length > 20, 'tasks were traced')
    assert.ok((loadMs[0] ?? 0) <= LOAD_TASK_MS_MAX, `loading: ${shown(loadMs)}`)
    assert.ok((followMs[0] ?? 0) <= TASK_MS_MAX, `following: ${shown(followMs)}`)
    await page.close()
  })
})

/** The first response to `GET /v1/history` has a full hour. */
async function serveHourOnce(page: Page): Promise<void> {
  const clock = createManualClock()
  await using history = await openTestHistory({ clock })
  feedHour(history, clock)
  const { text } = createHistoryDocument({ clock, history, isSimulated: () => true })()
  await page.route('**/v1/history', (route) => route.fulfill({ contentType: 'application/json', body: text }), {
    times: 1,
  })
}

type TraceEvent = { name: string; pid: number; tid: number; tdur?: number; args: { name?: string } }

/**
 * Traces the tasks of main threads. Their time is that of the processor, in milliseconds, the longest first: other programs run beside this test, and the
 * `longtask` entries of a page would count their time too.
 */
async function traceTasks(page: Page): Promise<{ stop(): Promise<number[]> }> {
  const session = await page.context().newCDPSession(page)
  const events: TraceEvent[] = []
  session.on('Tracing.dataCollected', ({ value }) => events.push(...(value as unknown as TraceEvent[])))
  const includedCategories = ['disabled-by-default-devtools.timeline']
  await session.send('Tracing.start', { traceConfig: { includedCategories, excludedCategories: ['*'] } })
  return {
    async stop() {
      const complete = new Promise((resolve) => session.once('Tracing.tracingComplete', resolve))
      await session.send('Tracing.end')
      await complete
      await session.detach()
      const keyOf = ({ pid, tid }: TraceEvent): string => `${pid} ${tid}`
      const mains = new Set(
        events.filter(({ name, args }) => name === 'thread_name' && args.name === 'CrRendererMain').map(keyOf),
      )
      return events
        .filter((event) => event.name === 'RunTask' && mains.has(keyOf(event)))
        .map(({ tdur = 0 }) => tdur / 1000)
        .toSorted((a, b) => b - a)
    },
  }
}

function shown(tasks: readonly number[]): string {
  const longest = tasks.slice(0, 5).map((ms) => ms.toFixed(0))
  const long = tasks.filter((ms) => ms > LONG_TASK_MS).length
  return `${longest.join(', ')} (${long} of ${tasks.length} above ${LONG_TASK_MS})`
}
