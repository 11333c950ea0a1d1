import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { ALERTS } from '../scripts/ops/alerts.ts'
import { BUILT_IN_PLANS } from '../src/access/plan.ts'
import { OPERATOR_ERRORS } from '../src/contract/operator-errors.ts'
import { configSchema } from '../src/processes/compose/config/config.ts'

/** Statements of the documents on which an operator or a customer acts, and that the code decides. */

const root = join(import.meta.dirname, '..')
const read = (path: string) => readFileSync(join(root, path), 'utf8')

/** A section of a page: from its heading up to the next one. */
function section(path: string, heading: string): string {
  const [, after = ''] = read(path).split(`\n## ${heading}\n`)
  assert.notEqual(after, '', `${path} has no section ${heading}`)
  return after.split('\n## ')[0] ?? ''
}

/** The steps of a numbered list. */
const stepsOf = (text: string) => [...text.matchAll(/^\d+\. (.*(?:\n {3}.*)*)/gm)].map(([, step = '']) => step)

describe('procedures of the operator', () => {
  test('a move to PostgreSQL stops Sluice before the backup: usage is written until the process has ended', () => {
    const text = stepsOf(section('docs/operating.md', 'Several machines')).join('\n')
    const [stop, backup] = [text.indexOf('`systemctl stop sluice`'), text.indexOf('`sluice backup move.jsonl')]
    assert.ok(stop >= 0 && backup > stop, text)
  })

  test('an upgrade of several machines stops all of them before a new version migrates the store', () => {
    const text = section('docs/operating.md', 'Upgrade')
    const [stop, start] = [text.indexOf('Stop Sluice on every machine'), text.indexOf('Start the new release on one')]
    assert.ok(stop >= 0 && start > stop, text)
  })

  test('a unit is started for the first time when its configuration is complete and checked', () => {
    const starts = read('docs/packaging.md').match(/^.*systemctl enable --now sluice$/gm) ?? []
    assert.equal(starts.length, 2)
    for (const line of starts) assert.match(line, /^sudo -u sluice sluice config check .* && systemctl enable/)
  })

  test('a rollback after a migration restores a backup, with PostgreSQL into an empty database', () => {
    const text = section('docs/operating.md', 'Upgrade')
    assert.match(text, /PostgreSQL, where a restore needs an empty database/)
    assert.match(text, /Before the start, in every other state folder .*`mv audit\.log audit\.log\.old`/)
    assert.match(OPERATOR_ERRORS['store-newer'].fix, /restore a backup/)
  })

  test('what is on or unlimited without any configuration is named: the indexer, units per month', () => {
    const { indexer } = configSchema.parse({})
    assert.deepEqual([indexer.enabled, indexer.ingest.enabled, indexer.includeAccounts], [true, true, true])
    assert.match(section('docs/operating.md', 'Nodes'), /The indexer is on by default/)
    assert.ok(Object.values(BUILT_IN_PLANS).every((plan) => plan.unitsPerMonth === null && !plan.grpcResume))
    assert.match(section('docs/operating.md', 'The first customer in 60 seconds'), /not units per month/)
  })

  test('a customer that does not pay is suspended as a whole, and the page says that the invoice preview goes on', () => {
    const [row = ''] = section('docs/operating.md', 'Daily operation').match(/^.*does not pay.*$/m) ?? []
    assert.match(row, /sluice customer suspend acme`, `sluice customer resume acme`.*billing\.md/)
    assert.match(
      section('docs/billing.md', 'Prices and the invoice preview'),
      /also while it or its customer is suspended/,
    )
  })

  test('a drain of a node is named as one of this process until its end', () => {
    assert.match(section('docs/operating.md', 'Nodes'), /A drain holds in one process until its end/)
    assert.match(read('docs/commands.md'), /sluice upstream drain[^]*?a restart uses the node again/)
  })

  test('a restore pauses billing before the start', () => {
    const text = section('docs/operating.md', 'Backup and restore')
    assert.match(text, /`sluice billing pause` after the restore and before the start/)
  })

  test('the scrape of the execution service has its conditions: a source of events, and TLS', () => {
    const text = section('docs/operating.md', 'Monitoring')
    assert.match(text, /scheme: https/)
    assert.match(text, /leave this job out/i)
  })
})

describe('a sender that cannot write its journal', () => {
  test('the alert names the refusal of new transactions', () => {
    const steps = ALERTS.find(({ name }) => name === 'SluiceSenderJournal')?.does.join(' ') ?? ''
    assert.match(steps, /refused .*not-recorded/)
    assert.match(steps, /data\.sent/)
  })

  test('the page for customers names the refusal after which a transaction may have been sent', () => {
    const page = read('docs/customers/sender.md')
    assert.match(page, /data\.sent/)
    assert.doesNotMatch(page, /On -32503 nothing was sent/)
  })
})
