import { printBytesRate, printCount, printMillis, printRate, sparkline, withCommas } from './labels.ts'
import type { Line, Tone } from './paint.ts'
import type { TopView } from './rates.ts'
import { type Cell, table } from './table.ts'

type ProductRow = { readonly name: string; readonly perSecond: number; readonly message: string; readonly tone?: Tone }

const SPARK_MIN = 12
const SPARK_MAX = 40
const PRODUCT_ROWS_MAX = 10

/** One row per running product: rate, history, details. */
export function productRows(
  view: TopView,
  options: { readonly width: number; readonly history: Readonly<Record<string, readonly number[]>> },
): Line[] {
  const spark = Math.max(SPARK_MIN, Math.min(SPARK_MAX, Math.floor(options.width / 4) - SPARK_MIN))
  const hasHistory = Object.keys(options.history).length > 0
  return table({
    width: options.width,
    rowsMax: PRODUCT_ROWS_MAX,
    empty: '',
    columns: [
      { title: 'PRODUCT', widthMin: 9 },
      { title: 'PER S', align: 'right', widthMin: 7 },
      ...(hasHistory ? [{ title: 'LAST MINUTE', widthMin: spark }] : []),
      { title: 'NOW', flexible: true },
    ],
    rows: productsOf(view).map(({ name, perSecond, message, tone }): Cell[] => [
      { text: name, tone: 'strong' },
      { text: printRate(perSecond) },
      ...(hasHistory ? [{ text: sparkline(options.history[name] ?? [], spark), tone: 'accent' } as const] : []),
      { text: message, ...(tone === undefined ? {} : { tone }) },
    ]),
  })
}

/** The rate counts calls; for products without calls, messages out. */
export function productsOf(view: TopView): ProductRow[] {
  const { calls, streams, out, shreds, sender, indexer, execution } = view
  const rows: ProductRow[] = [
    { name: 'rpc', perSecond: calls.rpc, message: 'calls' },
    {
      name: 'ws',
      perSecond: calls.ws,
      message: words([
        `${printCount(streams.ws)} open`,
        counted(streams.wsSubscriptions, 'subscription'),
        `${printRate(out.messagesPerSecond)} out/s`,
        printBytesRate(out.bytesPerSecond),
        out.gapsReported > 0 && `${counted(out.gapsReported, 'gap')} reported`,
      ]),
    },
    {
      name: 'grpc',
      perSecond: calls.grpc,
      message: words([
        counted(streams.grpc, 'stream'),
        out.slow > 0 && `${printCount(out.slow)} disconnected as too slow`,
      ]),
    },
  ]
  if (sender !== null) rows.push(senderRow(sender))
  if (shreds !== null) rows.push(shredsRow(shreds))
  if (indexer !== null) rows.push(indexerRow(indexer))
  if (execution !== null) rows.push(executionRow(execution))
  return rows
}

function senderRow(sender: NonNullable<TopView['sender']>): ProductRow {
  return {
    name: 'sender',
    perSecond: sender.acceptedPerSecond,
    message: words([
      `${printRate(sender.landedPerSecond)} landed/s`,
      `${printCount(sender.pending)} pending`,
      sender.refusedPerSecond > 0 && `${printRate(sender.refusedPerSecond)} refused/s`,
      sender.expired > 0 && `${printCount(sender.expired)} expired`,
    ]),
  }
}

function shredsRow(shreds: NonNullable<TopView['shreds']>): ProductRow {
  const isAlarmed = shreds.alarms.length > 0
  return {
    name: 'shreds',
    perSecond: shreds.sentPerSecond,
    message: words([
      isAlarmed && `alarm: ${shreds.alarms.join(', ')}`,
      `${printRate(shreds.receivedPerSecond)} in/s`,
      counted(shreds.destinations, 'destination'),
      shreds.delayP99Seconds !== undefined && `p99 ${printMillis(shreds.delayP99Seconds)}`,
      `slot ${withCommas(shreds.newestSlot)}`,
    ]),
    ...(isAlarmed ? { tone: 'warn' } : {}),
  }
}

function indexerRow(indexer: NonNullable<TopView['indexer']>): ProductRow {
  return {
    name: 'indexer',
    perSecond: indexer.queriesPerSecond,
    message: words([
      indexer.lagSlots === undefined ? 'lag unknown' : `${counted(indexer.lagSlots, 'slot')} behind`,
      `at ${withCommas(indexer.headSlot)}`,
      `${printRate(indexer.blocksPerSecond)} blocks/s`,
      indexer.running > 0 && `${printCount(indexer.running)} running`,
    ]),
    ...(indexer.lagMs === undefined || indexer.lagMs > INDEXER_LAG_MS ? { tone: 'warn' } : {}),
  }
}

/** More than a restart or a slow batch causes. */
const INDEXER_LAG_MS = 60_000

function executionRow(execution: NonNullable<TopView['execution']>): ProductRow {
  const isSilent = execution.ageSeconds > SILENT_SECONDS
  return {
    name: 'execution',
    perSecond: execution.tps,
    message: words([
      isSilent ? `silent for ${Math.round(execution.ageSeconds)} s` : 'tx',
      execution.simulated && 'simulated',
      `block ${execution.blockNumber}`,
      counted(execution.clients, 'client'),
      `${printRate(execution.framesPerSecond)} out/s`,
      execution.gaps > 0 && counted(execution.gaps, 'gap'),
    ]),
    ...(isSilent ? { tone: 'warn' } : {}),
  }
}

/** The health endpoint reports degraded after this time. */
const SILENT_SECONDS = 10

function counted(count: number, one: string): string {
  return `${printCount(count)} ${one}${count === 1 ? '' : 's'}`
}

function words(parts: readonly (string | false)[]): string {
  return parts.filter((part) => part !== false).join(' · ')
}
