import assert from 'node:assert/strict'
import { type ChildProcessByStdio, spawn } from 'node:child_process'
import { once } from 'node:events'
import type { Readable } from 'node:stream'
import { after, before, describe, test } from 'node:test'
import { createRandom, repeatsOf, seedOf } from '../../../test/support/process/property.ts'
import {
  addCustomer,
  ENGINES,
  type Engines,
  type StoreBench,
  startEngines,
} from '../../../test/support/store/engines.ts'
import type { WriterTask } from '../../../test/support/store/writer.ts'
import { verifyAudit } from '../audit/verify.ts'
import type { AccessStore } from './store.ts'

const WRITER = new URL('../../../test/support/store/writer.ts', import.meta.url).pathname
const KILLS = repeatsOf({ short: 20, full: 300 })

let engines: Engines
before(async () => {
  // Durability on the disk is part of this test.
  engines = await startEngines({ durable: true })
})
after(() => engines[Symbol.asyncDispose]())

type Writer = {
  readonly process: ChildProcessByStdio<null, Readable, Readable>
  /** Numbers of the customers whose creation was acknowledged. */
  readonly acknowledged: number[]
  readonly closed: Promise<unknown>
  errors(): string
}

function startWriter(bench: StoreBench, task: Pick<WriterTask, 'name' | 'count'>): Writer {
  const argument = JSON.stringify({ ...task, options: { ...bench.options, check: 'quick' } } satisfies WriterTask)
  const child = spawn(process.execPath, [WRITER, argument], { stdio: ['ignore', 'pipe', 'pipe'] })
  const acknowledged: number[] = []
  let rest = ''
  let errors = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    const lines = (rest + text).split('\n')
    rest = lines.pop() ?? ''
    acknowledged.push(...lines.map(Number))
  })
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    errors += text
  })
  return { process: child, acknowledged, closed: once(child, 'close'), errors: () => errors }
}

async function assertWhole(store: AccessStore): Promise<void> {
  assert.deepEqual(await store.integrity(), [])
  assert.deepEqual((await verifyAudit(store)).findings, [])
}

for (const engine of ENGINES) {
  describe(`writers of the access store on ${engine}`, () => {
    test('two concurrent writers lose no change and write one chain', async () => {
      await using bench = await engines.bench(engine)
      await using store = await bench.open()
      const count = repeatsOf({ short: 60, full: 500 })
      const writers = ['left', 'right'].map((name) => ({ name, ...startWriter(bench, { name, count }) }))
      for (const writer of writers) {
        await writer.closed
        assert.equal(writer.process.exitCode, 0, writer.errors())
        assert.equal(writer.acknowledged.length, count)
      }
      assert.equal((await store.list('customers')).length, 2 * count)
      assert.equal(await store.revision(), 2 * count)
      assert.equal((await store.auditHead()).seq, 2 * count)
      await assertWhole(store)
    })

    test(`one killed at ${KILLS} random points loses no acknowledged change and leaves a complete chain`, async (t) => {
      await using bench = await engines.bench(engine)
      await (await bench.open())[Symbol.asyncDispose]()
      const random = createRandom(seedOf(t))
      const expected = new Set<string>()
      for (let kill = 0; kill < KILLS; kill++) {
        const name = `kill-${kill}`
        const writer = startWriter(bench, { name, count: 10_000 })
        // Some are killed while they open the store, most between two acknowledgements.
        const from = random(8) === 0 ? 0 : 1 + random(5)
        while (writer.acknowledged.length < from) {
          await Promise.race([once(writer.process.stdout, 'data'), writer.closed])
          assert.equal(writer.process.exitCode, null, writer.errors())
        }
        await new Promise((resolve) => setTimeout(resolve, random(from === 0 ? 400 : 12)))
        writer.process.kill('SIGKILL')
        await writer.closed
        for (const number of writer.acknowledged) expected.add(`cus_${name}-${number}`)

        await using store = await bench.open({ check: 'quick' })
        const present = new Set((await store.list('customers')).map(({ id }) => id))
        for (const id of expected) assert.ok(present.has(id), `${id} was acknowledged and is gone`)
        // The change in progress may have been committed without an acknowledgement.
        assert.ok(present.size <= expected.size + 1, `${present.size - expected.size} changes came from nowhere`)
        for (const id of present) expected.add(id)
        const before = await verifyAudit(store)
        assert.deepEqual(before.findings, [])
        assert.equal(before.lines, present.size)
        if (random(3) === 0) {
          await addCustomer(store, `${name}-after`)
          expected.add(`cus_${name}-after`)
          assert.deepEqual(await verifyAudit(store), { lines: present.size + 1, findings: [], notes: [] })
        }
      }
      await using store = await bench.open()
      await assertWhole(store)
    })
  })
}

test('changes that PostgreSQL acknowledged survive a kill of its server', async () => {
  await using bench = await engines.bench('postgres')
  const names = Array.from({ length: 20 }, (_, number) => `server-${number}`)
  {
    await using store = await bench.open()
    for (const name of names) await addCustomer(store, name)
    await engines.postgres.stop('SIGQUIT')
    await assert.rejects(store.revision(), { code: 'store-unavailable' })
    await engines.postgres.start()
    assert.equal(await store.revision(), names.length, 'an open store reconnects')
  }
  await using store = await bench.open()
  assert.equal((await store.list('customers')).length, names.length)
  await assertWhole(store)
})
