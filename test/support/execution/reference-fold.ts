import { ReferenceLifecycle } from './reference-lifecycle.ts'
import type { ReferenceEvent, ReferenceGap } from './reference-ring.ts'

/**
 * A reference fold of events, written from the definitions without optimization, to compare with Sluice's results for the same ring.
 * Definitions: event-ring format, sections "Order of events" and "What the events mean"; execution stream, sections TPS, ContentionData,
 * TopAccesses and Lifecycle.
 */
export type ReferenceFold = {
  blocks: object[]
  lifecycle: object[]
  /** Exact counts by key; for storage the address and slot key joined. */
  accounts: Map<string, number>
  storage: Map<string, number>
}

type Access = { txn: number; address: string; slot: string; isModified: boolean }
type Spans = { enter?: bigint; exit?: bigint; header?: bigint; end?: bigint }
type Open = {
  seqno: number
  id: string
  number: number
  txnCount: number
  startNs: bigint
  evm: { enter?: bigint; exit?: bigint }
  spans: Map<number, Spans>
  accesses: Access[]
  /** Announced items not yet received, by kind; negative when more were received. */
  missing: Map<string, number>
  txns: number
  hasRecordError: boolean
}

/** Fixed payload sizes by event type, from the table of event types. */
const FIXED = [0, 16, 528, 4, 0, 0, 360, 56, 40, 8, 352, 28, 168, 0, 4, 0, 0, 24, 32, 128, 0, 8, 152, 124, 16]

export function foldReference(events: readonly (ReferenceEvent | ReferenceGap)[]): ReferenceFold {
  const blocks: object[] = []
  const lifecycle = new ReferenceLifecycle()
  const accounts = new Map<string, number>()
  const storage = new Map<string, number>()
  /** Transactions of the latest proposal of each number, since the last loss of events. */
  const counts = new Map<number, number>()
  /** The proposal of each number that was executed last. */
  const executed = new Map<number, string>()
  let open: Open | undefined

  const none = { TPS: null, ContentionData: null, conflicts: null }
  const drop = (reason: string): void => {
    if (open !== undefined) {
      blocks.push({ block_number: open.number, block_hash: open.id, ...none, reason })
      counts.delete(open.number)
    }
    open = undefined
  }
  /** The open block, if the event belongs to it; an event of another block makes it inconsistent. */
  const mine = (event: ReferenceEvent): Open | undefined => {
    if (open !== undefined && (event.block !== open.seqno || event.txn >= open.txnCount)) drop('misplaced-event')
    return open
  }
  const count = (block: Open | undefined, what: string, by: number): void =>
    void block?.missing.set(what, (block.missing.get(what) ?? 0) + by)

  for (const event of events) {
    if ('from' in event) {
      drop('gap')
      counts.clear()
      blocks.push({ Gap: { from_seqno: event.from, to_seqno: event.to, cause: 'uncommitted' } })
      continue
    }
    const { type, payload, timeNs } = event
    if (type < 1 || type >= FIXED.length) continue
    if (payload === undefined || payload.byteLength < (FIXED[type] as number)) {
      if (type === 2) {
        drop('unterminated')
        counts.clear()
      } else if (event.block === open?.seqno) drop(payload === undefined ? 'payload-lost' : 'malformed')
      continue
    }
    const u32 = (at: number): number => payload.getUint32(at, true)
    const u64 = (at: number): number => Number(payload.getBigUint64(at, true))
    const hex = (at: number, length: number): string =>
      `0x${Buffer.from(payload.buffer, payload.byteOffset + at, length).toString('hex')}`
    switch (type) {
      case 1: {
        const block = event.block === 0 ? undefined : mine(event)
        if (block === undefined) break
        block.hasRecordError = true
        if (payload.getUint16(2, true) === 10) block.txns += 1
        break
      }
      case 2:
        drop('unterminated')
        open = {
          seqno: event.seqno,
          id: hex(0, 32),
          number: u64(32),
          txnCount: u64(448),
          startNs: timeNs,
          evm: {},
          spans: new Map(),
          accesses: [],
          missing: new Map(),
          txns: 0,
          hasRecordError: false,
        }
        lifecycle.start({ id: open.id, number: open.number, txnCount: open.txnCount, seqno: event.seqno, timeNs })
        break
      case 3:
        if (open?.seqno === event.block) open = undefined
        lifecycle.reject(event.block, timeNs)
        break
      case 24:
        if (event.txn >= 0) break
        if (open?.seqno === event.block) open = undefined
        lifecycle.reject(event.block, timeNs)
        break
      case 6: {
        lifecycle.execute(event.block, { hash: hex(0, 32), gasUsed: u64(352), timeNs })
        const block = mine(event)
        if (block === undefined) break
        open = undefined
        counts.set(block.number, block.txns)
        const [b1, b2] = [counts.get(block.number - 2), counts.get(block.number - 1)]
        const TPS = b1 === undefined || b2 === undefined ? null : b1 + b2 + Math.floor(block.txns / 2)
        const line = { block_number: block.number, block_hash: block.id, TPS }
        const before = executed.get(block.number)
        executed.set(block.number, block.id)
        const replaces = before === undefined || before === block.id ? {} : { replaces_block_id: before }
        const isShort = block.txns < block.txnCount || [...block.missing.values()].some((missing) => missing > 0)
        const reason = block.hasRecordError ? 'record-error' : isShort ? 'shortfall' : null
        if (reason !== null) blocks.push({ ...line, ContentionData: null, conflicts: null, reason })
        else blocks.push({ ...line, ...contentionOf(block, timeNs, replaces), reason })
        break
      }
      case 7:
        lifecycle.vote(hex(0, 32), timeNs)
        break
      case 8:
        lifecycle.finalize(hex(0, 32), u64(32), timeNs)
        break
      case 9:
        lifecycle.verify(u64(0), timeNs)
        break
      case 22: {
        add(accounts, hex(4, 20))
        const block = mine(event)
        count(block, 'account', -1)
        count(block, 'storage', u32(144))
        count(block, 'transient', u32(148))
        break
      }
      case 23: {
        const access = {
          txn: event.txn,
          address: hex(0, 20),
          slot: hex(27, 32),
          isModified: payload.getUint8(25) === 1,
        }
        add(storage, `${access.address} ${access.slot}`)
        const block = mine(event)
        const isTransient = payload.getUint8(26) === 1
        count(block, isTransient ? 'transient' : 'storage', -1)
        if (!isTransient) block?.accesses.push(access)
        break
      }
      default: {
        const block = mine(event)
        if (block === undefined) break
        const spans = block.spans.getOrInsertComputed(event.txn, () => ({}))
        if (type === 4) block.evm.enter = timeNs
        if (type === 5) block.evm.exit = timeNs
        if (type === 10) {
          block.txns += 1
          spans.header = timeNs
          count(block, 'access list', u32(344))
          count(block, 'authorizations', u32(348))
        }
        if (type === 11) count(block, 'access list', -1)
        if (type === 12) count(block, 'authorizations', -1)
        if (type === 15) spans.enter = timeNs
        if (type === 16) spans.exit = timeNs
        if (type === 17) {
          count(block, 'logs', u32(4))
          count(block, 'frames', u32(16))
        }
        if (type === 18) count(block, 'logs', -1)
        if (type === 19) count(block, 'frames', -1)
        if (type === 20) spans.end = timeNs
        if (type === 21) count(block, 'account', u32(0))
      }
    }
  }
  drop('unfinished')
  return { blocks, lifecycle: lifecycle.records(), accounts, storage }
}

function contentionOf(block: Open, endNs: bigint, replaces: object): { ContentionData: object; conflicts: object } {
  const byTxns = block.accesses.filter(({ txn }) => txn >= 0)
  const slots = [...Map.groupBy(byTxns, ({ address, slot }) => `${address} ${slot}`)].map(([key, accesses]) => ({
    address: key.slice(0, 42),
    slot: key.slice(43),
    txn_count: new Set(accesses.map(({ txn }) => txn)).size,
    access_count: block.accesses.filter(({ address, slot }) => `${address} ${slot}` === key).length,
    isWritten: accesses.some(({ isModified }) => isModified),
  }))
  const contended = slots.filter(({ txn_count }) => txn_count >= 2)
  const contracts = [...Map.groupBy(slots, ({ address }) => address)].map(([address, own]) => {
    const contended_slots = own.filter(({ txn_count }) => txn_count >= 2).length
    const total_accesses = own.reduce((sum, { access_count }) => sum + access_count, 0)
    const contention_score = contended_slots / own.length
    return { address, total_slots: own.length, contended_slots, total_accesses, contention_score }
  })
  const edges = new Map<string, number>()
  for (const accesses of Map.groupBy(byTxns, ({ txn }) => txn).values()) {
    const touched = [...new Set(accesses.map(({ address }) => address))].sort()
    for (const [at, a] of touched.entries()) for (const b of touched.slice(at + 1)) add(edges, `${a} ${b}`)
  }
  const spent = [...block.spans.values()].reduce((sum, spans) => sum + spanOf(spans), 0)
  const wall = between(block.startNs, endNs)
  const text = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)
  return {
    ContentionData: {
      block_number: block.number,
      block_id: block.id,
      ...replaces,
      block_wall_time_ns: wall,
      total_tx_time_ns: spent,
      parallel_efficiency_pct: spent === 0 ? 0 : (Math.max(0, spent - wall) / spent) * 100,
      total_unique_slots: slots.length,
      contended_slot_count: contended.length,
      contention_ratio: slots.length === 0 ? 0 : contended.length / slots.length,
      total_txn_count: block.txnCount,
      top_contended_slots: contended
        .toSorted(
          (a, b) =>
            b.txn_count - a.txn_count ||
            b.access_count - a.access_count ||
            text(a.address, b.address) ||
            text(a.slot, b.slot),
        )
        .slice(0, 20)
        .map(({ address, slot, txn_count, access_count }) => ({ address, slot, txn_count, access_count })),
      top_contended_contracts: contracts
        .filter(({ contended_slots }) => contended_slots > 0)
        .toSorted(
          (a, b) =>
            b.contended_slots - a.contended_slots ||
            b.contention_score - a.contention_score ||
            text(a.address, b.address),
        )
        .slice(0, 15),
      contract_edges: [...edges]
        .toSorted((a, b) => b[1] - a[1] || text(a[0], b[0]))
        .slice(0, 15)
        .map(([key, txns]) => ({ contract_a: key.slice(0, 42), contract_b: key.slice(43), shared_txn_count: txns })),
    },
    conflicts: {
      block_number: block.number,
      block_id: block.id,
      ...replaces,
      contended_with_writer: contended.filter(({ isWritten }) => isWritten).length,
      evm_time_ns: spanOrNull(block.evm.enter, block.evm.exit),
      commit_time_ns: spanOrNull(block.evm.exit, endNs),
      ...wavesOf(byTxns, block.txnCount),
    },
  }
}

/** A transaction runs in the wave after the last one in which an earlier transaction wrote a slot that it touches. */
function wavesOf(accesses: readonly Access[], txnCount: number): object {
  const waveOf: number[] = []
  for (let txn = 0; txn < txnCount; txn++) {
    const touched = new Set(accesses.filter((access) => access.txn === txn).map(({ address, slot }) => address + slot))
    const waits = accesses.filter(
      (access) => access.txn < txn && access.isModified && touched.has(access.address + access.slot),
    )
    waveOf.push(1 + Math.max(0, ...waits.map((access) => waveOf[access.txn] as number)))
  }
  const depth = Math.max(0, ...waveOf)
  if (depth === 0) return { depth, waves: [], factor: 0, score: 0, conflict_share: 0 }
  const waves = Array.from({ length: depth }, (_, at) => waveOf.filter((wave) => wave === at + 1).length)
  const factor = txnCount / depth
  return {
    depth,
    waves: waves.slice(0, 64),
    factor,
    score: Math.round(100 * (1 - 1 / factor)),
    conflict_share: (txnCount - (waves[0] as number)) / txnCount,
  }
}

function spanOf({ enter, exit, header, end }: Spans): number {
  if (enter !== undefined && exit !== undefined) return between(enter, exit)
  return header !== undefined && end !== undefined ? between(header, end) : 0
}

function spanOrNull(from: bigint | undefined, to: bigint | undefined): number | null {
  return from === undefined || to === undefined ? null : between(from, to)
}

/** Clocks of a ring are not monotonic: a negative duration counts as 0. */
function between(from: bigint, to: bigint): number {
  return to > from ? Number(to - from) : 0
}

function add(counts: Map<string, number>, key: string): void {
  counts.set(key, (counts.get(key) ?? 0) + 1)
}
