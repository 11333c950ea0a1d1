import assert from 'node:assert/strict'
import { RpcError } from './errors.ts'

/** For tests: what a call with wrong params is told. */
export function refusal(run: () => unknown): string {
  try {
    run()
  } catch (error) {
    assert(error instanceof RpcError)
    assert.equal(error.code, -32602)
    return error.message
  }
  return assert.fail('was not refused')
}
