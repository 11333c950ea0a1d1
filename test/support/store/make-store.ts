import assert from 'node:assert/strict'
import { sluiceHere } from '../cli/in-process.ts'

/** A process of a single service makes no store: it serves the customers of one that exists. */
export async function makeStore(stateDir: string): Promise<void> {
  const { code, stderr } = await sluiceHere(['customer', 'add', 'earlier', '--state', stateDir], {})
  assert.equal(code, 0, stderr)
}
