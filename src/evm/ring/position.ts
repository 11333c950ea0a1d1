import { EVENT } from '../event/type.ts'
import { EventBatch } from './event-batch.ts'
import { type RingControl, type RingGeometry, slotPosition } from './layout.ts'
import { type RingSource, readSlots } from './source.ts'

/**
 * Where reading begins. `newest-block` takes the newest event and goes back to the start of its block; `oldest` takes the first
 * whole block that the ring still holds.
 */
export type RingStart = 'newest-block' | 'oldest'

const SCAN_SLOTS = 512

/** The writer of a live ring keeps moving while the oldest block is looked for; slots this near to it are left alone. */
const OLDEST_MARGIN_SLOTS = 4096

type Position = { source: RingSource; geometry: RingGeometry; control: RingControl }

/** The sequence number to read first. */
export function findStart(start: RingStart, position: Position): number {
  return start === 'oldest' ? findOldestBlock(position) : findNewestBlock(position)
}

/** The start of the block that the newest event belongs to; the newest event itself where that start is lost or there is none. */
function findNewestBlock(position: Position): number {
  const slots = createScan(position)
  const newest = findNewest(position, slots)
  if (!slots.load(newest)) return newest
  const blockSeqno = slots.batch.blockSeqno(0)
  if (blockSeqno === 0 || blockSeqno > newest || !slots.load(blockSeqno)) return newest
  return slots.batch.payloadOffset(0) >= position.control.windowStart ? blockSeqno : newest
}

/** The highest committed event: `lastSeqno` is only allocated. With nothing committed, the first that will be. */
function findNewest({ geometry, control }: Position, slots: Scan): number {
  const oldest = oldestSeqno(geometry, control)
  for (let seqno = control.lastSeqno; seqno >= oldest; seqno--) if (slots.load(seqno)) return seqno
  return oldest
}

function findOldestBlock(position: Position): number {
  const { source, geometry, control } = position
  const slots = createScan(position)
  const margin = Math.min(OLDEST_MARGIN_SLOTS, geometry.capacity / 16)
  const mayBeOverwritten = !source.isStatic && control.lastSeqno + margin > geometry.capacity
  const from = mayBeOverwritten
    ? Math.max(1, control.lastSeqno - geometry.capacity + 1 + margin)
    : oldestSeqno(geometry, control)
  for (let seqno = from; seqno <= control.lastSeqno; seqno += SCAN_SLOTS) {
    const count = Math.min(SCAN_SLOTS, control.lastSeqno - seqno + 1)
    slots.loadMany(seqno, count)
    for (let at = 0; at < count; at++) {
      const isStart = slots.batch.seqno(at) === seqno + at && slots.batch.type(at) === EVENT.BLOCK_START
      if (isStart && slots.batch.payloadOffset(at) >= control.windowStart) return seqno + at
    }
  }
  return findNewest(position, slots)
}

/** The next committed event after `seqno`, or one behind the last allocated when all are missing. */
export function findNextCommitted(seqno: number, position: Position): number {
  const { lastSeqno } = position.control
  const slots = createScan(position)
  const first = Math.max(seqno + 1, oldestSeqno(position.geometry, position.control))
  for (let from = first; from <= lastSeqno; from += SCAN_SLOTS) {
    const count = Math.min(SCAN_SLOTS, lastSeqno - from + 1)
    slots.loadMany(from, count)
    for (let at = 0; at < count; at++) if (slots.batch.seqno(at) === from + at) return from + at
  }
  return lastSeqno + 1
}

function oldestSeqno({ capacity }: RingGeometry, { lastSeqno }: RingControl): number {
  return Math.max(1, lastSeqno - capacity + 1)
}

type Scan = {
  batch: EventBatch
  loadMany(seqno: number, count: number): void
  /** Loads one descriptor and says whether its slot holds that very event. */
  load(seqno: number): boolean
}

function createScan({ source, geometry }: Position): Scan {
  const batch = new EventBatch({ eventsMax: SCAN_SLOTS, payloadBytes: 0 })
  const loadMany = (seqno: number, count: number): void =>
    readSlots(source, geometry, { slotPosition: slotPosition(geometry, seqno), count }, batch.descriptorBytes)
  return {
    batch,
    loadMany,
    load(seqno) {
      if (seqno < 1) return false
      loadMany(seqno, 1)
      return batch.seqno(0) === seqno
    },
  }
}
