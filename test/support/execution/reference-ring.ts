import { closeSync, openSync, readSync } from 'node:fs'

/**
 * A reference reader of ring files, event by event, from the layout of the format (sections "File layout" to "Payload buffer") and
 * without Sluice's reader. For files that are no longer written.
 */
export type ReferenceEvent = {
  seqno: number
  type: number
  /** Undefined when the payload has expired. */
  payload: DataView | undefined
  timeNs: bigint
  /** Sequence number of its BLOCK_START; 0 outside a block. */
  block: number
  /** Index of the transaction; -1 outside of one. */
  txn: number
}

export type ReferenceGap = { from: number; to: number }

const SECTION = 2_097_152
/** Sluice does not copy larger payloads; the format has no such limit. */
const PAYLOAD_MAX = 2 ** 26

export function readReferenceRing(path: string): (ReferenceEvent | ReferenceGap)[] {
  const file = openSync(path, 'r')
  /** Bytes after the end of the file are zero. */
  const bytes = (position: number, length: number): DataView => {
    const read = Buffer.alloc(length)
    for (let done = 0, count = 1; done < length && count > 0; done += count)
      count = readSync(file, read, done, length - done, position + done)
    return new DataView(read.buffer, read.byteOffset, length)
  }
  const u64 = (view: DataView, at: number): number => Number(view.getBigUint64(at, true))
  const header = bytes(0, 192)
  const [capacity, room] = [u64(header, 40), u64(header, 48)]
  const [last, windowStart] = [u64(header, 64), u64(header, 128)]
  const slots = bytes(SECTION, capacity * 64)
  const slot = (seqno: number): number => ((seqno - 1) % capacity) * 64
  const isThere = (seqno: number): boolean => u64(slots, slot(seqno)) === seqno
  const isStart = (seqno: number): boolean =>
    isThere(seqno) && slots.getUint16(slot(seqno) + 8, true) === 2 && u64(slots, slot(seqno) + 24) >= windowStart

  const numbers = Array.from({ length: Math.min(last, capacity) }, (_, at) => Math.max(1, last - capacity + 1) + at)
  const first = numbers.find(isStart) ?? numbers.findLast(isThere) ?? numbers[0] ?? 1
  const events: (ReferenceEvent | ReferenceGap)[] = []
  for (let seqno = first; seqno <= last; seqno++) {
    const before = events.at(-1)
    if (!isThere(seqno)) {
      if (before !== undefined && 'from' in before) before.to = seqno
      else events.push({ from: seqno, to: seqno })
      continue
    }
    const at = slot(seqno)
    const size = slots.getUint32(at + 12, true)
    const offset = u64(slots, at + 24)
    const payload = (): DataView => {
      const section = SECTION + capacity * 64
      const position = offset % room
      const whole = Buffer.alloc(size)
      const front = bytes(section + position, Math.min(size, room - position))
      const back = bytes(section, size - front.byteLength)
      whole.set(new Uint8Array(front.buffer, front.byteOffset, front.byteLength))
      whole.set(new Uint8Array(back.buffer, back.byteOffset, back.byteLength), front.byteLength)
      return new DataView(whole.buffer, whole.byteOffset, size)
    }
    events.push({
      seqno,
      type: slots.getUint16(at + 8, true),
      payload: size > 0 && (offset < windowStart || size > PAYLOAD_MAX) ? undefined : payload(),
      timeNs: slots.getBigUint64(at + 16, true),
      block: u64(slots, at + 32),
      txn: u64(slots, at + 40) - 1,
    })
  }
  closeSync(file)
  return events
}
