import { toWireJson } from '../../../../contract/wire-json.ts'
import { printDurationShort } from '../../../../core/human-units.ts'
import { systemClock } from '../../../../platform/process/clock.ts'
import type { StatusReport } from '../../../../processes/compose/process/status.ts'
import { printUntil } from '../../../dates.ts'
import type { CliContext, CommonFlags } from '../../../define.ts'
import { openRunningProcess } from '../../../operations/running-process.ts'
import { sanitizeForTerminal } from '../../../output/plain-text.ts'
import { alignColumns, printFacts, printJson } from '../../../output/print.ts'
import { isScreen } from '../../../output/terminal.ts'
import { type Line, paintLine, type Tone, wantsColour } from '../../../top/paint.ts'
import { openScreen } from '../../../top/screen.ts'
import { type Poll, pollEachSecond } from '../../../top/watch.ts'

export type StatusFlags = CommonFlags & { readonly watch?: boolean }

export async function status(this: CliContext, flags: StatusFlags): Promise<void> {
  if (flags.watch === true) return watchStatus(this, flags)
  using client = await openRunningProcess(this, flags)
  const report = await client.call('status')
  if (flags.json === true) printJson(this, report)
  else printFacts(this, factsOf(report))
}

type Facts = readonly (readonly [string, string | number])[]

function factsOf(report: StatusReport): Facts {
  return [
    ['state', report.state],
    ...report.reasons.map(
      ({ part, reason, sinceMs }) => ['degraded', `${part}: ${reason} (since ${printTime(sinceMs)})`] as const,
    ),
    ['version', report.version],
    ['process', report.pid],
    ['uptime', printDurationShort(report.uptimeSeconds * 1000)],
    ['store', `${report.store} at revision ${report.revision}`],
    [
      'customers',
      [
        counted(report.customers, 'customer'),
        counted(report.subscriptions, 'subscription'),
        counted(report.tokens, 'token'),
      ].join(', '),
    ],
    ...threadFacts(report.threads),
    ...nodeFacts(report.nodes),
    ...slotLengthFacts(report.slotLength),
    ...endingFacts(report.ending),
    ...usageFacts(report.usage),
    ...report.services.map(
      ({ name, address, note }) => [name, note === undefined ? address : `${address}  ${note}`] as const,
    ),
    ...(report.off ?? []).map(({ name, reason }) => [name, `off: ${reason}`] as const),
  ]
}

function printTime(unixMs: number): string {
  return `${new Date(unixMs).toISOString().slice(0, 19).replace('T', ' ')} UTC`
}

function threadFacts(threads: StatusReport['threads'] = []): Facts {
  if (threads.length === 0) return []
  const shown = threads.map(({ name, isRunning, restarts }) => {
    const notes = [
      ...(isRunning ? [] : ['being restarted']),
      ...(restarts > 0 ? [counted(restarts, 'restart')] : []),
    ].join(', ')
    return notes === '' ? name : `${name} (${notes})`
  })
  return [['threads', shown.join(', ')]]
}

/** Shown only while a node fails: calls go to the others, and nothing else in the report changes. */
function nodeFacts(nodes: StatusReport['nodes']): Facts {
  if (nodes === undefined || nodes.failing.length === 0) return []
  const failing = nodes.failing.map(({ name, reason }) => `${name} (${reason})`).join(', ')
  return [['nodes', `${nodes.failing.length} of ${nodes.count} failing: ${failing}; see: sluice upstream list`]]
}

function slotLengthFacts(slotLength: StatusReport['slotLength']): Facts {
  if (slotLength === undefined) return []
  return [['slot length', `${slotLength.ms} ms${slotLength.isLearned ? '' : ', not learned yet'}`]]
}

const ENDING_SHOWN = 3

function endingFacts(ending: StatusReport['ending']): Facts {
  if (ending === undefined || ending.within7d === 0) return []
  const { within7d, next } = ending
  const shown = next
    .slice(0, ENDING_SHOWN)
    .map(({ name, customer, validUntil }) => `${name} (${customer}) on ${printUntil(validUntil)}`)
  const more = within7d - shown.length
  const rest = more > 0 ? `, and ${more} more` : ''
  return [['ending', `${shown.join(', ')}${rest}; list them with: sluice sub list --ending 7d`]]
}

/** Usage is written every second, so a few waiting rows are normal and not shown. */
function usageFacts(usage: StatusReport['usage']): Facts {
  if (usage === undefined) return []
  const { waitingRows, spooledRows, lostRows } = usage
  const facts = [
    ...(spooledRows > 0 ? [`${waitingRows} rows wait for the store, ${spooledRows} of them kept on the disk`] : []),
    ...(lostRows > 0 ? [`${counted(lostRows, 'row')} lost since the start`] : []),
  ]
  return facts.length === 0 ? [] : [['usage', facts.join(', ')]]
}

function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`
}

async function watchStatus(context: CliContext, flags: CommonFlags): Promise<void> {
  const { process } = context
  const leave = new AbortController()
  const polls = pollEachSecond(
    () => openRunningProcess(context, flags),
    (running) => running.call('status'),
    { clock: systemClock, signal: leave.signal },
  )
  const first = await polls.next()
  if (isScreen(process) && flags.json !== true) return drawStatus(process, { first, polls, leave })

  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => leave.abort())
  let last = ''
  for (let poll = first; poll.done !== true; poll = await polls.next()) {
    const { message, json } = changeOf(poll.value)
    if (message === last) continue
    last = message
    process.stdout.write(`${flags.json === true ? JSON.stringify(json) : sanitizeForTerminal(message)}\n`)
  }
}

/** One line per change, for output that is not a terminal. */
function changeOf(poll: Poll<StatusReport>): { message: string; json: unknown } {
  if ('failure' in poll) return { message: 'not running', json: { state: 'not-running' } }
  const { state, reasons, version, pid } = poll.response
  const why = reasons.map(({ part, reason }) => `, ${part}: ${reason}`).join('')
  return { message: `${state}${why} (process ${pid}, version ${version})`, json: toWireJson(poll.response) }
}

type Watching = {
  readonly first: IteratorResult<Poll<StatusReport>>
  readonly polls: AsyncGenerator<Poll<StatusReport>>
  readonly leave: AbortController
}

async function drawStatus(process: NodeJS.Process, { first, polls, leave }: Watching): Promise<void> {
  const colour = wantsColour(process)
  let report: StatusReport | undefined
  let isAway = false
  using screen = openScreen(process)
  void screen.left.then(() => leave.abort())
  screen.onResize(draw)
  for (let poll = first; poll.done !== true; poll = await polls.next()) {
    isAway = 'failure' in poll.value
    if ('response' in poll.value) report = poll.value.response
    draw()
  }

  function draw(): void {
    if (report === undefined) return
    const { columns, rows } = screen
    const lines = statusLines(report, { isAway, nowMs: systemClock.nowMs(), rows })
    screen.draw(lines.map((line) => paintLine(line, { width: columns, colour })))
  }
}

const TONES: Readonly<Record<string, Tone>> = { ok: 'good', degraded: 'warn', draining: 'warn', starting: 'accent' }

export function statusLines(
  report: StatusReport,
  { isAway, nowMs, rows }: { readonly isAway: boolean; readonly nowMs: number; readonly rows: number },
): Line[] {
  const state: Line = isAway
    ? [{ text: ' ○ not running, waiting for a restart', tone: 'bad' }]
    : [{ text: ` ● ${report.state}`, tone: TONES[report.state] ?? 'plain' }]
  const clock: Line = [{ text: `   ${new Date(nowMs).toISOString().slice(11, 19)} UTC`, tone: 'quiet' }]
  const facts = alignColumns(
    factsOf(report)
      .slice(1)
      .map(([label, value]) => [label, sanitizeForTerminal(String(value))]),
  )
  const body = facts
    .trimEnd()
    .split('\n')
    .map(
      (line): Line => [{ text: ` ${line}`, tone: line.startsWith('degraded') ? 'warn' : isAway ? 'quiet' : 'plain' }],
    )
  return [[...state, ...clock], [], ...body, [], [{ text: ' q to quit', tone: 'quiet' as const }]].slice(0, rows)
}
