import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { EXECUTION_ROUTES } from '../../contract/execution-routes.ts'
import {
  type ContentionData,
  FIGURE_KINDS,
  RAW_EVENTS,
  STREAM_CLOSE,
  type TopAccesses,
} from '../../contract/stream-events.ts'
import { cleanName, shortHex, shortSlot } from '../../ui/safe-text.ts'
import { closeDocs, kindDocs, rawEventDocs, routeDocs, streamExamples } from './api-docs.ts'
import { computeContractGraph } from './contract-graph.ts'
import { EXPLANATIONS } from './explanations.ts'
import { liveStateOf, STATE_TEXT } from './freshness.ts'
import { computeHeatStrip, HEAT_ROWS_MAX } from './heat-strip.ts'
import { parseRoute, printRoute } from './route.ts'
import { createTopBoard } from './top-board.ts'
import { verdictOf } from './verdict.ts'

const A = `0x${'a'.repeat(40)}` as const
const B = `0x${'b'.repeat(40)}` as const

test('the thresholds are those of the specification', () => {
  assert.deepEqual([100, 90, 89.99, 70, 69.99, 0].map(verdictOf), ['good', 'good', 'fair', 'fair', 'poor', 'poor'])
  assert.equal(verdictOf(undefined), 'none')
})

test('the state depends on pause, then connection, then age', () => {
  const live = {
    paused: false,
    locked: false,
    connection: 'open',
    hadData: true,
    replaying: false,
    ageMs: 100,
    serviceStatus: 'healthy',
  } as const
  assert.equal(liveStateOf(live), 'live')
  assert.equal(liveStateOf({ ...live, ageMs: 5000 }), 'live')
  assert.equal(liveStateOf({ ...live, ageMs: 5001 }), 'stale')
  assert.equal(liveStateOf({ ...live, ageMs: 10_001 }), 'degraded')
  assert.equal(liveStateOf({ ...live, serviceStatus: 'degraded' }), 'degraded')
  assert.equal(liveStateOf({ ...live, connection: 'waiting' }), 'resuming')
  assert.equal(liveStateOf({ ...live, replaying: true }), 'resuming')
  assert.equal(liveStateOf({ ...live, connection: 'waiting', paused: true }), 'paused')
  assert.equal(liveStateOf({ ...live, locked: true, paused: true }), 'locked')
  assert.equal(liveStateOf({ ...live, connection: 'connecting', hadData: false }), 'connecting')
})

describe('URL fragments', () => {
  test('parse to the route that was printed', () => {
    for (const hash of ['#', '#api', '#block=812', '#block=812/30', `#contract=${A}`])
      assert.equal(printRoute(parseRoute(hash)), hash)
  })

  for (const hash of [
    '#block=',
    '#block=-1',
    '#block=1e3',
    '#block=1/',
    '#block=1/-2',
    '#block=1/9999999',
    '#block=99999999999999999',
    '#contract=0x12',
    '#x=<img>',
    '#constructor=1',
  ])
    test(`are the live page when invalid: ${hash}`, () => assert.deepEqual(parseRoute(hash), { view: 'live' }))
})

describe('names', () => {
  test('are one line of visible characters, at most 64', () => {
    assert.equal(cleanName('Uni\u202eswap\u200b\n Router\u0000'), 'Uniswap Router')
    assert.equal(Array.from(cleanName('x'.repeat(1000))).length, 64)
    assert.equal(Array.from(cleanName('😀'.repeat(1000))).length, 64)
    assert.equal(cleanName('e\u0301'), 'é')
    assert.equal(Array.from(cleanName(`Z${'\u0336'.repeat(50)}`)).length, 3)
    assert.equal(cleanName({}), '')
  })

  test('hex is shortened, other text is cleaned', () => {
    assert.equal(shortHex(A), '0xaaaa…aaaa')
    assert.equal(shortHex('0x<b>\u202e'), '0x<b>')
    assert.equal(shortSlot(`0x${'0'.repeat(63)}a`), '0xa')
    assert.equal(shortSlot(`0x${'0'.repeat(64)}`), '0x0')
    assert.equal(shortSlot(`0x${'7'.repeat(64)}`), '0x7777…7777')
  })
})

describe('heat strip and graph', () => {
  const block = (number: number, txns: number): ContentionData => ({
    block_number: number,
    block_id: '0x',
    block_wall_time_ns: 0,
    total_tx_time_ns: 0,
    parallel_efficiency_pct: 0,
    total_unique_slots: 0,
    contended_slot_count: 0,
    contention_ratio: 0,
    total_txn_count: 0,
    top_contended_slots: [
      { address: A, slot: '0x1', txn_count: txns, access_count: txns },
      { address: B, slot: `0x${number}`, txn_count: 2, access_count: 2 },
    ],
    top_contended_contracts: [
      { address: A, total_slots: 4, contended_slots: 1, total_accesses: 9, contention_score: 0.25 },
    ],
    contract_edges: [{ contract_a: A, contract_b: B, shared_txn_count: 3 }],
  })

  test('the hottest slot is the first row, and empty cells are zero', () => {
    const strip = computeHeatStrip([block(1, 5), block(2, 9)])
    assert.deepEqual(strip.blocks, [1, 2])
    assert.deepEqual(strip.rows[0], { address: A, slot: '0x1', txnsTotal: 14 })
    assert.deepEqual([...strip.cells], [5, 9, 2, 0, 0, 2])
    assert.equal(strip.max, 9)
    assert.ok(computeHeatStrip(Array.from({ length: 50 }, (_, at) => block(at, 2))).rows.length <= HEAT_ROWS_MAX)
  })

  test('only addresses become nodes', () => {
    const [hostile] = [block(1, 5)].map((data) => ({
      ...data,
      top_contended_contracts: data.top_contended_contracts.map((entry) => ({
        ...entry,
        address: '__proto__' as '0x',
      })),
      contract_edges: [{ contract_a: 'constructor' as '0x', contract_b: B, shared_txn_count: 3 }],
    }))
    assert.deepEqual(computeContractGraph(hostile === undefined ? [] : [hostile]), { nodes: [], links: [] })
  })

  test('edges and scores add up over blocks', () => {
    const { nodes, links } = computeContractGraph([block(1, 5), block(2, 9)])
    assert.deepEqual(links, [{ a: A, b: B, sharedTxns: 6 }])
    assert.deepEqual(nodes[0], { address: A, score: 0.25, contendedSlots: 2, accesses: 18, blocks: 2 })
  })
})

test('top lists have steps between reports, rank changes since the reset, and the time of the reset', () => {
  const report = (...counts: [`0x${string}`, number][]): TopAccesses => ({
    account: counts.map(([key, count]) => ({ key, count })),
    storage: [],
  })
  const board = createTopBoard()
  board.add(report([A, 10], [B, 5]), 1)
  board.add(report([B, 20], [A, 12]), 2)
  const [first, second] = board.accounts()
  assert.deepEqual([first?.key, first?.steps, first?.ranksGained], [B, [15], 1])
  assert.deepEqual([second?.key, second?.steps, second?.ranksGained], [A, [2], -1])
  assert.equal(board.resetAtMs(), undefined)
  board.add(report(['0xc', 9], [B, 3]), 3)
  assert.equal(board.resetAtMs(), 3)
  assert.deepEqual(
    board.accounts().map(({ ranksGained }) => ranksGained),
    [0, 0],
  )
})

test('the documentation has every route and kind of the contract, each with examples', () => {
  const position = {
    http: 'http://h:8443',
    ws: 'ws://h:8443',
    block: 7,
    contract: '0x1234',
    clientUrl: 'http://h:8443/page/execution-stream.js',
  }
  const docs = routeDocs(position)
  assert.equal(docs.length, EXECUTION_ROUTES.length)
  for (const { path, examples } of docs) {
    assert.deepEqual(
      examples.map(({ tool }) => tool),
      ['curl', 'TypeScript'],
      path,
    )
    assert.ok(!examples.some(({ text }) => /:number|:address/.test(text)), path)
  }
  assert.deepEqual(
    kindDocs().map(({ kind }) => kind),
    [...FIGURE_KINDS],
  )
  assert.equal(rawEventDocs().length, RAW_EVENTS.length)
  assert.deepEqual(
    closeDocs().map(({ code }) => code),
    Object.values(STREAM_CLOSE),
  )
  assert.deepEqual(
    streamExamples(position).map(({ tool }) => tool),
    ['wscat', 'TypeScript', 'curl'],
  )
})

test('every explanation has one line in plain words, a computation and a caveat', () => {
  for (const [id, { title, short, how, caveat, source }] of Object.entries(EXPLANATIONS)) {
    for (const text of [title, short, how, caveat, source]) assert.ok(text.length > 3, id)
    assert.ok(short.length <= 90 && short.endsWith('.'), `${id}: ${short}`)
    assert.doesNotMatch(`${title} ${short}`, JARGON, id)
  }
  for (const { label, hint } of Object.values(STATE_TEXT)) assert.doesNotMatch(`${label} ${hint}`, JARGON)
})

/** Words of the implementation, which a reader of the page need not know. */
const JARGON = /degraded|stale|depth|frame|cursor|sequential|ring\b|snapshot/i
