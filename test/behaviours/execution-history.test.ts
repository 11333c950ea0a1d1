import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { gunzipSync } from 'node:zlib'
import * as schemas from '../../src/contract/schemas/execution-history.ts'
import { createManualClock, type ManualClock } from '../../src/core/clock.ts'
import { idOf } from '../../src/evm/test-block.ts'
import { figuresOf, openTestHistory, recordOf } from '../../src/execution/history/test-history.ts'
import type { SourceMessage } from '../../src/execution/source/message.ts'
import { makeTestFolder } from '../../src/platform/files/test-folder.ts'
import { ethBlock, txnHashOf } from '../support/execution/eth-blocks.ts'
import { getJson, startTestExecution, type TestExecution } from '../support/execution/start.ts'

const TXNS = 7
/** Proposals have the ids of `ethBlock`. */
const VARIANT = 0

function blockMessages(number: number): SourceMessage[] {
  const { contention: data, conflicts, accesses } = figuresOf(number, VARIANT)
  const proposed = recordOf(number, 'Proposed', VARIANT)
  const executed = recordOf(number, 'Proposed', VARIANT, 147_000)
  return [
    // The content of a block comes before its other messages.
    ethBlock({ number, txns: TXNS, logsPerTxn: 1 }),
    { kind: 'lifecycle', change: proposed, record: proposed },
    { kind: 'tps', tps: 900, blockNumber: number, id: idOf(number, VARIANT) },
    { kind: 'contention', data, conflicts, ...(accesses === undefined ? {} : { accesses }) },
    { kind: 'lifecycle-record', record: executed },
  ]
}

function reportBlocks({ source }: TestExecution, clock: ManualClock, from: number, to: number): void {
  for (let number = from; number <= to; number++) {
    source.report(...blockMessages(number))
    source.beat()
    clock.advance(500)
  }
}

const LONELY = `0x${'77'.repeat(20)}` as const
const TOP: SourceMessage = {
  kind: 'top-accesses',
  data: { account: [{ key: LONELY, count: 30 }], storage: [] },
  accountsSeen: 120,
}

describe('GET /v1/history', () => {
  test('has what the service saw before and after a restart of the process, and says when it did not run', async () => {
    using folder = makeTestFolder()
    const clock = createManualClock(1_800_000_000_000)
    {
      await using history = await openTestHistory({ clock, folder: folder.path })
      await using service = await startTestExecution({ clock, deps: { history } })
      reportBlocks(service, clock, 1, 6)
      const verified = recordOf(2, 'Verified', VARIANT, 147_000)
      service.source.report({ kind: 'lifecycle', change: verified, record: verified })
      service.source.report({ kind: 'gap', fromSeqno: 5, toSeqno: 9, blocksDropped: 1 })
    }
    clock.advance(20_000)
    await using history = await openTestHistory({ clock, folder: folder.path })
    await using service = await startTestExecution({ clock, deps: { history } })
    reportBlocks(service, clock, 7, 8)
    const { status, json } = await getJson(service, '/v1/history')
    const body = schemas.history.parse(json)
    assert.equal(status, 200)
    assert.deepEqual(body.blocks.number, [1, 2, 3, 4, 5, 6, 7, 8])
    assert.deepEqual(body.blocks.block_time_ms, [null, 500, 500, 500, 500, 500, 20_500, 500])
    assert.deepEqual(body.seconds.tps, [900, 900, 900, ...Array.from({ length: 20 }, () => null), 900])
    assert.deepEqual(body.incidents, [
      { kind: 'ring_gap', events_lost: 5, blocks_dropped: 1, from_ms: 1_800_000_003_000, to_ms: 1_800_000_003_000 },
      { kind: 'service_stopped', from_ms: 1_800_000_003_000, to_ms: 1_800_000_023_000 },
    ])
    // Blocks from before the restart can be opened, too.
    assert.equal((await getJson(service, '/v1/blocks/2/lifecycle')).status, 200)
    assert.deepEqual((await getJson(service, '/v1/blocks/2/contention')).json, figuresOf(2, VARIANT).contention)
  })

  test('is compressed where the client accepts that, open to other origins, and marked where it is simulated', async () => {
    const clock = createManualClock()
    await using service = await startTestExecution({ clock, isSimulated: true })
    reportBlocks(service, clock, 1, 3)
    const plain = await fetch(`${service.http}/v1/history`, { headers: { 'accept-encoding': 'identity' } })
    const text = await plain.text()
    assert.equal(plain.headers.get('access-control-allow-origin'), '*')
    assert.equal(plain.headers.get('x-data-source'), 'simulated')
    assert.equal(plain.headers.get('vary'), 'accept-encoding')
    assert.equal(schemas.history.parse(JSON.parse(text)).simulated, true)
    const { body, encoding } = await getRaw(`${service.http}/v1/history`)
    assert.equal(encoding, 'gzip')
    assert.equal(gunzipSync(body).toString(), text)
  })

  test('before the first block has empty columns', async () => {
    await using service = await startTestExecution()
    const { json } = await getJson(service, '/v1/history')
    const { blocks, seconds, incidents } = schemas.history.parse(json)
    assert.deepEqual([blocks.number, seconds.tps, incidents], [[], [], []])
  })

  test('takes from the budget of the address, as every read', async () => {
    const clock = createManualClock()
    await using service = await startTestExecution({
      clock,
      settings: { work: { unitsPerSecond: 10, burstUnits: 5 } },
    })
    const statuses: number[] = []
    for (const path of [
      '/v1/history',
      '/v1/search?q=1',
      '/v1/contracts/0x00',
      '/v1/blocks/1/transactions',
      '/v1/history',
      '/v1/search?q=1',
    ])
      statuses.push((await fetch(`${service.http}${path}`)).status)
    assert.deepEqual(statuses, [200, 200, 400, 404, 429, 429])
  })
})

describe('GET /v1/blocks/:number/transactions', () => {
  test('has the transactions of a held block in pages', async () => {
    const clock = createManualClock()
    await using service = await startTestExecution({ clock })
    reportBlocks(service, clock, 1, 2)
    const first = schemas.blockTransactions.parse((await getJson(service, '/v1/blocks/2/transactions?limit=5')).json)
    const rest = schemas.blockTransactions.parse(
      (await getJson(service, `/v1/blocks/2/transactions?limit=5&offset=${first.next_offset}`)).json,
    )
    assert.deepEqual([first.txn_count, first.next_offset, rest.next_offset], [TXNS, 5, null])
    const all = [...first.transactions, ...rest.transactions]
    assert.deepEqual(
      all.map(({ index, hash }) => [index, hash]),
      Array.from({ length: TXNS }, (_, index) => [index, txnHashOf(2, index)]),
    )
    assert.deepEqual(all[0], {
      index: 0,
      hash: txnHashOf(2, 0),
      from: `0x${'00'.repeat(20)}`,
      to: `0x${'00'.repeat(20)}`,
      value: '0x0',
      status: 'success',
      gas_used: 21_000,
      log_count: 1,
      waiting_ns: null,
      execution_ns: null,
    })
    const beyond = await getJson(service, '/v1/blocks/2/transactions?offset=100')
    assert.deepEqual(schemas.blockTransactions.parse(beyond.json).transactions, [])
  })

  test('a block that is not held is 404 with the numbers that are; a wrong parameter is 400', async () => {
    const clock = createManualClock()
    await using service = await startTestExecution({ clock })
    assert.deepEqual(await getJson(service, '/v1/blocks/9/transactions'), {
      status: 404,
      json: { error: 'block not found: no block was seen yet' },
    })
    reportBlocks(service, clock, 3, 4)
    assert.deepEqual(await getJson(service, '/v1/blocks/9/transactions'), {
      status: 404,
      json: { error: 'block not found: held are blocks 3 to 4' },
    })
    for (const [path, error] of [
      ['x/transactions', 'invalid block number'],
      ['3/transactions?limit=0', 'limit is a number from 1 to 500'],
      ['3/transactions?limit=501', 'limit is a number from 1 to 500'],
      ['3/transactions?offset=-1', 'offset is a number from 0 on'],
    ])
      assert.deepEqual(await getJson(service, `/v1/blocks/${path}`), { status: 400, json: { error } })
  })
})

describe('GET /v1/search', () => {
  async function found(service: TestExecution, query: string) {
    const { json } = await getJson(service, `/v1/search?q=${encodeURIComponent(query)}`)
    return schemas.searchResults.parse(json).results
  }

  test('finds block numbers, hashes, transactions, addresses and names, and the beginning of these', async () => {
    const clock = createManualClock()
    const contract = figuresOf(1).accesses?.contracts[0]?.address ?? assert.fail('no contract')
    const names = new Map([
      [contract, 'Pool of Gold'],
      [LONELY, 'Gold'],
    ])
    await using service = await startTestExecution({ clock, deps: { names } })
    reportBlocks(service, clock, 1, 3)
    service.source.report(TOP)
    const block = { kind: 'block', number: 3, id: idOf(3), hash: idOf(3, 0xe) }
    const pool = { kind: 'contract', address: contract, name: 'Pool of Gold' }
    const gold = { kind: 'contract', address: LONELY, name: 'Gold' }
    for (const query of ['3', '#3', ' 3 ', idOf(3), idOf(3).slice(2), idOf(3, 0xe)])
      assert.deepEqual(await found(service, query), [block], query)
    assert.deepEqual(await found(service, txnHashOf(2, 4).toUpperCase().replace('0X', '0x')), [
      { kind: 'transaction', hash: txnHashOf(2, 4), block_number: 2, index: 4 },
    ])
    for (const query of [
      contract,
      contract.toUpperCase(),
      contract.slice(0, 10),
      `${contract.slice(0, 8)}…${contract.slice(-4)}`,
      `${contract.slice(0, 6)}..${contract.slice(-4)}`,
      'pool',
    ])
      assert.deepEqual(await found(service, query), [pool], query)
    assert.deepEqual(await found(service, 'GOLD'), [gold, pool], 'the whole name first')
    assert.deepEqual(await found(service, LONELY), [gold])
    for (const query of ['999', `0x${'ab'.repeat(32)}`, '0xabcdefabcdef', 'nobody', '0x1'])
      assert.deepEqual(await found(service, query), [], query)
  })

  test('lists at most ten and says that there are more', async () => {
    const names = new Map(Array.from({ length: 30 }, (_, at) => [`0x${String(at).padStart(40, '0')}`, `Token ${at}`]))
    await using service = await startTestExecution({ deps: { names } })
    const { json } = await getJson(service, '/v1/search?q=token')
    const { results, truncated } = schemas.searchResults.parse(json)
    assert.deepEqual([results.length, truncated], [10, true])
  })

  test('refuses an empty and a long query', async () => {
    await using service = await startTestExecution()
    for (const path of ['/v1/search', '/v1/search?q=', '/v1/search?q=%20', `/v1/search?q=${'a'.repeat(81)}`])
      assert.deepEqual(await getJson(service, path), {
        status: 400,
        json: { error: 'q is a text of 1 to 80 characters' },
      })
  })
})

describe('GET /v1/contracts/:address', () => {
  test('sums the accesses and the contention of a contract over the last blocks', async () => {
    const clock = createManualClock(1_800_000_000_000)
    await using service = await startTestExecution({ clock })
    reportBlocks(service, clock, 1, 4)
    const blocks = [1, 2, 3, 4].map((number) => figuresOf(number, VARIANT))
    const entries = blocks.flatMap(({ accesses }) => accesses?.contracts[20] ?? [])
    const address = entries[0]?.address ?? assert.fail('no contract')
    const { json } = await getJson(service, `/v1/contracts/${address.toUpperCase().replace('0X', '0x')}`)
    const figures = schemas.contractFigures.parse(json)
    const sum = (field: 'total_accesses' | 'total_slots' | 'contended_slots') =>
      entries.reduce((total, entry) => total + entry[field], 0)
    assert.deepEqual(figures.window, {
      blocks: 4,
      from_block: 1,
      to_block: 4,
      from_ms: 1_800_000_000_000,
      to_ms: 1_800_000_001_500,
    })
    assert.deepEqual(figures.storage, {
      blocks: 4,
      accesses: sum('total_accesses'),
      share: sum('total_accesses') / 160_000,
      total_slots: sum('total_slots'),
      contended_slots: sum('contended_slots'),
      contention_score: sum('contended_slots') / sum('total_slots'),
    })
    assert.deepEqual(figures.blocks.number, [1, 2, 3, 4])
    const shared = blocks
      .flatMap(({ contention }) => contention.contract_edges)
      .filter(({ contract_a, contract_b }) => contract_a === address || contract_b === address)
      .reduce((total, { shared_txn_count }) => total + shared_txn_count, 0)
    assert.equal(
      figures.neighbours.reduce((total, { shared_txn_count }) => total + shared_txn_count, 0),
      shared,
    )
    assert.equal(figures.top_accesses, null)
  })

  test('an account that is only among the most accessed has figures', async () => {
    await using service = await startTestExecution()
    service.source.report(TOP)
    const { json } = await getJson(service, `/v1/contracts/${LONELY}`)
    const { top_accesses, storage } = schemas.contractFigures.parse(json)
    assert.deepEqual([top_accesses, storage], [{ rank: 1, count: 30, share: 0.25 }, null])
  })

  test('an unknown one is 404, what is no address 400', async () => {
    await using service = await startTestExecution()
    assert.equal((await getJson(service, `/v1/contracts/${LONELY}`)).status, 404)
    assert.deepEqual(await getJson(service, '/v1/contracts/0x12'), {
      status: 400,
      json: { error: 'invalid address: give 0x and 40 hex characters' },
    })
  })
})

/** `fetch` inflates a body. */
async function getRaw(url: string): Promise<{ body: Buffer; encoding: string | undefined }> {
  const { get } = await import('node:http')
  return new Promise((resolve, reject) => {
    get(url, { headers: { 'accept-encoding': 'gzip' } }, (response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      response.on('end', () => resolve({ body: Buffer.concat(chunks), encoding: response.headers['content-encoding'] }))
    }).on('error', reject)
  })
}
