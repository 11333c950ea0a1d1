import { delay, systemClock } from '../../../../platform/process/clock.ts'
import { openControlClient } from '../../../../platform/process/control-client.ts'
import type { TopReport } from '../../../../processes/compose/top/report.ts'
import type { CliContext } from '../../../define.ts'
import { printJson } from '../../../output/print.ts'
import { drawTop } from '../../../top/draw.ts'
import { paintLine, wantsColour } from '../../../top/paint.ts'
import { productsOf } from '../../../top/products.ts'
import { type TopView, viewOf } from '../../../top/rates.ts'
import { openScreen } from '../../../top/screen.ts'
import { lookEachSecond } from '../../../top/watch.ts'
import type { TopFlags } from '../top.ts'
import { controlPath } from './control.ts'

/** Long enough that use, which is counted by the second, shows. */
const ONCE_MS = 2000
/** Rates over so many reports: a picture that trembles cannot be read. */
const REPORTS_KEPT = 6
const HISTORY_SECONDS = 60
/** A picture that is printed is as long as it needs to be. */
const PRINTED = { columns: 100, rows: 200 }

export async function top(this: CliContext, flags: TopFlags): Promise<void> {
  const { stdout } = this.process
  if (flags.once === true || flags.json === true || !stdout.isTTY) await lookOnce(this, flags)
  else await lookOn(this, flags)
}

async function lookOnce(context: CliContext, flags: TopFlags): Promise<void> {
  const { process } = context
  using client = await openControlClient(controlPath(context, flags))
  const before = (await client.call('top')) as TopReport
  await delay(systemClock, ONCE_MS)
  const view = viewOf(before, (await client.call('top')) as TopReport)
  if (flags.json === true) return printJson(context, view)
  // A stream that is no terminal has no width, whatever its type says.
  const columns = (process.stdout.columns as number | undefined) ?? PRINTED.columns
  const options = { columns, rows: PRINTED.rows, history: {}, nowMs: systemClock.nowMs(), isLive: false }
  const colour = wantsColour(process)
  for (const line of drawTop(view, options))
    process.stdout.write(`${paintLine(line, { width: columns, colour }).trimEnd()}\n`)
}

async function lookOn(context: CliContext, flags: TopFlags): Promise<void> {
  const { process } = context
  const colour = wantsColour(process)
  const leave = new AbortController()
  const reports: TopReport[] = []
  const history: Record<string, number[]> = {}
  let view: TopView | undefined
  let failure: string | undefined
  // Opened first: a process that is not there is an error on a terminal as it was.
  const looks = lookEachSecond<TopReport>(
    { path: controlPath(context, flags), method: 'top' },
    { clock: systemClock, signal: leave.signal },
  )
  const first = await looks.next()
  using screen = openScreen(process)
  void screen.left.then(() => leave.abort())
  screen.onResize(draw)
  for (let look = first; look.done !== true; look = await looks.next()) {
    if ('response' in look.value) take(look.value.response)
    else failure = 'not running; waiting for it'
    draw()
  }

  function take(report: TopReport): void {
    failure = undefined
    if (reports.at(-1)?.status.pid !== report.status.pid) reports.length = 0
    reports.push(report)
    if (reports.length > REPORTS_KEPT) reports.shift()
    view = viewOf(reports[0] as TopReport, report)
    // Each second as it was; the figures beside it are those that are evened out.
    const second = viewOf(reports.at(-2) ?? report, report)
    for (const { name, perSecond } of productsOf(second)) {
      const past = (history[name] ??= [])
      past.push(perSecond)
      if (past.length > HISTORY_SECONDS) past.shift()
    }
  }

  function draw(): void {
    if (view === undefined) return
    const { columns, rows } = screen
    const picture = drawTop(view, { columns, rows, history, nowMs: systemClock.nowMs(), failure, isLive: true })
    screen.draw(picture.map((line) => paintLine(line, { width: columns, colour })))
  }
}
