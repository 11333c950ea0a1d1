import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { CliContext } from '../define.ts'
import { printList } from './print.ts'
import { isScreen } from './terminal.ts'

const NAME = 'a-subscription-with-a-long-name'

/** A list as a terminal of this width shows it. */
function listed(columns: number | undefined): string {
  let text = ''
  const stdout = { columns, write: (part: string) => void (text += part) }
  const list = { rows: [NAME], empty: '', columns: [{ title: 'NAME', value: (name: string) => name }] }
  printList({ process: { stdout } } as unknown as CliContext, {}, list)
  return text
}

test('a terminal that does not report its width gets whole cells', () => {
  for (const columns of [undefined, 0, 80]) assert.equal(listed(columns), `NAME\n${NAME}\n`)
  assert.match(listed(20), /…/)
})

test('a picture is drawn on a terminal that can move its cursor', () => {
  const on = (isTTY: boolean | undefined, TERM?: string) =>
    isScreen({ stdout: { isTTY }, env: { TERM } } as unknown as NodeJS.Process)
  assert.deepEqual([on(true, 'xterm'), on(true), on(true, 'dumb')], [true, true, false])
  assert.ok(on(undefined, 'xterm') !== true)
})
