import { createReadStream } from 'node:fs'
import { open } from 'node:fs/promises'
import { basename } from 'node:path'
import { pipeline, type Readable } from 'node:stream'
import { createGunzip } from 'node:zlib'
import { type FormerFields, toWireJson } from '../../../../contract/wire-json.ts'
import { messageOf, ServiceError } from '../../../../core/error.ts'
import { parseDuration } from '../../../../core/human-units.ts'
import { systemClock } from '../../../../platform/process/clock.ts'
import { openUdpSocket } from '../../../../platform/udp/socket.ts'
import type { LeaderRange } from '../../../../shreds/relay/leaders.ts'
import { type Inspection, inspectCapture } from '../../../../shreds/tools/inspect.ts'
import { createListener, type ListenLine, type ListenTotals } from '../../../../shreds/tools/listen.ts'
import type { ListedMarker, RebuiltBlock } from '../../../../shreds/tools/rebuild-block.ts'
import type { CliContext, ListFlags } from '../../../define.ts'
import { type Column, printFacts, printJson, printList, write } from '../../../output/print.ts'

type WatchFlags = ListFlags & { leader?: string; slotMs?: string; for?: string }
export type InspectFlags = WatchFlags & { listen?: string; port?: string; transactions?: boolean }
export type ListenFlags = WatchFlags & { host?: string }

/** Recommended receive buffer for shreds. */
const RECEIVE_BUFFER_BYTES = 25 * 1024 * 1024
const LOOK_MS = 250
/** Block markers of a slot in a table row. */
const MARKERS_SHOWN_MAX = 4
const QUIET_MS = 3_000
/** A destination that refused packets is retried after up to 30 s (shreds/destinations/health.ts). */
const WAITING_HINT = 'no shreds yet; if the port was closed before, the first shreds arrive within 30 s'
/** The first two bytes of a gzip file (RFC 1952). */
const GZIP_MAGIC = 0x1f8b
const FORMER_FIELDS: FormerFields = {
  coding: 'code',
  fecSets: 'sets',
  inconsistent: 'odd',
  isComplete: 'is_whole',
  completeMs: 'whole_ms',
  completeAfterMs: 'whole_after_ms',
  slotsComplete: 'slots_whole',
}

export async function inspectShreds(this: CliContext, flags: InspectFlags, file?: string): Promise<void> {
  if (flags.listen !== undefined) return listenOn(this, flags, '0.0.0.0', portOf(flags.listen))
  if (file === undefined)
    throw new ServiceError('invalid-value', 'give a capture to read, or a port with --listen PORT')
  const note: { damage?: string } = {}
  const inspected = await inspectCapture(readChunks(file, note), {
    slotMs: slotMsOf(flags),
    leaders: leadersOf(flags.leader ?? keyInName(file)),
    ...(flags.port === undefined ? {} : { port: portOf(flags.port) }),
    verifyTransactions: flags.transactions === true,
  })
  const inspection = { ...inspected, damage: note.damage ?? inspected.damage }
  if (isJson(flags)) printJson(this, inspection, FORMER_FIELDS)
  else printInspection(this, flags, inspection)
  if (inspection.totals.packets === 0) {
    throw new ServiceError('invalid-value', `${file} contains no UDP packets and no shreds${damageWords(inspection)}`)
  }
}

export async function listenToShreds(this: CliContext, flags: ListenFlags, port: string): Promise<void> {
  await listenOn(this, flags, flags.host ?? '0.0.0.0', portOf(port))
}

/** Prints slots as they complete, until the time is over or a signal arrives. */
async function listenOn(context: CliContext, flags: WatchFlags, host: string, port: number): Promise<void> {
  const { process } = context
  const listener = createListener({ slotMs: slotMsOf(flags), leaders: leadersOf(flags.leader) })
  using socket = await openUdpSocket(
    { listen: { host, port }, receiveBufferBytes: RECEIVE_BUFFER_BYTES },
    (packet, from) => {
      const echo = listener.receive(packet, systemClock.monotonicMs())
      if (echo === undefined) return
      socket.send(echo, from)
      write(context, `challenge echoed: ${Buffer.from(echo).toString().trim()}`)
    },
  )
  write(context, `listening on UDP ${socket.address.host}:${socket.address.port}; Ctrl-C prints the totals and exits`)
  const hint = systemClock.setTimer(QUIET_MS, () => {
    if (listener.totals().packets === 0) write(context, WAITING_HINT)
  })
  const { promise: ended, resolve: end } = Promise.withResolvers<void>()
  process.once('SIGINT', end)
  process.once('SIGTERM', end)
  const limit = flags.for === undefined ? undefined : systemClock.setTimer(durationOf(flags.for), end)
  const print = createLinePrinter(context, flags)
  const printing = systemClock.setRepeating(LOOK_MS, () => print(listener.lines()))
  await ended
  limit?.cancel()
  hint.cancel()
  printing.cancel()
  const { lines, totals } = listener.end()
  print(lines)
  if (isJson(flags)) process.stdout.write(`${JSON.stringify(toWireJson({ totals }, FORMER_FIELDS))}\n`)
  else printTotals(context, totals)
}

/** Prints JSON lines, or a table or CSV with one header. */
function createLinePrinter(context: CliContext, flags: WatchFlags): (lines: readonly ListenLine[]) => void {
  let isContinued = false
  return (lines) => {
    if (lines.length === 0) return
    if (isJson(flags)) {
      for (const line of lines) context.process.stdout.write(`${JSON.stringify(toWireJson(line, FORMER_FIELDS))}\n`)
    } else printList(context, flags, { rows: lines, empty: 'no shreds', columns: COLUMNS, isContinued })
    isContinued = true
  }
}

const COLUMNS: readonly Column<ListenLine>[] = [
  { title: 'SLOT', value: (row) => row.slot },
  { title: 'PARENT', value: (row) => row.parentSlot, wide: true },
  { title: 'VERSION', value: (row) => row.version, wide: true },
  { title: 'DATA', value: (row) => row.data },
  { title: 'CODING', former: 'code', value: (row) => row.coding },
  { title: 'FEC SETS', former: 'sets', value: (row) => row.fecSets, wide: true },
  { title: 'RECOVERED', value: (row) => row.recovered },
  { title: 'MISSING', value: (row) => row.missing },
  { title: 'DUPLICATES', value: (row) => row.duplicates },
  { title: 'INCONSISTENT', former: 'odd', value: (row) => row.inconsistent },
  { title: 'SIGNATURE', value: (row) => row.signature },
  {
    title: 'COMPLETE',
    wire: 'is_complete',
    former: 'whole',
    value: (row) => row.isComplete,
    show: (row) => (row.isComplete ? 'yes' : 'no'),
  },
  { title: 'ENTRIES', value: (row) => row.block?.entries },
  { title: 'TXNS', value: (row) => row.block?.transactions },
  {
    title: 'MARKERS',
    value: (row) => row.block?.markersListed.map(markerText),
    show: (row) => markersText(row.block),
  },
  { title: 'BAD TXNS', value: (row) => row.block?.badTransactions, wide: true },
  { title: 'LATENCY MS', value: (row) => Math.round(row.latencyMs) },
  {
    title: 'COMPLETE AFTER MS',
    former: 'whole_after_ms',
    value: (row) => row.completeAfterMs && Math.round(row.completeAfterMs),
    wide: true,
  },
  { title: 'BLOCKHASH', value: (row) => row.block?.blockhash, wide: true },
  { title: 'SHA256', value: (row) => row.block?.sha256, wide: true },
]

/** `update-parent 98`; an unknown one with its version and kind. */
function markerText({ variant, version, kind, parentSlot }: ListedMarker): string {
  if (variant === 'unknown') return kind === undefined ? `version ${version}` : `kind ${kind}`
  return parentSlot === undefined ? variant : `${variant} ${parentSlot}`
}

function markersText(block: RebuiltBlock | undefined): string {
  if (block === undefined || block.markers === 0) return '-'
  const shown = block.markersListed.slice(0, MARKERS_SHOWN_MAX).map(markerText)
  const more = block.markers - shown.length
  return [...shown, ...(more > 0 ? [`${more} more`] : [])].join(', ')
}

function printInspection(context: CliContext, flags: InspectFlags, inspection: Inspection): void {
  printList(context, flags, { rows: inspection.slots, empty: 'no shreds', columns: COLUMNS })
  if (flags.output === 'csv') return
  const { link, protocol, fragment, cut, port } = inspection.other
  write(
    context,
    `${inspection.format}: ${inspection.records} records; skipped: ${protocol} of other protocols, ${link} of unknown link types, ${fragment} fragments, ${cut} truncated, ${port} of other ports${damageWords(inspection)}`,
  )
  printTotals(context, inspection.totals)
}

function damageWords({ damage }: Inspection): string {
  return damage === null ? '' : `; the file is damaged: ${damage}`
}

function printTotals(context: CliContext, totals: ListenTotals): void {
  const faults = Object.entries(totals.faults).map(([fault, count]) => `${fault} ${count}`)
  printFacts(context, [
    ['packets', totals.packets],
    ['bytes', totals.bytes],
    ['duplicates', totals.duplicates],
    ['after their slot', totals.late],
    ['malformed', faults.length === 0 ? totals.malformed : `${totals.malformed} (${faults.join(', ')})`],
    ['slots', `${totals.slots}, ${totals.slotsComplete} complete, ${totals.slotsMissing} missing`],
    ['data shreds', `${totals.recovered} recovered, ${totals.missing} missing`],
    ['latency', latencyWords(totals)],
  ])
}

function latencyWords({ latencyMsP50, latencyMsP99 }: ListenTotals): string | undefined {
  if (latencyMsP50 === undefined || latencyMsP99 === undefined) return undefined
  return `p50 ${Math.round(latencyMsP50)} ms, p99 ${Math.round(latencyMsP99)} ms after the time expected from the earliest slot`
}

/** A file in chunks, decompressed if necessary. A truncated gzip file yields everything before the cut and sets `damage`. */
async function* readChunks(file: string, note: { damage?: string }): AsyncIterable<Uint8Array> {
  let hasBegun = false
  try {
    for await (const chunk of await openUnpacked(file)) {
      hasBegun = true
      yield chunk as Uint8Array
    }
  } catch (cause) {
    const isPacking = String((cause as NodeJS.ErrnoException).code).startsWith('Z_')
    if (!hasBegun || !isPacking)
      throw new ServiceError('invalid-value', `${file} cannot be read: ${messageOf(cause)}`, { cause })
    note.damage = `it cannot be decompressed to its end (${messageOf(cause)})`
  }
}

async function openUnpacked(file: string): Promise<Readable> {
  const isPacked = await beginsLikeGzip(file)
  const stream = createReadStream(file)
  // Errors surface at the stream that is read; without a handler an error of the file stream would end the process.
  return isPacked ? pipeline(stream, createGunzip(), () => {}) : stream
}

async function beginsLikeGzip(file: string): Promise<boolean> {
  await using handle = await open(file)
  const { buffer, bytesRead } = await handle.read(Buffer.alloc(2), 0, 2, 0)
  return bytesRead === 2 && buffer.readUInt16BE(0) === GZIP_MAGIC
}

function leadersOf(identity: string | undefined): LeaderRange[] {
  return identity === undefined ? [] : [{ fromSlot: 0, toSlot: Number.MAX_SAFE_INTEGER, identities: [identity] }]
}

/** Test archives have the leader in their name: `kind-KEY.ar`. */
function keyInName(file: string): string | undefined {
  return /-([1-9A-HJ-NP-Za-km-z]{32,44})\.ar$/.exec(basename(file))?.[1]
}

function isJson(flags: WatchFlags): boolean {
  return flags.json === true || flags.output === 'json'
}

/** Without the flag it is learned from the shreds. */
function slotMsOf({ slotMs }: WatchFlags): number | undefined {
  if (slotMs === undefined) return undefined
  return numberOf(slotMs, 'a slot length', 1, 60_000)
}

function portOf(text: string): number {
  return numberOf(text, 'a port', 0, 65_535)
}

function durationOf(text: string): number {
  const ms = parseDuration(text)
  if (ms !== undefined && ms > 0) return ms
  throw new ServiceError('invalid-value', `"${text}" is not a time span: write one such as 30s or 5m`)
}

function numberOf(text: string, what: string, min: number, max: number): number {
  const value = Number(text)
  if (/^\d+$/.test(text) && value >= min && value <= max) return value
  throw new ServiceError('invalid-value', `"${text}" is not ${what}: give a number from ${min} to ${max}`)
}
