import { decodeEvent } from '../../evm/event/exec-event.ts'
import { eventName } from '../../evm/event/type.ts'
import { checkRingHeader, describeHeader, HEADER_BYTES, RING_LIMITS, ringFileBytes } from '../../evm/ring/layout.ts'
import { createRingReader } from '../../evm/ring/reader.ts'
import { openToolRing, type RingForm, readToEnd } from './open-ring.ts'

/** Header and contents of a ring; only the header where it cannot be read. */
export type RingInspection = {
  path: string
  form: RingForm
  /** Null where the file has no ring header. */
  header: ReturnType<typeof describeHeader> | null
  file_bytes: number
  /** The size according to the header; a snapshot may be shorter, and the missing bytes are zero. */
  expected_bytes: number | null
  /** Why the events cannot be read; null when they can. */
  refused: string | null
  contents: RingContents | null
}

export type RingContents = {
  first_seqno: number | null
  last_seqno: number | null
  events: number
  events_lost: number
  payloads_lost: number
  /** Events whose payload does not match their type. */
  malformed: number
  /** By name; unknown types are `UNKNOWN_<code>`. */
  counts: Record<string, number>
  chain_id: string | null
  blocks_started: number
  first_block: number | null
  last_block: number | null
  first_time_ns: string | null
  last_time_ns: string | null
}

export async function inspectRing(path: string): Promise<RingInspection> {
  using ring = await openToolRing(path)
  const { form, file } = ring
  const header = new Uint8Array(HEADER_BYTES)
  file.read(0, header, 0, HEADER_BYTES)
  const check = checkRingHeader(header.subarray(0, file.sizeBytes), RING_LIMITS)
  const facts = {
    path,
    form,
    header: check.ok || check.reason !== 'not-a-ring' ? describeHeader(header) : null,
    file_bytes: file.sizeBytes,
    expected_bytes: check.ok ? ringFileBytes(check.geometry) : null,
  }
  const created = check.ok ? createRingReader(file, 'oldest') : check
  if (!created.ok) return { ...facts, refused: created.message, contents: null }

  const { reader } = created
  const contents = emptyContents()
  const counts = new Map<number, number>()
  for (const part of readToEnd(reader, file)) {
    if (part.kind === 'gap') continue
    const { batch } = part
    for (let at = 0; at < batch.count; at++) {
      const type = batch.type(at)
      counts.set(type, (counts.get(type) ?? 0) + 1)
      contents.first_seqno ??= batch.seqno(at)
      contents.last_seqno = batch.seqno(at)
      contents.first_time_ns ??= batch.timeNs(at).toString()
      contents.last_time_ns = batch.timeNs(at).toString()
      const decoded = decodeEvent(batch, at)
      if (!decoded.ok) contents.malformed += decoded.reason === 'malformed' ? 1 : 0
      else if (decoded.event.name === 'BLOCK_START') {
        const { block_number, chain_id } = decoded.event.payload
        contents.chain_id ??= chain_id.toString()
        contents.blocks_started += 1
        contents.first_block ??= Number(block_number)
        contents.last_block = Number(block_number)
      }
    }
  }
  contents.events = reader.stats.eventsRead
  contents.events_lost = reader.stats.eventsLost
  contents.payloads_lost = reader.stats.payloadsLost
  for (const [code, count] of [...counts].toSorted(([a], [b]) => a - b)) {
    contents.counts[eventName(code) ?? `UNKNOWN_${code}`] = count
  }
  return { ...facts, refused: null, contents }
}

function emptyContents(): RingContents {
  return {
    first_seqno: null,
    last_seqno: null,
    events: 0,
    events_lost: 0,
    payloads_lost: 0,
    malformed: 0,
    counts: {},
    chain_id: null,
    blocks_started: 0,
    first_block: null,
    last_block: null,
    first_time_ns: null,
    last_time_ns: null,
  }
}
