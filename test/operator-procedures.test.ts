import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { ALERTS } from '../scripts/ops/alerts.ts'

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
