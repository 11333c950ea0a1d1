import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openQueryDatabase } from './test-queries.ts'

/** Each alias uses the one before, `count` times; the columns are the last ones. */
function nested(count: number, columns: number, of: (before: string) => string): string {
  const aliases = Array.from({ length: count }, (_, at) => `${of(`a${at}`)} AS a${at + 1}`)
  const last = Array.from({ length: columns }, (_, at) => `a${count - at}`)
  return `WITH leader AS a0, ${aliases.join(', ')} SELECT ${last.join(', ')} FROM blocks LIMIT 1`
}

/** CPU time of all threads; planning takes 0.6 s at most on a machine of 2024. */
const CPU_MS_MAX = 5000

test('T14: planning the slowest statements that the policy allows takes little time, and larger ones are refused', async () => {
  using opened = await openQueryDatabase()
  const joined = (before: string): string => `concat(${before}, 'a')`
  const allowed = [
    nested(225, 1, joined),
    nested(90, 1, (before) => `map('a', ${before})`),
    nested(160, 1, (before) => `[${before}]`),
  ]
  for (const sql of allowed) {
    const before = process.cpuUsage()
    await opened.ask(sql)
    const { user, system } = process.cpuUsage(before)
    assert.ok((user + system) / 1000 < CPU_MS_MAX, `${(user + system) / 1000} ms: ${sql.slice(0, 60)}`)
  }
  for (const sql of [nested(225, 3, joined), nested(80, 7, (before) => `map('a', ${before})`)])
    await assert.rejects(opened.ask(sql), { type: 'TOO_DEEP_AST', message: /\(depth_sum\)/ })
})
