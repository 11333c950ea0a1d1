import assert from 'node:assert/strict'
import { test } from 'node:test'
import { until } from '../../src/platform/process/test-wait.ts'
import { type IndexerAccount, startIndexerRig } from '../support/indexer/start.ts'

const MIB = 1024 * 1024
/** Every combination is a different string, and all of them are in memory at once: over 300³ of them, however few blocks there are. */
const GREEDY = `SELECT count(DISTINCT concat(a.signature, b.signature, c.signature)) FROM transactions a, transactions b, transactions c`
const MODEST = 'SELECT count() FROM transactions a, transactions b WHERE a.fee + b.fee = 1'

test('a customer whose query exhausts the memory of the database process is refused; concurrent queries get their results, and ingest continues', async () => {
  await using rig = await startIndexerRig({
    // The engine's own limit is not reached before the process is too large, so that it has to be ended.
    store: { memoryBytes: 511 * MIB, residentBytesMax: 512 * MIB },
  })
  const bad = await rig.subscribe('bad')
  const good = await rig.subscribe('good')
  const ask = async (account: IndexerAccount, query: string): Promise<[status: number, text: string]> => {
    const response = await fetch(rig.url, { method: 'POST', headers: account.headers, body: query })
    return [response.status, await response.text()]
  }
  await until('there are rows', async () => Number((await ask(good, 'SELECT count() FROM transactions'))[1]) > 300)

  const greedy = ask(bad, GREEDY)
  let isOver = false
  void greedy.then(() => (isOver = true))
  let asked = 0
  while (!isOver) {
    const [status, text] = await ask(good, MODEST)
    assert.deepEqual([status, /^\d+\n$/.test(text)], [200, true], text)
    asked++
  }
  const [status, text] = await greedy
  assert.equal(status, 500)
  assert.match(text, /^Code: 241\..*MEMORY_LIMIT_EXCEEDED/)
  assert.ok(
    asked > 0 && rig.indexer.status().restarts >= 2,
    `${asked} beside it, ${rig.indexer.status().restarts} restarts`,
  )

  const [refused, reason] = await ask(bad, 'SELECT 1')
  assert.equal(refused, 429)
  assert.match(reason, /could only be stopped by ending the database process/)
  assert.deepEqual(await ask(good, 'SELECT 1'), [200, '1\n'])
  const before = rig.indexer.status().ingest?.headSlot ?? 0
  await until('blocks are written', () => (rig.indexer.status().ingest?.headSlot ?? 0) > before + 4)
})
