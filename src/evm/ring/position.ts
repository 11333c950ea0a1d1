import { EVENT } from '../event/type.ts'
import { EventBatch } from './event-batch.ts'
import { descriptorOffset, type RingControl, type RingGeometry } from './layout.ts'
import { type RingSource, readDescriptors } from './source.ts'

/**
 * Where reading starts. `newest-block`: at the BLOCK_START of the newest event's block. `oldest`: at the first complete block that the
 * ring still holds.
 */
export type RingStart = 'newest-block' | 'oldest'

const SCAN_EVENTS = 512

/** The writer of a live ring continues during the search for the oldest block; descriptors this near to it are skipped. */
const OLDEST_MARGIN_EVENTS = 4096

type RingState = { source: RingSource; geometry: RingGeometry; control: RingControl }

/** The sequence number to read first. */
export function findStart(start: RingStart, state: RingState): number {
  return start === 'oldest' ? findOldestBlock(state) : findNewestBlock(state)
}

/** The BLOCK_START of the newest event's block; the newest event itself where that start is lost or it is in no block. */
function findNewestBlock(state: RingState): number {
  const scan = createScan(state)
  const newest = findNewest(state, scan)
  if (!scan.load(newest)) return newest
  const blockSeqno = scan.batch.blockSeqno(0)
  if (blockSeqno === 0 || blockSeqno > newest || !scan.load(blockSeqno)) return newest
  return scan.batch.payloadOffset(0) >= state.control.windowStart ? blockSeqno : newest
}

/** The newest committed event: `lastSeqno` is only allocated. In an empty ring, the first event to come. */
function findNewest({ geometry, control }: RingState, scan: Scan): number {
  const oldest = oldestSeqno(geometry, control)
  for (let seqno = control.lastSeqno; seqno >= oldest; seqno--) if (scan.load(seqno)) return seqno
  return oldest
}

function findOldestBlock(state: RingState): number {
  const { source, geometry, control } = state
  const scan = createScan(state)
  const margin = Math.min(OLDEST_MARGIN_EVENTS, geometry.capacity / 16)
  const mayBeOverwritten = !source.isStatic && control.lastSeqno + margin > geometry.capacity
  const from = mayBeOverwritten
    ? Math.max(1, control.lastSeqno - geometry.capacity + 1 + margin)
    : oldestSeqno(geometry, control)
  for (let seqno = from; seqno <= control.lastSeqno; seqno += SCAN_EVENTS) {
    const count = Math.min(SCAN_EVENTS, control.lastSeqno - seqno + 1)
    scan.loadMany(seqno, count)
    for (let at = 0; at < count; at++) {
      const isStart = scan.batch.seqno(at) === seqno + at && scan.batch.type(at) === EVENT.BLOCK_START
      if (isStart && scan.batch.payloadOffset(at) >= control.windowStart) return seqno + at
    }
  }
  return findNewest(state, scan)
}

/** The next committed event after `seqno`, or the number after the last allocated one when none is committed. */
export function findNextCommitted(seqno: number, state: RingState): number {
  const { lastSeqno } = state.control
  const scan = createScan(state)
  const first = Math.max(seqno + 1, oldestSeqno(state.geometry, state.control))
  for (let from = first; from <= lastSeqno; from += SCAN_EVENTS) {
    const count = Math.min(SCAN_EVENTS, lastSeqno - from + 1)
    scan.loadMany(from, count)
    for (let at = 0; at < count; at++) if (scan.batch.seqno(at) === from + at) return from + at
  }
  return lastSeqno + 1
}

function oldestSeqno({ capacity }: RingGeometry, { lastSeqno }: RingControl): number {
  return Math.max(1, lastSeqno - capacity + 1)
}

type Scan = {
  batch: EventBatch
  loadMany(seqno: number, count: number): void
  /** Loads one descriptor and returns whether it holds the event with this number. */
  load(seqno: number): boolean
}

function createScan({ source, geometry }: RingState): Scan {
  const batch = new EventBatch({ eventsMax: SCAN_EVENTS, payloadBytes: 0 })
  const loadMany = (seqno: number, count: number): void =>
    readDescriptors(source, geometry, { offset: descriptorOffset(geometry, seqno), count }, batch.descriptorBytes)
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
