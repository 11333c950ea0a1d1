import { type CaptureFormat, openCapture } from './capture.ts'
import { readFrame } from './capture-packet.ts'
import { createListener, type ListenLine, type ListenOptions, type ListenTotals } from './listen.ts'

export type Inspection = {
  readonly format: CaptureFormat
  /** Why reading stopped before the end of the file; null when it reached the end. */
  readonly damage: string | null
  readonly records: number
  /** Frames without a complete UDP packet, by cause, and packets of other ports. */
  readonly other: Readonly<Record<'link' | 'protocol' | 'fragment' | 'cut' | 'port', number>>
  readonly totals: ListenTotals
  readonly slots: readonly ListenLine[]
  /** Number of slots beyond SLOTS_LISTED_MAX. */
  readonly slotsUnlisted: number
}

export type InspectOptions = ListenOptions & {
  /** Only packets to or from this port. */
  readonly port?: number | undefined
}

/** The slots of a capture may be in any order, so many are assembled at one time. */
const SLOTS_OPEN = 1024
const SLOTS_LISTED_MAX = 100_000
/** Records between two collections of closed slots: a file in which every packet is of another slot must not fill the memory. */
const COLLECT_RECORDS = 1024

/** Reads a capture to its end and summarizes its shreds by slot. */
export async function inspectCapture(chunks: AsyncIterable<Uint8Array>, options: InspectOptions): Promise<Inspection> {
  const capture = await openCapture(chunks)
  const listener = createListener({ slotsMax: SLOTS_OPEN, ...options })
  const other = { link: 0, protocol: 0, fragment: 0, cut: 0, port: 0 }
  const slots: ListenLine[] = []
  let [records, unlisted, lastMs] = [0, 0, 0]

  const list = (lines: readonly ListenLine[]): void => {
    for (const line of lines) {
      if (slots.length < SLOTS_LISTED_MAX) slots.push(line)
      else unlisted += 1
    }
  }
  for await (const { link, bytes, atMs } of capture.records) {
    records += 1
    if (records % COLLECT_RECORDS === 0) list(listener.closedLines())
    lastMs = atMs ?? lastMs
    if (link === undefined) {
      listener.receive(bytes, lastMs)
      continue
    }
    const content = readFrame(link, bytes)
    if (content.kind === 'other') other[content.what] += 1
    else if (options.port !== undefined && content.fromPort !== options.port && content.toPort !== options.port)
      other.port += 1
    else listener.receive(content.payload, lastMs)
  }
  const { lines, totals } = listener.end()
  list(lines)
  return {
    format: capture.format,
    damage: capture.damage() ?? null,
    records,
    other,
    totals,
    slots: slots.toSorted((a, b) => a.slot - b.slot),
    slotsUnlisted: unlisted,
  }
}
