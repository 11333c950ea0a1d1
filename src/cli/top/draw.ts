import { printBytesShort, printDurationShort } from '../../core/human-units.ts'
import { sanitizeForTerminal } from '../output/plain-text.ts'
import { printBytesRate, printCount, printRate, withCommas } from './labels.ts'
import { type Line, lineWidth, type Piece, type Tone } from './paint.ts'
import { productRows } from './products.ts'
import type { TopView } from './rates.ts'
import { beside, type Cell, table } from './table.ts'

export type PictureOptions = {
  readonly columns: number
  readonly rows: number
  /** Rates of the last seconds by product, oldest first. */
  readonly history: Readonly<Record<string, readonly number[]>>
  readonly nowMs: number
  /** Why the figures are stale. */
  readonly failure?: string | undefined
  /** Whether to show the key that quits. */
  readonly isLive: boolean
}

/** Wide enough for two tables side by side. */
const WIDE_COLUMNS = 130
const MARGIN = ' '

/** The complete screen: status, products, upstreams, subscriptions, refusals. */
export function drawTop(view: TopView, options: PictureOptions): Line[] {
  const width = options.columns - 2 * MARGIN.length
  const products = productRows(view, { width, history: options.history })
  const head = [titleLine(view, options, width), figuresLine(view), ...reasonLines(view), []]
  const foot: Line[] = options.isLive ? [[{ text: 'q to quit', tone: 'quiet' }]] : []
  const room = options.rows - head.length - products.length - foot.length - 1
  const tables = options.columns >= WIDE_COLUMNS ? wideTables(view, width, room) : narrowTables(view, width, room)
  const body = [...head, ...products, [], ...tables]
  const filled: Line[] = options.isLive
    ? [...body, ...Array.from({ length: Math.max(0, options.rows - body.length - foot.length) }, (): Line => [])]
    : body
  return [...filled.slice(0, Math.max(0, options.rows - foot.length)), ...foot].map((line) => [
    { text: MARGIN },
    ...line.map((piece) => ({ ...piece, text: sanitizeForTerminal(piece.text) })),
  ])
}

function titleLine({ status }: TopView, { nowMs, failure }: PictureOptions, width: number): Line {
  const left: Piece[] = [
    { text: 'sluice', tone: 'strong' },
    { text: ` ${status.version}  ` },
    failure === undefined
      ? { text: `● ${status.state}`, tone: STATE_TONES[status.state] }
      : { text: `○ ${failure}`, tone: 'bad' },
    { text: `  up ${printDurationShort(status.uptimeSeconds * 1000)}`, tone: 'quiet' },
  ]
  const clock = `${new Date(nowMs).toISOString().slice(11, 19)} UTC`
  const blanks = ' '.repeat(Math.max(2, width - lineWidth(left) - clock.length))
  return [...left, { text: blanks }, { text: clock, tone: 'quiet' }]
}

const STATE_TONES: Readonly<Record<TopView['status']['state'], Tone>> = {
  ok: 'good',
  starting: 'accent',
  degraded: 'warn',
  draining: 'warn',
}

function figuresLine({ process, status, unitsPerSecond }: TopView): Line {
  const loopMs = process.loopDelaySeconds * 1000
  const facts: [string, string, Tone?][] = [
    ['memory', printBytesShort(process.memoryBytes)],
    ['cpu', `${Math.round(process.cpuRatio * 100)}%`],
    ['loop', `${loopMs < 10 ? loopMs.toFixed(1) : Math.round(loopMs)}ms`, loopMs > 100 ? 'warn' : 'plain'],
    ['units/s', printRate(unitsPerSecond)],
    ['customers', printCount(status.customers)],
    ['subscriptions', printCount(status.subscriptions)],
  ]
  return facts.flatMap(([label, value, tone], at): Piece[] => [
    { text: `${at === 0 ? '' : '  '}${label} `, tone: 'quiet' },
    { text: value, ...(tone === undefined ? {} : { tone }) },
  ])
}

const REASONS_MAX = 3

function reasonLines({ status }: TopView): Line[] {
  return status.reasons
    .slice(0, REASONS_MAX)
    .map(({ part, reason }) => [{ text: `! ${part}: ${reason}`, tone: 'warn' as const }])
}

function narrowTables(view: TopView, width: number, room: number): Line[] {
  const wanted = [view.upstreams.length, view.subscriptions.length, view.refusals.length]
  const [upstreams = 0, subscriptions = 0, refusals = 0] = share(room - 2, wanted)
  return [
    ...upstreamTable(view, width, upstreams),
    [],
    ...subscriptionTable(view, width, subscriptions),
    [],
    ...refusalTable(view, width, refusals),
  ]
}

function wideTables(view: TopView, width: number, room: number): Line[] {
  const leftWidth = Math.floor(width / 2)
  const inLeft = leftWidth - 3
  const [upstreams = 0, refusals = 0] = share(room - 1, [view.upstreams.length, view.refusals.length])
  const left = [...upstreamTable(view, inLeft, upstreams), [], ...refusalTable(view, inLeft, refusals)]
  return beside(left, subscriptionTable(view, width - leftWidth, room), leftWidth)
}

/** Lines per table: at least a title and one row each; the rest is shared out line by line. */
export function share(room: number, wanted: readonly number[]): number[] {
  const given = wanted.map(() => 2)
  let left = room - 2 * wanted.length
  while (left > 0) {
    const hungry = given.findIndex((lines, at) => lines < (wanted[at] ?? 0) + 1 && lines === Math.min(...hungryLines()))
    if (hungry < 0) break
    given[hungry] = (given[hungry] ?? 0) + 1
    left -= 1
  }
  return given

  function hungryLines(): number[] {
    return given.filter((lines, at) => lines < (wanted[at] ?? 0) + 1)
  }
}

function upstreamTable({ upstreams }: TopView, width: number, rowsMax: number): Line[] {
  return table({
    width,
    rowsMax,
    empty: 'no nodes',
    columns: [
      { title: 'UPSTREAM', flexible: true, widthMin: 14 },
      { title: 'STATE', widthMin: 8 },
      { title: 'SLOT', align: 'right', widthMin: 11 },
      { title: 'LAG', align: 'right', widthMin: 4 },
      { title: 'MS', align: 'right', widthMin: 6 },
      { title: 'CALLS/10S', align: 'right' },
      { title: 'FAILED', align: 'right' },
    ],
    rows: upstreams.map((node): Cell[] => [
      { text: node.name },
      { text: node.state, tone: NODE_TONES[node.state] ?? 'plain' },
      { text: withCommas(node.slot) },
      { text: withCommas(node.lagSlots), tone: node.lagSlots > 0 ? 'warn' : 'plain' },
      { text: node.latencyMs === null ? '-' : String(node.latencyMs) },
      { text: printCount(node.recentCalls) },
      { text: printCount(node.recentFailures), tone: node.recentFailures > 0 ? 'bad' : 'plain' },
    ]),
  })
}

const NODE_TONES: Readonly<Record<string, Tone>> = {
  healthy: 'good',
  lagging: 'warn',
  failing: 'bad',
  drained: 'quiet',
}

/** On a narrower terminal the table of subscriptions has no bytes. */
const BYTES_WIDTH_MIN = 100

function subscriptionTable({ subscriptions }: TopView, width: number, rowsMax: number): Line[] {
  const hasBytes = width >= BYTES_WIDTH_MIN
  return table({
    width,
    rowsMax,
    empty: 'no active subscriptions in the last minute',
    columns: [
      { title: 'SUBSCRIPTION', flexible: true, widthMin: 14 },
      { title: 'CUSTOMER', widthMin: 8 },
      { title: 'PLAN', widthMin: 12 },
      { title: 'CALLS/S', align: 'right', widthMin: 7 },
      { title: 'UNITS/S', align: 'right', widthMin: 7 },
      { title: 'REFUSED', align: 'right' },
      ...(hasBytes ? [{ title: 'SENT', align: 'right' as const, widthMin: 10 }] : []),
      { title: 'STREAMS', align: 'right' },
    ],
    rows: subscriptions.map((row): Cell[] => [
      { text: row.name },
      { text: row.customer, tone: 'quiet' },
      { text: row.plan, tone: 'quiet' },
      { text: printRate(row.callsPerSecond) },
      { text: printRate(row.unitsPerSecond) },
      { text: printRate(row.refusedPerSecond), tone: row.refusedPerSecond > 0 ? 'warn' : 'plain' },
      ...(hasBytes ? [{ text: printBytesRate(row.bytesPerSecond) }] : []),
      { text: printCount(row.streams) },
    ]),
  })
}

function refusalTable({ refusals }: TopView, width: number, rowsMax: number): Line[] {
  return table({
    width,
    rowsMax,
    empty: 'no refusals',
    columns: [
      { title: 'REFUSED BY', widthMin: 14 },
      { title: 'REASON', flexible: true, widthMin: 26 },
      { title: 'PER S', align: 'right', widthMin: 7 },
      { title: 'SINCE START', align: 'right' },
    ],
    rows: refusals.map(({ part, reason, perSecond, count }): Cell[] => [
      { text: part },
      { text: reason },
      { text: printRate(perSecond), tone: perSecond > 0 ? 'warn' : 'plain' },
      { text: printCount(count), tone: 'quiet' },
    ]),
  })
}
