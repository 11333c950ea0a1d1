import assert from 'node:assert/strict'
import { RpcError } from './errors.ts'

/** For tests: the error message of a call with invalid params. */
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
