import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { encodeTextFrame } from '../../platform/ws/frame.ts'
import { bytesFrame, slotOf, spliceFrame } from './splice.ts'

describe('spliceFrame', () => {
  it('builds the frame with the other id, at every size of the frame head', () => {
    for (const length of [0, 90, 60, 125, 126, 65_500, 65_536, 70_000]) {
      const head = `{"x":"${'ü'.repeat(length / 2)}","subscription":`
      const payload = Buffer.from(`${head}18446744073709551615}}`)
      const from = Buffer.byteLength(head)
      for (const id of ['1', '9007199254740991']) {
        assert.deepEqual(spliceFrame(payload, from, from + 20, id), encodeTextFrame(`${head}${id}}}`))
      }
      assert.deepEqual(bytesFrame(payload), encodeTextFrame(payload.toString()))
    }
  })

  it('slotOf finds the slot where nodes write it', () => {
    const found = (kind: string, result: string) =>
      slotOf(
        kind,
        Buffer.from(`{"jsonrpc":"2.0","method":"xNotification","params":{"result":${result},"subscription":1}}`),
      )
    assert.equal(found('account', '{"context":{"apiVersion":"4.2.1","slot":77},"value":{"slot":5}}'), 77)
    assert.equal(found('slot', '{"parent":1,"root":0,"slot":2}'), 2)
    assert.equal(found('root', '31'), 31)
    assert.equal(found('vote', '{"votePubkey":"x","slots":[1]}'), undefined)
  })
})
