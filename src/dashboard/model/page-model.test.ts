import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { ContentionData, Hello, Lifecycle } from '../../contract/stream-events.ts'
import type { StreamEvent } from '../client/stream-event.ts'
import { PageModel } from './page-model.ts'
import { history } from './test-history.ts'

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

  test('a resumed connection reports late messages, and their time in the charts is that of the history', () => {
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
    assert.match(model.incidents.list()[0]?.text ?? '', /after 10 s: 6 messages of 3 blocks came late, none is missing/)
    assert.deepEqual(model.tps.summary('5m', START_MS + 10_000), { now: 500, average: 300, peak: 500 })
    const tps = [null, null, null, 200, null, 300, null, 400, null, null]
    for (let at = 0; at < 2; at++)
      model.addHistory(history({ from_ms: START_MS, tps }), START_MS + 10_100, START_MS + 10_100)
    assert.deepEqual(model.tps.summary('5m', START_MS + 10_500), { now: 500, average: 300, peak: 500 })
  })

  test('a long replay is reported as a whole, also where no live message follows', () => {
    const model = started()
    model.apply({ kind: 'connection', state: 'waiting', code: 1006, reason: '', retryInMs: 500 }, START_MS)
    model.apply({ kind: 'connection', state: 'open', resumed: true, hello: HELLO }, START_MS + 10_000)
    const arrivals = [11_000, 12_000, 13_000]
    for (const [at, afterMs] of arrivals.entries()) {
      model.apply(data(at + 2, 'ContentionData', contention(at + 2), 'replay'), START_MS + afterMs)
      model.tick(START_MS + afterMs + 900)
    }
    assert.equal(model.facts().replaying, true)
    model.tick(START_MS + 15_000)
    assert.equal(model.facts().replaying, false)
    assert.match(model.incidents.list()[0]?.text ?? '', /: 3 messages of 3 blocks came late, none is missing/)
    assert.equal(model.facts().replayed, 3)
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

  test('seconds without a TPS value leave a place in the chart, not a zero', () => {
    const model = started()
    model.addHistory(history({ from_ms: START_MS - 3000, tps: [null, null, 450] }), START_MS, START_MS)
    const { times, values } = model.tps.read('5m', START_MS)
    assert.deepEqual([times, values], [[(START_MS - 2000) / 1000], [450]])
  })

  test('a resume without frames ends after a timeout', () => {
    const model = started()
    model.apply({ kind: 'connection', state: 'waiting', code: 1006, reason: '', retryInMs: 1 }, START_MS)
    model.apply({ kind: 'connection', state: 'open', resumed: true, hello: HELLO }, START_MS + 1000)
    model.tick(START_MS + 3000)
    assert.match(model.incidents.list()[0]?.text ?? '', /nothing was missed/)
  })

  test('counts every gap and reports it as an incident', () => {
    const model = started()
    const warning = { type: 'ring_gap', from_seqno: 10, to_seqno: 19, blocks_dropped: 1 } as const
    model.apply({ kind: 'gap', reason: 'source', after: 1, frames: undefined, warning }, START_MS)
    assert.equal(model.facts().gaps, 1)
    assert.match(model.incidents.list()[0]?.text ?? '', /lost 10 events .*1 block has no figures/)
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
    assert.deepEqual(summary, { now: 99, average: 49.5, peak: 99 })
  })
})

describe('the history', () => {
  const nowMs = START_MS + 60_000
  const blocks = [5, 6, 7, 8].map((number) => ({ number }))

  test('fills lanes, heat strip, graph, figures and their medians before the first frame', () => {
    const model = new PageModel()
    model.addHistory(history({ nowMs, blocks: [...blocks, { number: 9, stage: 'Rejected' }] }), nowMs, nowMs)
    assert.equal(model.blocks.newest(), 9)
    assert.deepEqual(
      model.blocks.inStage('Verified', 9).map(({ number, timeMs }) => [number, timeMs]),
      [
        [8, nowMs - 800],
        [7, nowMs - 1200],
        [6, nowMs - 1600],
        [5, nowMs - 2000],
      ],
    )
    assert.equal(model.blocks.countIn('Rejected'), 1)
    assert.equal(model.blocks.medianBeforeMs('Verified'), 1200)
    assert.deepEqual(model.blocks.contentions(1)[0]?.top_contended_slots, [
      { address: `0x${'a'.repeat(40)}`, slot: '0x1', txn_count: 3, access_count: 5 },
    ])
    assert.equal(model.contention.last(9).length, 5)
    assert.deepEqual([model.conflicts(8)?.depth, model.conflicts(8)?.conflict_share], [2, 0.5])
    // Its lists are shortened, so that the view of a block requests the whole ones.
    assert.equal(model.blocks.contention(8), undefined)
  })

  test('never replaces what the stream has sent, however often it is loaded', () => {
    const model = started()
    model.apply(data(1, 'ContentionData', contention(7)), nowMs)
    model.apply(data(2, 'Lifecycle', { ...step('Voted', 'Proposed', 400), block_hash: '0x7', block_number: 7 }), nowMs)
    for (let at = 0; at < 3; at++) model.addHistory(history({ nowMs, blocks }), nowMs, nowMs)
    model.apply(data(3, 'ContentionData', contention(9)), nowMs)
    assert.deepEqual(
      model.contention
        .last(9)
        .map(({ block_number, parallel_efficiency_pct }) => [block_number, parallel_efficiency_pct]),
      [
        [5, 80],
        [6, 80],
        [7, 50],
        [8, 80],
        [9, 50],
      ],
    )
    assert.deepEqual(
      model.blocks.contentions(9).map(({ block_number }) => block_number),
      [5, 6, 7, 8, 9],
    )
    assert.equal(model.blocks.contention(7)?.parallel_efficiency_pct, 50)
    assert.deepEqual(model.blocks.find(7)[0]?.stage, 'Voted')
    assert.equal(model.blocks.find(7).length, 1)
  })

  test('leaves blocks out of a lane whose last stages nobody saw, because later ones have passed them', () => {
    const model = new PageModel()
    const stuck = [{ number: 5, stage: 'Finalized' } as const, { number: 6, stage: 'Proposed' } as const]
    const waiting = [{ number: 9, stage: 'Finalized' } as const, { number: 10, stage: 'Proposed' } as const]
    model.addHistory(history({ nowMs, blocks: [...stuck, { number: 8 }, ...waiting] }), nowMs, nowMs)
    const shown = (['Proposed', 'Finalized', 'Verified'] as const).map((stage) => [
      model.blocks.countIn(stage),
      ...model.blocks.inStage(stage, 9).map(({ number }) => number),
    ])
    assert.deepEqual(shown, [
      [1, 10],
      [1, 9],
      [1, 8],
    ])
  })

  test('is on the clock of this device', () => {
    const model = new PageModel()
    model.addHistory(history({ nowMs: nowMs - 7_200_000, blocks }), nowMs - 40, nowMs + 40)
    assert.equal(model.blocks.find(8)[0]?.timeMs, nowMs - 400)
  })

  test('has the incidents of before the page was opened and of interruptions, once each', () => {
    const model = new PageModel()
    const rejection = { from_ms: nowMs - 9000, to_ms: nowMs - 9000, kind: 'rejection', block_number: 5 } as const
    const stopped = { from_ms: nowMs - 30_000, to_ms: nowMs - 20_000, kind: 'service_stopped' } as const
    model.addHistory(history({ nowMs, incidents: [stopped, rejection] }), nowMs, nowMs)
    const texts = () => model.incidents.list().map(({ text, block }) => `${text} ${block ?? ''}`.trim())
    assert.deepEqual(texts(), ['A proposal was rejected: block 5', 'The service did not run. It lasted 10 s.'])
    model.apply({ kind: 'connection', state: 'open', resumed: false, hello: HELLO }, nowMs)
    const rejected = { ...step('Rejected', 'Proposed', 1), block_hash: '0x8', block_number: 8 }
    model.apply(data(2, 'Lifecycle', rejected), nowMs + 5000)
    const later = [6, 8].map((block_number) => ({ ...rejection, from_ms: nowMs + 5000, block_number }))
    const incidents = [stopped, rejection, ...later]
    model.addHistory(history({ nowMs: nowMs + 9000, incidents }), nowMs + 9000, nowMs + 9000)
    assert.equal(texts().length, 3)
    model.apply({ kind: 'connection', state: 'waiting', code: 1006, reason: '', retryInMs: 1 }, nowMs + 9000)
    model.apply({ kind: 'connection', state: 'open', resumed: true, hello: HELLO }, nowMs + 20_000)
    const away = { ...rejection, from_ms: nowMs + 15_000, block_number: 10 }
    for (let at = 0; at < 2; at++)
      model.addHistory(
        history({ nowMs: nowMs + 20_000, incidents: [...incidents, away] }),
        nowMs + 20_000,
        nowMs + 20_000,
      )
    assert.equal(texts().filter((text) => text.endsWith('block 10')).length, 1)
    assert.equal(model.incidents.count('rejection'), 4)
  })

  test('has throughput, gas and block time of the hour', () => {
    const model = new PageModel()
    const hour = <Value>(value: Value): Value[] => Array.from({ length: 3600 }, () => value)
    const seconds = { from_ms: 0, tps: hour(900), gas_used: hour(5000), block_time_ms: hour(400) }
    model.addHistory(history(seconds), 3_600_000, 3_600_000)
    const averages = [model.tps, model.gas, model.blockTime].map((series) => {
      const { times } = series.read('1h', 3_600_000)
      return [series.summary('1h', 3_600_000)?.average, times[0], times.at(-1)]
    })
    assert.deepEqual(averages, [
      [900, 0, 3595],
      [5000, 0, 3595],
      [400, 0, 3595],
    ])
  })

  test('continues with gas and block time of the stream', () => {
    const model = started()
    for (let number = 1; number <= 50; number++) {
      const change = { ...step('Proposed', null, 0), block_hash: `0x${number}`, block_number: number } as const
      model.apply(data(number, 'Lifecycle', change), START_MS + number * 400)
      const voted = { ...change, to_stage: 'Voted', from_stage: 'Proposed', block_age_ms: 300, gas_used: 400 }
      model.apply(data(number, 'Lifecycle', voted), START_MS + number * 400 + 300)
    }
    const seenLate = { ...step('Verified', 'Finalized', 2000), block_hash: '0x99', block_number: 99, gas_used: 90_000 }
    model.apply(data(51, 'Lifecycle', seenLate), START_MS + 19_000)
    assert.equal(model.blockTime.summary('5m', START_MS + 20_400)?.average, 400)
    assert.equal(model.gas.summary('5m', START_MS + 20_400)?.now, 1000)
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
