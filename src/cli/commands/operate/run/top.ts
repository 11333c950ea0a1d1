import { delay, systemClock } from '../../../../platform/process/clock.ts'
import type { TopReport } from '../../../../processes/compose/top/report.ts'
import type { CliContext, CommonFlags } from '../../../define.ts'
import { openRunningProcess } from '../../../operations/running-process.ts'
import { printJson } from '../../../output/print.ts'
import { isScreen, terminalColumns } from '../../../output/terminal.ts'
import { drawTop } from '../../../top/draw.ts'
import { paintLine, wantsColour } from '../../../top/paint.ts'
import { productsOf } from '../../../top/products.ts'
import { type TopView, viewOf } from '../../../top/rates.ts'
import { openScreen } from '../../../top/screen.ts'
import { pollEachSecond } from '../../../top/watch.ts'

export type TopFlags = CommonFlags & { readonly once?: boolean }

/** Usage is written every second, so two seconds show it. */
const ONCE_MS = 2000
/** Rates are averaged over this many reports. */
const REPORTS_KEPT = 6
const HISTORY_SECONDS = 60
const PRINTED = { columns: 100, rows: 200 }

export async function top(this: CliContext, flags: TopFlags): Promise<void> {
  if (flags.once === true || flags.json === true || !isScreen(this.process)) await lookOnce(this, flags)
  else await watchTop(this, flags)
}

async function lookOnce(context: CliContext, flags: TopFlags): Promise<void> {
  const { process } = context
  using client = await openRunningProcess(context, flags)
  const before = await client.call('top')
  await delay(systemClock, ONCE_MS)
  const view = viewOf(before, await client.call('top'))
  if (flags.json === true) return printJson(context, view, { gapsReported: 'gaps_told' })
  const columns = terminalColumns(process.stdout) ?? PRINTED.columns
  const options = { columns, rows: PRINTED.rows, history: {}, nowMs: systemClock.nowMs(), isLive: false }
  const colour = wantsColour(process)
  for (const line of drawTop(view, options))
    process.stdout.write(`${paintLine(line, { width: columns, colour }).trimEnd()}\n`)
}

async function watchTop(context: CliContext, flags: TopFlags): Promise<void> {
  const { process } = context
  const colour = wantsColour(process)
  const leave = new AbortController()
  const reports: TopReport[] = []
  const history: Record<string, number[]> = {}
  let view: TopView | undefined
  let failure: string | undefined
  // Connects before the screen opens, so that an error is printed on the normal screen.
  const polls = pollEachSecond(
    () => openRunningProcess(context, flags),
    (running) => running.call('top'),
    { clock: systemClock, signal: leave.signal },
  )
  const first = await polls.next()
  using screen = openScreen(process)
  void screen.left.then(() => leave.abort())
  screen.onResize(draw)
  for (let poll = first; poll.done !== true; poll = await polls.next()) {
    if ('response' in poll.value) handle(poll.value.response)
    else failure = 'not running, waiting for a restart'
    draw()
  }

  function handle(report: TopReport): void {
    failure = undefined
    if (reports.at(-1)?.status.pid !== report.status.pid) reports.length = 0
    reports.push(report)
    if (reports.length > REPORTS_KEPT) reports.shift()
    view = viewOf(reports[0] as TopReport, report)
    // The history shows single seconds; the figures beside it are averaged.
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
