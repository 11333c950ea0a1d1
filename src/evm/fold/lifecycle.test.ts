import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { idOf } from '../test-block.ts'
import { LifecycleFold } from './lifecycle.ts'
import type { LifecycleChange } from './lifecycle-entry.ts'

/** Events with their millisecond: `start 7a`, `qc 7a`, `final 7a`, `verify 7`, `reject 7a`, `end 7a`. */
type Step = `${'start' | 'qc' | 'final' | 'verify' | 'reject' | 'end'} ${string}`

const nsOf = (ms: number): bigint => 1_800_000_000_000_000_000n + BigInt(ms) * 1_000_000n

/** `7a` is the first proposal of number 7, `7b` the second. */
function blockOf(name: string): { id: `0x${string}`; number: number; blockSeqno: number } {
  const number = Number.parseInt(name, 10)
  const fork = name.endsWith('b') ? 2 : 1
  return { id: idOf(number, fork), number, blockSeqno: number * 10 + fork }
}

function nameOf({ block_hash, block_number }: { block_hash: string; block_number: number }): string {
  return `${block_number}${block_hash === idOf(block_number, 2) ? 'b' : 'a'}`
}

function play(fold: LifecycleFold, steps: readonly Step[], startMs = 0): LifecycleChange[] {
  return steps.flatMap((step, at) => {
    const [what, name] = step.split(' ') as [string, string]
    const block = { ...blockOf(name), timeNs: nsOf(startMs + at * 100) }
    switch (what) {
      case 'start':
        return fold.proposed({ ...block, txnCount: 5 })
      case 'qc':
        return fold.voted(block)
      case 'final':
        return fold.finalized(block)
      case 'verify':
        return fold.verified(block)
      case 'reject':
        return fold.rejected(block)
      default:
        fold.executed({ ...block, ethBlockHash: idOf(block.number, 0xe), gasUsed: 21_000 })
        return []
    }
  })
}

const report = (changes: readonly LifecycleChange[]): string[] =>
  changes.map((change) => `${nameOf(change)} ${change.from_stage ?? '-'} ${change.to_stage}`)

describe('lifecycle', () => {
  const table: [name: string, steps: Step[], changes: string[], active: string[]][] = [
    [
      'the usual way',
      ['start 7a', 'qc 7a', 'final 7a', 'verify 7'],
      ['7a - Proposed', '7a Proposed Voted', '7a Voted Finalized', '7a Finalized Verified'],
      [],
    ],
    ['a vote may be skipped', ['start 7a', 'final 7a'], ['7a - Proposed', '7a Proposed Finalized'], ['7a Finalized']],
    [
      'repeated events change nothing',
      ['start 7a', 'start 7a', 'qc 7a', 'qc 7a', 'final 7a', 'final 7a', 'verify 7', 'verify 7'],
      ['7a - Proposed', '7a Proposed Voted', '7a Voted Finalized', '7a Finalized Verified'],
      [],
    ],
    [
      'stages never go back',
      ['start 7a', 'final 7a', 'qc 7a'],
      ['7a - Proposed', '7a Proposed Finalized'],
      ['7a Finalized'],
    ],
    ['a vote for an unknown id is not given to its sibling', ['start 7a', 'qc 7b'], ['7a - Proposed'], ['7a Proposed']],
    [
      'finalizing one proposal abandons the others',
      ['start 7a', 'start 7b', 'qc 7a', 'qc 7b', 'final 7b'],
      [
        '7a - Proposed',
        '7b - Proposed',
        '7a Proposed Voted',
        '7b Proposed Voted',
        '7b Voted Finalized',
        '7a Voted Rejected',
      ],
      ['7b Finalized'],
    ],
    [
      'also when the finalized one was never seen',
      ['start 7a', 'start 8a', 'final 7b'],
      ['7a - Proposed', '8a - Proposed', '7a Proposed Rejected'],
      ['8a Proposed'],
    ],
    [
      'what was rejected stays so',
      ['start 7a', 'reject 7a', 'qc 7a', 'final 7a', 'verify 7'],
      ['7a - Proposed', '7a Proposed Rejected'],
      [],
    ],
    [
      'a rejected block that is executed again begins again',
      ['start 7a', 'reject 7a', 'start 7a', 'end 7a', 'final 7a', 'verify 7'],
      ['7a - Proposed', '7a Proposed Rejected', '7a - Proposed', '7a Proposed Finalized', '7a Finalized Verified'],
      [],
    ],
    [
      'not where another block of its number is final',
      ['start 7a', 'start 7b', 'final 7b', 'start 7a', 'verify 7', 'start 7a'],
      ['7a - Proposed', '7b - Proposed', '7b Proposed Finalized', '7a Proposed Rejected', '7b Finalized Verified'],
      [],
    ],
    ['a rejection of an unknown block is ignored', ['start 7a', 'reject 7b'], ['7a - Proposed'], ['7a Proposed']],
    [
      'only a finalized block is verified',
      ['start 7a', 'qc 7a', 'verify 7'],
      ['7a - Proposed', '7a Proposed Voted'],
      ['7a Voted'],
    ],
    [
      'a verified number lets go of all below it',
      ['start 6a', 'start 7a', 'final 6a', 'final 7a', 'start 8a', 'verify 7'],
      [
        '6a - Proposed',
        '7a - Proposed',
        '6a Proposed Finalized',
        '7a Proposed Finalized',
        '8a - Proposed',
        '7a Finalized Verified',
      ],
      ['8a Proposed'],
    ],
    ['the end of a block is no stage', ['start 7a', 'end 7a'], ['7a - Proposed'], ['7a Proposed']],
  ]
  for (const [name, steps, changes, active] of table) {
    test(name, () => {
      const fold = new LifecycleFold()
      assert.deepEqual(report(play(fold, steps)), changes)
      assert.deepEqual(
        fold.activeChanges().map((change) => `${nameOf(change)} ${change.to_stage}`),
        active,
      )
    })
  }

  test('R16: a rejection applies to the block of the event, not to the newest one', () => {
    const fold = new LifecycleFold()
    const changes = play(fold, ['start 7a', 'start 7b', 'start 8a', 'reject 7a'])
    assert.deepEqual(report(changes), ['7a - Proposed', '7b - Proposed', '8a - Proposed', '7a Proposed Rejected'])
    const active = fold.activeChanges().map((change) => `${nameOf(change)} ${change.to_stage}`)
    assert.deepEqual(active, ['7b Proposed', '8a Proposed'])
  })

  test('a change has the times of the ring and the known fields of the block', () => {
    const fold = new LifecycleFold()
    const changes = play(fold, ['start 7a', 'end 7a', 'qc 7a', 'final 7a'])
    const common = { block_hash: idOf(7, 1), block_number: 7, txn_count: 5 }
    assert.deepEqual(changes, [
      {
        ...common,
        from_stage: null,
        to_stage: 'Proposed',
        time_in_previous_stage_ms: null,
        block_age_ms: 0,
        gas_used: null,
      },
      {
        ...common,
        from_stage: 'Proposed',
        to_stage: 'Voted',
        time_in_previous_stage_ms: 200,
        block_age_ms: 200,
        gas_used: 21_000,
      },
      {
        ...common,
        from_stage: 'Voted',
        to_stage: 'Finalized',
        time_in_previous_stage_ms: 100,
        block_age_ms: 300,
        gas_used: 21_000,
      },
    ])
    assert.deepEqual(fold.record(7), {
      ...changes[2],
      current_stage: 'Finalized',
      eth_block_hash: idOf(7, 0xe),
      stage_timings_ms: { Proposed: 0, Voted: 200, Finalized: 300 },
      execution_time_ms: 100,
      total_age_ms: 300,
    })
  })

  test('a clock that goes back gives zero durations, not negative ones', () => {
    const fold = new LifecycleFold()
    fold.proposed({ ...blockOf('7a'), txnCount: 0, timeNs: nsOf(1000) })
    const [voted] = fold.voted({ id: idOf(7, 1), timeNs: nsOf(400) })
    assert.deepEqual([voted?.time_in_previous_stage_ms, voted?.block_age_ms], [0, 0])
  })

  test('a block executed again in another ring keeps its stage, and its end is found by its new sequence number', () => {
    const fold = new LifecycleFold()
    play(fold, ['start 7a', 'qc 7a'])
    fold.forgetSeqnos()
    assert.deepEqual(fold.rejected({ blockSeqno: 71, timeNs: nsOf(0) }), [])
    assert.deepEqual(fold.proposed({ ...blockOf('7a'), blockSeqno: 1, txnCount: 5, timeNs: nsOf(9000) }), [])
    fold.executed({ blockSeqno: 1, ethBlockHash: idOf(7, 0xe), gasUsed: 3, timeNs: nsOf(9050) })
    const record = fold.record(7)
    assert.deepEqual([record?.current_stage, record?.gas_used, record?.execution_time_ms], ['Voted', 3, 50])
  })

  test('record returns the finalized proposal of a number, else the newest', () => {
    const fold = new LifecycleFold()
    play(fold, ['start 7a', 'start 7b'])
    assert.equal(fold.record(7)?.block_hash, idOf(7, 2))
    play(fold, ['final 7a'])
    assert.equal(fold.record(7)?.block_hash, idOf(7, 1))
    assert.equal(fold.record(8), undefined)
  })

  test('records: completed ones oldest first, then active ones by number', () => {
    const fold = new LifecycleFold()
    play(fold, ['start 9a', 'start 7a', 'start 7b', 'start 8a', 'final 7a', 'verify 7'])
    assert.deepEqual(
      fold.records().map((record) => `${nameOf(record)} ${record.current_stage}`),
      ['7b Rejected', '7a Verified', '8a Proposed', '9a Proposed'],
    )
  })

  test('keeps at most completedMax and activeMax blocks', () => {
    const fold = new LifecycleFold({ completedMax: 2, activeMax: 3 })
    play(fold, ['start 1a', 'reject 1a', 'start 2a', 'reject 2a', 'start 3a', 'reject 3a'])
    assert.deepEqual(
      fold.records().map(({ block_number }) => block_number),
      [2, 3],
    )
    play(fold, ['start 4a', 'start 5a', 'start 6a', 'start 7a'])
    assert.deepEqual(
      fold.activeChanges().map(({ block_number }) => block_number),
      [5, 6, 7],
    )
    assert.equal(fold.stats.forgotten, 1)
    assert.deepEqual(play(fold, ['reject 1a', 'qc 4a']), [])
    assert.equal(fold.stats.unknownIds, 2)
  })
})
