import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import { test } from 'node:test'
import type { SqlWriter } from '../../platform/db/sql.ts'
import { MIGRATIONS } from './migrations.ts'
import { TABLES } from './tables.ts'

/**
 * The hash of the statements of each released migration, and the record format since the last one. A released migration never changes,
 * because existing stores have run it. When a table changes, keep the statements of the old migration, add a new one, and add its hash.
 */
const RELEASED: Readonly<Record<number, string>> = {
  1: '15f1c1acde89b609e06ebcd1f43121ca3dc656140b10f5bec1adbecc75a71e21',
  2: '1dabd7a3920cd7fa0f28bc1a80ffc771cf8723a405aa74dd39bff62ced53a0a1',
  3: '0fd1e63ac16df2a46c679c03624361e464505a733d37f69ff865ac5301ec537b',
  4: 'fcc7b5cad8db5c9a35437860c5f3b3fee3d907e0543f31ae1e984a8830938238',
  5: '37a96f9a95b9c2a568759c86397bdc6172ffaad88087d08c1cc7cfd241c37710',
  6: 'de2770d9b9606149b4968e310285c84a18ac8c79f321ae6fdba2384bc02c1ed8',
  7: '27f0d1355434fa7f58bf13afbc139b7afb09e93072910845208a34d568b8fe9c',
}
const RECORDS_SINCE = 'ea129bafb02ff9d336bfb1ba15124bee867bf59650c7d87cc44c4e2ba85c9172'

test('released migrations do not change, and versions count up from 1', async () => {
  assert.deepEqual(
    MIGRATIONS.map(({ version }) => version),
    MIGRATIONS.map((_, at) => at + 1),
  )
  for (const { version, migrate } of MIGRATIONS) {
    const statements: string[] = []
    const run = async (sql: string) => void statements.push(sql)
    async function* pages() {}
    await migrate({ run, pages } as unknown as SqlWriter)
    assert.equal(
      hash('sha256', statements.join(';\n')),
      RELEASED[version],
      `version ${version}:\n${statements.join(';\n')}`,
    )
  }
})

test('records are written in the format of the newest migration', () => {
  const fields = JSON.stringify(TABLES.map((table) => [table.name, table.fields]))
  assert.equal(hash('sha256', fields), RECORDS_SINCE, fields)
})
