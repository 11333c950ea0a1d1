import { closeSync, ftruncateSync, openSync, writeSync } from 'node:fs'
import { type Random, randomInt } from '../../../src/core/random.ts'
import { encodeRingHeader, type RingGeometry, ringFileBytes } from '../../../src/evm/ring/layout.ts'
import { type RingEvent, RingWriter } from '../../../src/evm/ring/writer.ts'

/**
 * A ring file with a random history: everything a node may write and some inconsistent events. Payloads are built from the offsets of
 * the format, not with Sluice's encoders.
 */
export type RandomRing = { geometry: RingGeometry; events: number; bytes: number }

export type RandomRingOptions = {
  blocks: number
  /** Corrupted events per thousand: lost, truncated, of an unknown type, of another block. */
  corruptedPerMille: number
}

export function writeRandomRing(path: string, random: Random, options: RandomRingOptions): RandomRing {
  const geometry = {
    capacity: 2 ** (16 + randomInt(random, 3)),
    payloadBytes: 2 ** (27 + randomInt(random, 2)),
    contextBytes: 0,
  }
  const file = openSync(path, 'wx+')
  const bytes = ringFileBytes(geometry)
  ftruncateSync(file, bytes)
  const write = (position: number, given: Uint8Array): void => void writeSync(file, given, 0, given.length, position)
  write(0, encodeRingHeader(geometry))
  const writer = new RingWriter(
    { geometry, ...(random.float() < 0.5 ? {} : countersNearWrap(geometry, random)) },
    { write },
  )
  const history = new RandomHistory(writer.lastSeqno, random, options)
  for (let block = 0; block < options.blocks; block++) history.block()
  writer.recordAll(history.events)
  const { lastSeqno } = writer
  if (random.float() < options.corruptedPerMille / 100) emptyDescriptors(random, geometry, lastSeqno, write)
  closeSync(file)
  return { geometry, events: history.events.length, bytes }
}

/** Counters so high that descriptors and payloads soon wrap around. */
function countersNearWrap({ capacity, payloadBytes }: RingGeometry, random: Random) {
  const nextPayloadByte = 5 * payloadBytes - 16 * randomInt(random, 4000)
  const step = 2 ** 24
  const windowStart = Math.ceil(nextPayloadByte / step) * step - (payloadBytes - step)
  return { control: { lastSeqno: 3 * capacity - 1 - randomInt(random, 300), nextPayloadByte, windowStart } }
}

/** Sequence numbers of writers that died before writing the event, possibly including the last ones. */
function emptyDescriptors(
  random: Random,
  { capacity }: RingGeometry,
  last: number,
  write: (position: number, bytes: Uint8Array) => void,
): void {
  for (let holes = 1 + randomInt(random, 3); holes > 0; holes--) {
    const seqno = Math.max(1, last - (random.float() < 0.3 ? 0 : randomInt(random, 400)))
    for (let run = 1 + randomInt(random, 3); run > 0 && seqno + run - 1 <= last; run--)
      write(2_097_152 + ((seqno + run - 2) % capacity) * 64, new Uint8Array(8))
  }
}

type Fields = { payload: Uint8Array; view: DataView }

class RandomHistory {
  readonly events: RingEvent[] = []
  readonly #first: number
  readonly #random: Random
  readonly #corruptedPerMille: number
  readonly #addresses: Uint8Array[]
  readonly #keys: Uint8Array[]
  /** Started blocks that consensus events can refer to. */
  readonly #known: { id: Uint8Array; number: number; seqno: number }[] = []
  #number: number
  #blockSeqno = 0
  #timeNs = 1_800_000_000_000_000_000n

  constructor(lastSeqno: number, random: Random, { corruptedPerMille }: RandomRingOptions) {
    this.#first = lastSeqno + 1
    this.#random = random
    this.#corruptedPerMille = corruptedPerMille
    this.#number = 1 + randomInt(random, 2 ** 30)
    this.#addresses = Array.from({ length: 1 + randomInt(random, 30) }, () => random.bytes(20))
    this.#keys = Array.from({ length: 1 + randomInt(random, 12) }, () => random.bytes(32))
  }

  block(): void {
    const chance = this.#random.float()
    // A sibling of the last block, a re-executed block, or the next one.
    const again = chance < 0.1 ? this.#known[randomInt(this.#random, Math.max(1, this.#known.length))] : undefined
    if (again === undefined && (chance > 0.3 || this.#known.length === 0)) this.#number += 1
    const number = again?.number ?? this.#number
    const id = again?.id ?? this.#random.bytes(32)
    const txns = this.#random.float() < 0.2 ? 0 : randomInt(this.#random, 9)
    this.#consensus()
    const seqno = this.#first + this.events.length
    this.#blockSeqno = seqno
    this.#add(2, 528, ({ payload, view }) => {
      payload.set(id, 0)
      view.setBigUint64(32, BigInt(number), true)
      view.setBigUint64(280, BigInt(number), true)
      view.setBigUint64(448, BigInt(txns), true)
    })
    this.#known.push({ id, number, seqno })
    this.#body(txns)
    this.#consensus()
  }

  #body(txns: number): void {
    const random = this.#random
    const fate = random.float()
    if (fate < 0.05) return this.#endBlock(3, 4)
    const hasMarkers = random.float() < 0.8
    if (hasMarkers) this.#add(4, 0)
    if (random.float() < 0.6) this.#accesses(-1, 0)
    const isInvalid = fate < 0.12
    const hasOlderOrder = random.float() < 0.3
    const steps = Array.from({ length: txns }, (_, txn) => this.#txn(txn, { hasOlderOrder, isInvalid }))
    // Events of one transaction keep their order, those of several are interleaved.
    while (steps.some((left) => left.length > 0)) steps[randomInt(random, txns)]?.shift()?.()
    if (isInvalid) return this.#endBlock(24, 16)
    if (random.float() < 0.6) this.#accesses(-1, 2)
    if (hasMarkers) this.#add(5, 0)
    // Some blocks never end: the node died, and the next block starts.
    if (fate < 0.17) return void (this.#blockSeqno = 0)
    this.#endBlock(6, 360, ({ payload, view }) => {
      payload.set(random.bytes(32), 0)
      view.setBigUint64(352, BigInt(randomInt(random, 2 ** 31)), true)
    })
  }

  #endBlock(type: number, size: number, fill?: (fields: Fields) => void): void {
    this.#add(type, size, fill)
    this.#blockSeqno = 0
  }

  #txn(txn: number, { hasOlderOrder, isInvalid }: { hasOlderOrder: boolean; isInvalid: boolean }): (() => void)[] {
    const random = this.#random
    const [lists, auths, logs, frames] = [0, 0, 2, 3].map((most) => randomInt(random, most + 2))
    const [dataBytes, hashes] = [randomInt(random, 300), randomInt(random, 3)]
    const many = (count: number | undefined, step: () => void): (() => void)[] =>
      Array.from({ length: count ?? 0 }, () => step)
    const exit = random.float() < 0.9 ? [() => this.#add(16, 0, undefined, txn)] : []
    const header = () =>
      this.#add(
        10,
        352 + dataBytes + 32 * hashes,
        ({ payload, view }) => {
          payload.set(random.bytes(32), 0)
          view.setUint32(336, dataBytes, true)
          view.setUint32(340, hashes, true)
          view.setUint32(344, lists ?? 0, true)
          view.setUint32(348, auths ?? 0, true)
        },
        txn,
      )
    const before = [
      ...(random.float() < 0.9 ? [() => this.#add(15, 0, undefined, txn)] : []),
      ...(hasOlderOrder ? exit : []),
      header,
      ...many(lists, () => this.#add(11, 28 + 32, ({ view }) => view.setUint32(24, 1, true), txn)),
      ...many(auths, () => this.#add(12, 168, undefined, txn)),
      () => this.#add(13, 0, undefined, txn),
    ]
    if (isInvalid && random.float() < 0.5) return [...before, () => this.#add(14, 4, undefined, txn), ...exit]
    return [
      ...before,
      () =>
        this.#add(
          17,
          24,
          ({ view }) => {
            view.setUint32(4, logs ?? 0, true)
            view.setUint32(16, frames ?? 0, true)
          },
          txn,
        ),
      ...many(logs, () => this.#add(18, 32 + 64 + 5, ({ view }) => view.setUint32(28, 5, true), txn)),
      ...many(frames, () => this.#add(19, 128 + randomInt(random, 5000), undefined, txn)),
      () => this.#accesses(txn, 1),
      () => this.#add(20, 0, undefined, txn),
      ...(hasOlderOrder ? [] : exit),
    ]
  }

  #accesses(txn: number, context: number): void {
    const random = this.#random
    const accounts = randomInt(random, 5)
    this.#add(
      21,
      8,
      ({ view }) => {
        view.setUint32(0, accounts, true)
        view.setUint8(4, context)
      },
      txn,
    )
    for (let account = 0; account < accounts; account++) {
      const address = random.float() < 0.1 ? random.bytes(20) : pick(this.#addresses, random)
      const [slots, transient] = [randomInt(random, 4), random.float() < 0.2 ? 1 : 0]
      this.#add(
        22,
        152,
        ({ payload, view }) => {
          view.setUint32(0, account, true)
          payload.set(address, 4)
          view.setUint32(144, slots, true)
          view.setUint32(148, transient, true)
        },
        txn,
      )
      for (let slot = 0; slot < slots + transient; slot++) {
        this.#add(
          23,
          124,
          ({ payload }) => {
            payload.set(address, 0)
            payload[25] = random.float() < 0.4 ? 1 : 0
            payload[26] = slot < slots ? 0 : 1
            payload.set(random.float() < 0.1 ? random.bytes(32) : pick(this.#keys, random), 27)
          },
          txn,
          account,
        )
      }
    }
  }

  /** Votes for known, expired and unknown blocks, in any order. */
  #consensus(): void {
    const random = this.#random
    for (let count = randomInt(random, 4); count > 0; count--) {
      const block = this.#known.at(-1 - randomInt(random, Math.min(6, Math.max(1, this.#known.length))))
      const id = block === undefined || random.float() < 0.1 ? random.bytes(32) : block.id
      const number = BigInt(block?.number ?? this.#number)
      const kind = randomInt(random, 3)
      const at = kind === 2 ? 0 : 32
      this.#add(
        7 + kind,
        [56, 40, 8][kind] as number,
        ({ payload, view }) => {
          if (kind < 2) payload.set(id, 0)
          view.setBigUint64(at, number, true)
        },
        -1,
        0,
        0,
      )
    }
    // Blocks are rejected by the sequence number of their start, also when another one has started meanwhile.
    const older = random.float() < 0.1 ? pick(this.#known, random) : undefined
    if (older !== undefined) this.#add(3, 4, undefined, -1, 0, older.seqno)
  }

  #add(
    type: number,
    size: number,
    fill?: (fields: Fields) => void,
    txnIndex = -1,
    accountIndex = 0,
    blockSeqno = this.#blockSeqno,
  ): void {
    const random = this.#random
    const payload = new Uint8Array(size)
    fill?.({ payload, view: new DataView(payload.buffer) })
    // Mostly forward, sometimes back: the clock is read before the sequence number.
    this.#timeNs += BigInt(randomInt(random, 2000) - 200)
    const event = { type, payload, timeNs: this.#timeNs, blockSeqno, txnIndex, accountIndex }
    this.events.push(randomInt(random, 1000) < this.#corruptedPerMille ? this.#corrupt(event) : event)
  }

  /** Replaces the event, so that the sequence numbers of later ones stay the same. */
  #corrupt(event: RingEvent): RingEvent {
    const random = this.#random
    switch (randomInt(random, 6)) {
      case 0:
        return { ...event, type: pick([0, 25, 99, 65_535], random) }
      case 1:
        return { ...event, payload: event.payload.subarray(0, randomInt(random, event.payload.length + 1)) }
      case 2:
        return { ...event, blockSeqno: pick([0, 1, event.blockSeqno + 1], random) }
      case 3:
        return { ...event, txnIndex: event.txnIndex < 0 ? event.txnIndex : 5000 }
      case 4:
        return { ...event, type: 1, payload: recordError(event, 2, 8192) }
      default:
        return { ...event, type: 1, payload: recordError(event, 3, 16) }
    }
  }
}

/** The event a node records in place of one that it could not record. */
function recordError({ type }: RingEvent, error: number, size: number): Uint8Array {
  const payload = new Uint8Array(size)
  const view = new DataView(payload.buffer)
  view.setUint16(0, error, true)
  view.setUint16(2, type, true)
  return payload
}

function pick<Item>(items: readonly Item[], random: Random): Item {
  return items[randomInt(random, items.length)] as Item
}
