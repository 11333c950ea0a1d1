import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { createManualClock } from '../../src/core/clock.ts'
import { EVENT } from '../../src/evm/event/type.ts'
import { HEADER } from '../../src/evm/ring/layout.ts'
import { idOf, recordBlock, recordOpenBlock } from '../../src/evm/test-block.ts'
import { startRingWriter } from '../../src/localnet/ring/writer-service.ts'
import { makeTestFolder } from '../../src/platform/files/test-folder.ts'
import { createLogger } from '../../src/platform/telemetry/logger.ts'
import { recordedDataFolder, skipWithoutRecordedData } from '../recorded-data.ts'
import { sluiceHere } from '../support/cli/in-process.ts'
import { createTestRing, fillTestRing, type TestRing, writeRingFiles } from '../support/execution/ring-snapshots.ts'

type Line = Record<string, unknown> & {
  block_number?: number
  TPS?: number | null
  ContentionData?: Record<string, unknown> | null
  reason?: string | null
  Lifecycle?: Record<string, unknown>
  TopAccesses?: { account: { key: string; count: number }[]; storage: { count: number }[] }
}

async function fold(path: string, ...more: string[]): Promise<{ lines: Line[]; stderr: string }> {
  const { code, stdout, stderr } = await sluiceHere(['ring', 'fold', path, '--json', ...more])
  assert.equal(code, 0, stderr)
  const lines = stdout.trimEnd().split('\n')
  return { lines: lines.map((line) => JSON.parse(line) as Line), stderr }
}

/** Folds a ring that a test has filled. */
async function foldTestRing(fill: (ring: TestRing) => void): Promise<{ lines: Line[]; stderr: string }> {
  using folder = makeTestFolder()
  const ring = createTestRing()
  fill(ring)
  ring.recorder.flush()
  writeRingFiles(ring, { zstd: folder.file('ring.zst') })
  return await fold(folder.file('ring.zst'))
}

const twoTxns = [{ accesses: [{ contract: 7, slot: 1, isModified: true }] }, { accesses: [{ contract: 7, slot: 1 }] }]

describe('sluice ring fold', () => {
  test('prints blocks, then lifecycle, then top accesses, the same for an uncompressed and a compressed file', async () => {
    using folder = makeTestFolder()
    const ring = createTestRing()
    fillTestRing(ring)
    const [plain, zstd] = [folder.file('ring'), folder.file('ring.zst')]
    writeRingFiles(ring, { plain, zstd })
    const { lines, stderr } = await fold(plain)
    assert.equal(stderr, '')
    assert.deepEqual((await fold(zstd)).lines, lines)
    assert.deepEqual(
      lines.map((line) => Object.keys(line)[0]),
      ['block_number', 'block_number', 'Lifecycle', 'Lifecycle', 'TopAccesses'],
    )
    assert.deepEqual(
      lines.slice(0, 2).map(({ block_number, TPS, reason }) => [block_number, TPS, reason]),
      [
        [1, null, null],
        [2, null, null],
      ],
    )
    assert.equal(lines[0]?.ContentionData?.['contended_slot_count'], 1)
    assert.deepEqual(
      lines.slice(2, 4).map(({ Lifecycle }) => Lifecycle?.['current_stage']),
      ['Finalized', 'Proposed'],
    )
    const human = await sluiceHere(['ring', 'fold', plain])
    assert.match(human.stdout, /^block 1 .*: TPS -, 3 transactions in 5\.0 ms, .* 1 of 1 slots contended/)
  })

  test('a recorded block gives the reference figures', { skip: skipWithoutRecordedData() }, async () => {
    const folder = join(recordedDataFolder, 'rings')
    const { lines } = await fold(join(folder, 'emn-1b-15m.snapshot.zst'), '--counters', '10000')
    const reference = JSON.parse(readFileSync(join(folder, 'emn-1b.reference-metrics.json'), 'utf8')) as {
      contention: Record<string, unknown>[]
      exact_account_top10: unknown[]
      exact_storage_top10: [unknown, number][]
    }
    const [block, lifecycle, top] = lines
    assert.equal(lines.length, 3)
    assert.equal(block?.TPS, null)
    const expected = reference.contention[0] ?? {}
    const { block_id, ...figures } = block?.ContentionData ?? {}
    assert.equal(block_id, block?.['block_hash'])
    for (const [name, value] of Object.entries(figures)) {
      const timing = {
        total_tx_time_ns: 'total_tx_time_ns_perf',
        parallel_efficiency_pct: 'parallel_efficiency_pct_perf',
      }
      assert.deepEqual(value, expected[timing[name as keyof typeof timing] ?? name], name)
    }
    assert.equal(lifecycle?.Lifecycle?.['current_stage'], 'Finalized')
    assert.deepEqual(
      top?.TopAccesses?.account.map(({ key, count }) => [key, count]),
      reference.exact_account_top10,
    )
    // With a counter for each slot the counts are exact; three slots tie for ranks 9 and 10.
    assert.deepEqual(
      top?.TopAccesses?.storage.map(({ count }) => count),
      reference.exact_storage_top10.map(([, count]) => count),
    )
  })

  test('prints a Lifecycle record for every proposal, also abandoned and rejected ones', async () => {
    const { lines } = await foldTestRing(({ recorder }) => {
      const timeNs = 1_800_000_900_000_000_000n
      for (let number = 1; number <= 200; number++) {
        if (number % 10 === 0) recordBlock(recorder, { number, fork: 1, txns: [] })
        recordBlock(recorder, { number, txns: [] })
        recorder.add('BLOCK_FINALIZED', { id: idOf(number), block_number: BigInt(number) }, { timeNs })
        recorder.add('BLOCK_VERIFIED', { block_number: BigInt(number) }, { timeNs })
        recorder.flush()
      }
      recordOpenBlock(recorder, { number: 201, txns: [] })
      recorder.add('BLOCK_REJECT', { reason: 3 }, { timeNs })
    })
    const stages = lines.flatMap(({ Lifecycle }) => (Lifecycle === undefined ? [] : [Lifecycle['current_stage']]))
    assert.equal(stages.length, 221)
    assert.equal(stages.filter((stage) => stage === 'Rejected').length, 21)
    assert.equal(lines.filter(({ ContentionData }) => ContentionData).length, 220)
  })

  test('reports damaged data and prints no figures for it', async () => {
    const { lines, stderr } = await foldTestRing(({ recorder }) => {
      recordBlock(recorder, { number: 1, txns: twoTxns })
      recordOpenBlock(recorder, { number: 2, txns: twoTxns })
      recordBlock(recorder, { number: 3, txns: twoTxns })
      const startNs = recordOpenBlock(recorder, { number: 4, txns: twoTxns })
      recorder.add(
        'RECORD_ERROR',
        { error_type: 3, dropped_event_type: EVENT.TXN_LOG },
        { timeNs: startNs, txnIndex: 1 },
      )
      recorder.add('BLOCK_END', {}, { timeNs: startNs })
      recorder.addEncoded(77, new Uint8Array(40), { timeNs: startNs })
      recordOpenBlock(recorder, { number: 5, txns: twoTxns })
    })
    assert.deepEqual(
      lines
        .slice(0, 5)
        .map(({ block_number, TPS, ContentionData, reason }) => [block_number, TPS, ContentionData !== null, reason]),
      [
        [1, null, true, null],
        [2, null, false, 'unterminated'],
        [3, null, true, null],
        [4, null, false, 'record-error'],
        [5, null, false, 'unfinished'],
      ],
    )
    for (const words of [
      /1 events have an unknown type/,
      /1 events were not recorded/,
      /2 blocks have no figures/,
      /1 blocks have no contention figures/,
    ]) {
      assert.match(stderr, words)
    }
  })

  test('reports missing events as a gap at their position', async () => {
    const { lines, stderr } = await foldTestRing((ring) => {
      recordBlock(ring.recorder, { number: 1, txns: twoTxns })
      ring.recorder.flush()
      const { lastSeqno } = ring.writer
      for (const number of [2, 3]) recordBlock(ring.recorder, { number, txns: twoTxns })
      ring.recorder.flush()
      // Two events in the middle of block 2 were never committed.
      ring.image.fill(0, 2 ** 21 + (lastSeqno + 5) * 64, 2 ** 21 + (lastSeqno + 7) * 64)
    })
    assert.deepEqual(
      lines.slice(0, 4).map((line) => line['Gap'] ?? line.reason ?? line.block_number),
      [1, 'gap', { from_seqno: 30, to_seqno: 31, cause: 'uncommitted' }, 3],
    )
    assert.match(stderr, /2 events are missing/)
  })

  test('refuses a ring of another schema, another file and a missing file with the reason', async () => {
    using folder = makeTestFolder()
    const ring = createTestRing()
    fillTestRing(ring)
    ring.image.fill(0xab, HEADER.schemaHash, HEADER.schemaHash + 32)
    writeRingFiles(ring, { plain: folder.file('other') })
    const other = await sluiceHere(['ring', 'fold', folder.file('other')])
    assert.equal(other.code, 1)
    assert.match(other.stderr, new RegExp(`unknown schema hash ${'ab'.repeat(32)}`))
    const shown = await sluiceHere(['ring', 'inspect', folder.file('other'), '--json'])
    assert.equal(shown.code, 1)
    assert.equal((JSON.parse(shown.stdout) as { header: { schema_hash: string } }).header.schema_hash, 'ab'.repeat(32))
    const text = await sluiceHere(['ring', 'fold', join(import.meta.dirname, 'ring-command.test.ts')])
    assert.match(text.stderr, /does not begin with RING01/)
    const none = await sluiceHere(['ring', 'fold', folder.file('none')])
    assert.match(none.stderr, /there is no file .*none/)
  })
})

describe('sluice ring inspect', () => {
  test('counts the events of each type, unknown ones by their code', async () => {
    using folder = makeTestFolder()
    const ring = createTestRing()
    fillTestRing(ring)
    ring.recorder.addEncoded(99, new Uint8Array(3), { timeNs: 1n })
    ring.recorder.flush()
    writeRingFiles(ring, { zstd: folder.file('ring.zst') })
    const { code, stdout } = await sluiceHere(['ring', 'inspect', folder.file('ring.zst'), '--json'])
    assert.equal(code, 0)
    const { form, contents } = JSON.parse(stdout) as {
      form: string
      contents: { counts: Record<string, number>; events: number; first_block: number; last_block: number }
    }
    assert.equal(form, 'zstd')
    assert.deepEqual([contents.first_block, contents.last_block], [1, 2])
    assert.deepEqual([contents.counts['TXN_HEADER_START'], contents.counts['UNKNOWN_99']], [6, 1])
    assert.equal(
      Object.values(contents.counts).reduce((sum, count) => sum + count, 0),
      contents.events,
    )
  })
})

describe('sluice ring record and watch', () => {
  test('a recording of a live ring folds to the same figures', async () => {
    using folder = makeTestFolder()
    const clock = createManualClock()
    const log = createLogger({ level: 'silent' })
    await using writer = await startRingWriter({ path: folder.file('live'), tps: 50, seed: 4 }, { log, clock })
    clock.advance(4000)
    const recording = folder.file('recording.zst')
    const words = ['ring', 'record', recording, '--ring', writer.path, '--from', 'oldest', '--seconds', '1', '--json']
    const done = await sluiceHere(words)
    assert.equal(done.code, 0, done.stderr)
    assert.equal((JSON.parse(done.stdout) as { events: number }).events, writer.stats().events)
    const [live, recorded] = [await fold(writer.path), await fold(recording)]
    assert(live.lines.length > 15)
    assert.deepEqual(recorded.lines, live.lines)

    const again = await sluiceHere(words)
    assert.equal(again.code, 1)
    assert.match(again.stderr, /already exists/)
    const nothing = folder.file('nothing.zst')
    const refused = await sluiceHere(['ring', 'record', nothing, '--ring', folder.file('none'), '--seconds', '1'])
    assert.match(refused.stderr, /there is no ring/)
    assert(!existsSync(nothing))
  })

  test('watch prints each block as it ends', async () => {
    using folder = makeTestFolder()
    const clock = createManualClock()
    const log = createLogger({ level: 'silent' })
    await using writer = await startRingWriter({ path: folder.file('live'), tps: 50, seed: 4 }, { log, clock })
    const beats = setInterval(() => clock.advance(400), 20)
    try {
      const { code, stdout } = await sluiceHere(['ring', 'watch', writer.path, '--seconds', '1'])
      assert.equal(code, 0)
      const lines = stdout.trimEnd().split('\n')
      assert(lines.length >= 5, stdout)
      for (const line of lines)
        assert.match(line, /^block \d+ \w+: TPS (\d+|-), \d+ transactions, (efficiency|no figures)/)
      assert.match(lines[0] ?? '', /TPS -/, 'one block is no whole window')
      assert.match(lines.at(-1) ?? '', /TPS \d+/)
    } finally {
      clearInterval(beats)
    }
  })
})
