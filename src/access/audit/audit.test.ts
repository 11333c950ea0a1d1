import assert from 'node:assert/strict'
import { appendFile, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { after, before, describe, test } from 'node:test'
import {
  addCustomer,
  CONTEXT,
  ENGINES,
  type Engines,
  STORE_DEPS,
  type StoreBench,
  startEngines,
} from '../../../test/support/store/engines.ts'
import { followStore } from '../snapshot/follow.ts'
import type { AccessStore } from '../store/store.ts'
import { createAuditLine, hashLine, isUnfinished, readLink } from './line.ts'
import { verifyAudit } from './verify.ts'

let engines: Engines
before(async () => {
  engines = await startEngines()
})
after(() => engines[Symbol.asyncDispose]())

const LINES = 6

/** A store with a few changes, and its audit file. */
async function withLog(
  engine: StoreBench['engine'],
  work: (on: { bench: StoreBench; store: AccessStore; file: string }) => Promise<void>,
): Promise<void> {
  await using bench = await engines.bench(engine)
  await using store = await bench.open()
  for (let at = 1; at <= LINES; at++) await addCustomer(store, `c${at}`)
  assert.deepEqual(await verifyAudit(store), { lines: LINES, findings: [], notes: [] })
  await work({ bench, store, file: bench.auditFile })
}

async function edit(file: string, change: (lines: string[]) => string[]): Promise<void> {
  const lines = (await readFile(file, 'utf8')).trimEnd().split('\n')
  await writeFile(file, `${change(lines).join('\n')}\n`)
}

/** The location of the first break (store or file) and its line. */
async function breaks(store: AccessStore): Promise<string[]> {
  const { findings } = await verifyAudit(store)
  return findings.map(({ location, line }) => `${location === store.name ? 'store' : 'file'} ${line}`)
}

for (const engine of ENGINES) {
  describe(`the audit log on ${engine}`, () => {
    test('is a separate file, readable by its owner only, equal to the chain in the store', () =>
      withLog(engine, async ({ store, file }) => {
        assert.equal((await stat(file)).mode & 0o777, 0o600)
        const lines: string[] = []
        for await (const line of store.auditLines(1)) lines.push(line)
        assert.equal(await readFile(file, 'utf8'), `${lines.join('\n')}\n`)
        assert.deepEqual(readLink(lines[0] ?? ''), { seq: 1, prev: '0'.repeat(64) })
        assert.deepEqual(await store.auditHead(), { seq: LINES, hash: hashLine(lines.at(-1) ?? '') })
      }))

    test('shows a changed byte in the file, also after more changes', () =>
      withLog(engine, async ({ store, file }) => {
        await edit(file, (lines) => lines.map((line, at) => (at === 2 ? line.replace('operator', 'somebody') : line)))
        assert.deepEqual(await breaks(store), ['file 3'])
        await addCustomer(store, 'later')
        assert.deepEqual(await breaks(store), ['file 3'])
      }))

    test('shows a changed byte in the last line of the file', () =>
      withLog(engine, async ({ store, file }) => {
        await edit(file, (lines) => lines.with(-1, lines.at(-1)?.replace('operator', 'operat0r') ?? ''))
        assert.deepEqual(await breaks(store), [`file ${LINES}`])
      }))

    test('shows a line removed from the file', () =>
      withLog(engine, async ({ store, file }) => {
        await edit(file, (lines) => lines.toSpliced(3, 1))
        assert.deepEqual(await breaks(store), ['file 4'])
      }))

    test('shows a truncated tail of the file; later lines are appended and the break stays visible', () =>
      withLog(engine, async ({ store, file }) => {
        await edit(file, (lines) => lines.slice(0, 4))
        assert.deepEqual(await breaks(store), ['file 5'])
        await addCustomer(store, 'later')
        assert.deepEqual(await breaks(store), ['file 5'])
        const lines = (await readFile(file, 'utf8')).trimEnd().split('\n')
        assert.deepEqual(
          lines.map((line) => readLink(line)?.seq),
          [1, 2, 3, 4, LINES + 1],
        )
      }))

    test('shows a file truncated in the middle of a line, and starts the next entry on a new line', () =>
      withLog(engine, async ({ store, file }) => {
        const bytes = await readFile(file)
        await writeFile(file, bytes.subarray(0, bytes.length - 40))
        assert.deepEqual(await breaks(store), [`file ${LINES}`])
        await addCustomer(store, 'later')
        assert.deepEqual(await breaks(store), [`file ${LINES}`])
        assert.equal(readLink((await readFile(file, 'utf8')).trimEnd().split('\n').at(-1) ?? '')?.seq, LINES + 1)
      }))

    test('shows lines added by another program and does not remove them', () =>
      withLog(engine, async ({ store, file }) => {
        await appendFile(file, '{"seq":7,"forged":true}\n')
        assert.deepEqual(await breaks(store), [`file ${LINES + 1}`])
        await addCustomer(store, 'later')
        assert.deepEqual(await breaks(store), [`file ${LINES + 1}`])
        assert.match(await readFile(file, 'utf8'), /forged/)
      }))

    test('shows a missing file; the next change writes it again, and the loss stays recorded', () =>
      withLog(engine, async ({ store, file }) => {
        await rm(file)
        assert.deepEqual(await breaks(store), ['file 1'])
        await addCustomer(store, 'later')
        const report = await verifyAudit(store)
        assert.deepEqual(report.findings, [])
        assert.match(report.notes.join(), /missing before line 7 and was rewritten/)
      }))

    test('shows a changed byte, a removed line and a cut tail in the store', async () => {
      for (const [sql, line] of [
        ["UPDATE audit SET line = replace(line, 'operator', 'somebody') WHERE seq = 3", 3],
        [`UPDATE audit SET line = replace(line, 'operator', 'somebody') WHERE seq = ${LINES}`, LINES],
        ['DELETE FROM audit WHERE seq = 2', 2],
        ['DELETE FROM audit WHERE seq > 4', 5],
      ] as const) {
        await withLog(engine, async ({ bench, store }) => {
          await bench.tamper(sql)
          assert.equal((await breaks(store))[0], `store ${line}`, sql)
          assert.match((await store.integrity()).join(), new RegExp(`line ${line} of the audit chain`), sql)
        })
      }
    })

    test('the incomplete line of an interrupted writer is not a break, and the next writer removes it', async () => {
      const next = (head: { seq: number; hash: string }) =>
        createAuditLine(head, { entry: { action: 'never.made', subjects: [] }, context: CONTEXT, version: '1' })
      for (const length of [1, 5, 30, 100, Number.POSITIVE_INFINITY]) {
        await withLog(engine, async ({ bench, store, file }) => {
          await appendFile(file, next(await store.auditHead()).slice(0, length))
          const { findings, notes } = await verifyAudit(store)
          assert.deepEqual(findings, [], `${length} characters`)
          assert.match(notes.join(), /interrupted change that was not committed/)
          await (await bench.open())[Symbol.asyncDispose]()
          await addCustomer(store, 'later')
          assert.deepEqual(await verifyAudit(store), { lines: LINES + 1, findings: [], notes: [] })
          assert.doesNotMatch(await readFile(file, 'utf8'), /never\.made/)
        })
      }
    })

    test('the next writer adds a missing last newline', () =>
      withLog(engine, async ({ store, file }) => {
        await writeFile(file, (await readFile(file, 'utf8')).trimEnd())
        assert.deepEqual((await verifyAudit(store)).findings, [])
        await addCustomer(store, 'later')
        assert.deepEqual(await verifyAudit(store), { lines: LINES + 1, findings: [], notes: [] })
      }))

    test('a committed line that the store does not have is a lost change: further changes are refused', () =>
      withLog(engine, async ({ bench, store, file }) => {
        const head = await store.auditHead()
        const lost = createAuditLine(head, {
          entry: { action: 'was.made', subjects: [] },
          context: CONTEXT,
          version: '1',
        })
        await appendFile(file, `${lost}\n`)
        assert.deepEqual(await breaks(store), [`store ${LINES + 1}`])
        await assert.rejects(addCustomer(store, 'later'), {
          code: 'store-corrupt',
          message: /has lost changes: line 7/,
        })
        await assert.rejects(bench.open({ check: 'quick' }), { code: 'store-corrupt' })
        assert.deepEqual(await store.auditHead(), head)
      }))

    test('a second machine on the store writes its own complete file', () =>
      withLog(engine, async ({ bench, store }) => {
        const file = `${bench.auditFile}.other`
        await using other = await bench.open({ audit: { ...bench.options.audit, file, mirror: 'another machine' } })
        await addCustomer(other, 'from there')
        await addCustomer(store, 'from here')
        assert.deepEqual(await verifyAudit(store), { lines: LINES + 2, findings: [], notes: [] })
        assert.deepEqual(await verifyAudit(other), { lines: LINES + 2, findings: [], notes: [] })
        assert.equal((await readFile(file, 'utf8')).trimEnd().split('\n').length, LINES + 1)
        await addCustomer(other, 'from there again')
        assert.equal(await readFile(file, 'utf8').then((text) => text.trimEnd().split('\n').length), LINES + 3)
      }))

    test('the incomplete line of an interrupted writer is removed after changes of another machine, too', async () => {
      for (const length of [30, Number.POSITIVE_INFINITY]) {
        await withLog(engine, async ({ bench, store, file }) => {
          const entry = { action: 'never.made', subjects: [] }
          const line = createAuditLine(await store.auditHead(), { entry, context: CONTEXT, version: '1' })
          await appendFile(file, line.slice(0, length))
          await using other = await bench.open({
            audit: { ...bench.options.audit, file: `${file}.other`, mirror: 'another machine' },
          })
          await addCustomer(other, 'from there')
          await addCustomer(other, 'from there again')
          const { findings, notes } = await verifyAudit(store)
          assert.deepEqual(findings, [], `${length} characters`)
          assert.match(notes.join(), /interrupted change that was not committed/)
          await addCustomer(store, 'later')
          assert.deepEqual(await verifyAudit(store), { lines: LINES + 3, findings: [], notes: [] })
          assert.doesNotMatch(await readFile(file, 'utf8'), /never\.made/)
        })
      }
    })

    test('a committed line in whose place the store has another one is a lost change', () =>
      withLog(engine, async ({ bench, store, file }) => {
        const entry = { action: 'was.made', subjects: [] }
        const lost = createAuditLine(await store.auditHead(), { entry, context: CONTEXT, version: '1' })
        // A failover has dropped it, and another machine was the first to make a change after that.
        await appendFile(file, `${lost}\n`)
        await using other = await bench.open({
          audit: { ...bench.options.audit, file: `${file}.other`, mirror: 'another machine' },
        })
        await addCustomer(other, 'from there')
        assert.ok((await breaks(store)).includes(`store ${LINES + 1}`), String(await breaks(store)))
        await assert.rejects(addCustomer(store, 'later'), {
          code: 'store-corrupt',
          message: /has lost changes: line 7/,
          fix: /^If the store was restored.*: mv \S+ \S+\.old\. Otherwise: Restore /,
        })
        await assert.rejects(bench.open({ check: 'quick' }), { code: 'store-corrupt' })
        assert.deepEqual(await verifyAudit(other), { lines: LINES + 1, findings: [], notes: [] })
      }))

    test('a row changed by another program is not returned, also without the full check', () =>
      withLog(engine, async ({ bench }) => {
        await bench.tamper("UPDATE customers SET content = replace(content, 'c3@', 'x3@') WHERE id = 'cus_c3'")
        await using store = await bench.open({ check: 'quick' })
        assert.equal((await store.get('customers', 'cus_c2'))?.name, 'c2')
        await assert.rejects(store.get('customers', 'cus_c3'), { code: 'store-corrupt' })
        await assert.rejects(followStore(store, STORE_DEPS), { code: 'store-corrupt' })
      }))

    test('shows rows changed, removed or restored by another program', async () => {
      for (const [sql, found] of [
        [
          "UPDATE customers SET content = replace(content, 'c3@', 'x3@') WHERE id = 'cus_c3'",
          /row cus_c3 of table customers/,
        ],
        ["UPDATE customers SET name = 'other' WHERE id = 'cus_c3'", /row cus_c3 of table customers/],
        ["DELETE FROM customers WHERE id = 'cus_c3'", /table customers has 5 rows where 6 were written/],
        ['DELETE FROM meta', /table meta is missing or damaged/],
      ] as const) {
        await withLog(engine, async ({ bench, store }) => {
          await bench.tamper(sql)
          assert.match((await store.integrity()).join('; '), found, sql)
          await assert.rejects(bench.open(), { code: 'store-corrupt' }, sql)
        })
      }
    })
  })
}

test('an audit line redacts secrets and has a maximum length', () => {
  const secret = 'slc_0123456789ABCDEFGHIJKLMNOPQRSTUV4LgkA2'
  const make = (after: unknown) =>
    createAuditLine(
      { seq: 0, hash: '' },
      { entry: { action: 'a', subjects: [], after }, context: CONTEXT, version: '1' },
    )
  const line = make({ list: [`token ${secret}`], url: 'https://user:hunter2@node.example/?api-key=abcdefgh' })
  for (const hidden of [secret, 'hunter2', 'abcdefgh']) assert.ok(!line.includes(hidden), line)
  assert.throws(() => make('x'.repeat(2 ** 21)), { code: 'invalid-value' })
})

test('only the start of the next line counts as unfinished', () => {
  const head = { seq: 41, hash: 'aa' }
  const bytes = (text: string) => Buffer.from(text)
  assert.ok(isUnfinished(bytes('{"se'), head))
  assert.ok(isUnfinished(bytes('{"seq":42,"time":"2027'), head))
  assert.ok(!isUnfinished(bytes('{"seq":43,"time":"2027'), head))
  assert.ok(!isUnfinished(bytes('rubbish'), head))
  assert.ok(!isUnfinished(bytes('{"seq":42,"time":"","prev":"bb"}'), head), 'complete, but after another line')
})
