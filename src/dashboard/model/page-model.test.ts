import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { ContentionData, Hello, Lifecycle } from '../../contract/stream-events.ts'
import type { StreamEvent } from '../client/stream-event.ts'
import { PageModel } from './page-model.ts'

const START_MS = 1_000_000
const HELLO = { resumed: false, newest_seqno: 0, snapshot: 0 } as unknown as Hello

describe('the page’s model', () => {
  test('a block moves through the lanes and keeps the time of each stage', () => {
    const model = started()
    for (const change of [
      step('Proposed', null, 0),
      step('Voted', 'Proposed', 400),
      step('Finalized', 'Voted', 800),
      step('Verified', 'Finalized', 2000),
    ]) {
      model.apply(data(1, 'Lifecycle', change), START_MS)
    }
    assert.equal(model.blocks.countIn('Proposed'), 0)
    const [block] = model.blocks.inStage('Verified', 5)
    assert.deepEqual(block?.reachedMs, { Proposed: 0, Voted: 400, Finalized: 800, Verified: 2000 })
    assert.equal(model.blocks.medianBeforeMs('Verified'), 1200)
  })

  test('a resumed connection reports late frames and spreads their values over the time offline', () => {
    const model = started()
    model.apply(data(1, 'TPS', 100), START_MS)
    model.apply({ kind: 'connection', state: 'waiting', code: 1006, reason: '', retryInMs: 500 }, START_MS)
    model.apply({ kind: 'connection', state: 'open', resumed: true, hello: HELLO }, START_MS + 10_000)
    for (const seq of [2, 3, 4]) {
      model.apply(data(seq, 'TPS', 100 * seq, 'replay'), START_MS + 10_000)
      model.apply(data(seq, 'ContentionData', contention(seq), 'replay'), START_MS + 10_000)
    }
    assert.equal(model.facts().replaying, true)
    model.apply(data(5, 'TPS', 500), START_MS + 10_000)
    assert.equal(model.facts().replaying, false)
    assert.match(model.incidents.list()[0]?.text ?? '', /after 10 s: 6 frames of 3 blocks came late, none is missing/)
    const { times } = model.tps.read('1h', START_MS + 10_000)
    assert.equal(times.length, 5)
    assert.deepEqual(model.tps.summary('5m', START_MS + 10_000), { now: 500, average: 300, peak: 500 })
  })

  test('another proposal of a number replaces the figures of the one before it', () => {
    const model = started()
    const sibling = {
      ...contention(3),
      block_id: '0x3b',
      replaces_block_id: '0x3',
      parallel_efficiency_pct: 90,
    } as const
    for (const [at, figures] of [contention(2), contention(3), contention(4), sibling].entries())
      model.apply(data(at + 1, 'ContentionData', figures), START_MS)
    assert.deepEqual(
      model.contention
        .last(10)
        .map(({ block_number, parallel_efficiency_pct }) => [block_number, parallel_efficiency_pct]),
      [
        [2, 50],
        [3, 90],
        [4, 50],
      ],
    )
    assert.equal(model.blocks.contention(3)?.block_id, '0x3b')
  })

  test('blocks without a TPS value leave a place in the chart, not a zero', () => {
    const model = started()
    const blocks = [null, null, 450].map((tps, at) => ({ block_number: at, tps, contention: null, conflicts: null }))
    model.addEarlier({ held: [], blocks }, START_MS, 400)
    assert.deepEqual(model.tps.read('5m', START_MS), { times: [(START_MS - 400) / 1000], values: [450] })
  })

  test('a resume without frames ends after a timeout', () => {
    const model = started()
    model.apply({ kind: 'connection', state: 'waiting', code: 1006, reason: '', retryInMs: 1 }, START_MS)
    model.apply({ kind: 'connection', state: 'open', resumed: true, hello: HELLO }, START_MS + 1000)
    model.tick(START_MS + 3000)
    assert.match(model.incidents.list()[0]?.text ?? '', /no frame was missed/)
  })

  test('counts every gap and reports it as an incident', () => {
    const model = started()
    const warning = { type: 'ring_gap', from_seqno: 10, to_seqno: 19, blocks_dropped: 1 } as const
    model.apply({ kind: 'gap', reason: 'source', after: 1, frames: undefined, warning }, START_MS)
    assert.equal(model.facts().gaps, 1)
    assert.match(model.incidents.list()[0]?.text ?? '', /lost 10 events \(ring 10 to 19\); 1 blocks/)
  })

  test('reports silence once after five seconds, and its end', () => {
    const model = started()
    model.apply(data(1, 'TPS', 1), START_MS)
    model.tick(START_MS + 5000)
    assert.equal(model.incidents.count('lag'), 0)
    model.tick(START_MS + 5001)
    model.tick(START_MS + 7000)
    assert.equal(model.incidents.count('lag'), 1)
    model.apply(data(2, 'TPS', 1), START_MS + 8000)
    assert.match(model.incidents.list()[0]?.text ?? '', /Data again after 8.0 s/)
  })

  test('all collections are bounded', () => {
    const model = started()
    for (let at = 1; at <= 5000; at++) {
      const nowMs = START_MS + at * 400
      model.apply(
        data(at, 'Lifecycle', { ...step('Rejected', 'Proposed', 1), block_hash: `0x${at}`, block_number: at }),
        nowMs,
      )
      model.apply(data(at, 'ContentionData', contention(at)), nowMs)
      model.apply(data(at, 'TPS', at), nowMs)
    }
    assert.equal(model.incidents.list().length, 200)
    assert.equal(model.incidents.count('rejection'), 5000)
    assert.equal(model.blocks.countIn('Rejected'), 300)
    assert.equal(model.blocks.contentions(10_000).length, 300)
    assert.ok(model.tps.read('5m', START_MS + 5000 * 400).times.length <= 3750)
  })

  test('an hour of values has exact sum and peak', () => {
    const model = started()
    for (let at = 0; at < 9000; at++) model.apply(data(at + 1, 'TPS', at % 100), START_MS + at * 400)
    const summary = model.tps.summary('1h', START_MS + 9000 * 400)
    assert.deepEqual(summary, { now: 99, average: 50, peak: 99 })
  })
})

function started(): PageModel {
  const model = new PageModel()
  model.apply({ kind: 'connection', state: 'open', resumed: false, hello: HELLO }, START_MS)
  return model
}

function data(seq: number, kind: string, payload: unknown, origin = 'live'): StreamEvent {
  return { kind, seq, origin, data: payload } as StreamEvent
}

function step(to: Lifecycle['to_stage'], from: Lifecycle['from_stage'], ageMs: number): Lifecycle {
  const before = { Proposed: 0, Voted: 400, Finalized: 800, Verified: 2000, Rejected: 0 }
  return {
    block_hash: '0xaa',
    block_number: 7,
    from_stage: from,
    to_stage: to,
    time_in_previous_stage_ms: from === null ? null : ageMs - before[from],
    block_age_ms: ageMs,
    txn_count: 3,
    gas_used: null,
  }
}

function contention(number: number): ContentionData {
  return {
    block_number: number,
    block_id: `0x${number}`,
    block_wall_time_ns: 1,
    total_tx_time_ns: 2,
    parallel_efficiency_pct: 50,
    total_unique_slots: 1,
    contended_slot_count: 1,
    contention_ratio: 1,
    total_txn_count: 2,
    top_contended_slots: [],
    top_contended_contracts: [],
    contract_edges: [],
  }
}
