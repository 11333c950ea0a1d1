import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { PUBSUB_KINDS } from '../../contract/rpc-methods.ts'
import { canonicalParams, pubSubMethod, unsubscribedId } from './request.ts'

describe('PubSub requests', () => {
  it('knows the nine kinds and no other method', () => {
    for (const kind of PUBSUB_KINDS) {
      assert.deepEqual(pubSubMethod(`${kind}Subscribe`), { kind, verb: 'Subscribe' })
      assert.deepEqual(pubSubMethod(`${kind}Unsubscribe`), { kind, verb: 'Unsubscribe' })
    }
    for (const name of ['getSlot', 'accountsubscribe', 'constructor', 'transactionSubscribe', '']) {
      assert.equal(pubSubMethod(name), undefined)
    }
  })

  it('gives one canonical text to params that nodes read alike, and none to duplicate members', () => {
    const equal: (string | undefined)[][] = [
      [
        '["k",{"commitment":"confirmed","encoding":"base64"}]',
        '[ "k" , {"encoding":"base64", "commitment":"\\u0063onfirmed"}]',
      ],
      [
        '["p",{"filters":[{"memcmp":{"offset":0,"bytes":"a"}}]}]',
        '["p",{"filters":[{"memcmp":{"bytes":"a","offset":0}}]}]',
      ],
      [undefined, '[]', '[ ]'],
    ]
    for (const texts of equal) assert.equal(new Set(texts.map(canonicalParams)).size, 1, texts.join(' '))
    assert.equal(canonicalParams('["k",{"commitment":"processed","commitment":"finalized"}]'), undefined)
  })

  it('gives different texts to different params, also where one only names a default', () => {
    const texts = [
      '["k"]',
      '["l"]',
      '["k",null]',
      '["k",{}]',
      '["k",{"commitment":"finalized"}]',
      '["k",{"commitment":"confirmed"}]',
      '["k",{"__proto__":{"commitment":"confirmed"}}]',
      '["k",{"dataSlice":{"offset":0,"length":1}}]',
      '["k",{"dataSlice":{"offset":-0,"length":1}}]',
      '["k",{"dataSlice":{"offset":18446744073709551615,"length":1}}]',
      '["k",{"dataSlice":{"offset":18446744073709551614,"length":1}}]',
      '["k",{"filters":[{"dataSize":1},{"dataSize":2}]}]',
      '["k",{"filters":[{"dataSize":2},{"dataSize":1}]}]',
      '["k",{"filters":[{"dataSize":2},{"dataSize":1.0}]}]',
      '["k",7]',
      '["k",{},1]',
      '{"k":1}',
    ]
    assert.equal(new Set(texts.map(canonicalParams)).size, texts.length)
  })

  it('reads the id of an unsubscribe', () => {
    assert.equal(unsubscribedId('[7]'), 7)
    for (const text of [
      undefined,
      'null',
      '[]',
      '[7,8]',
      '["7"]',
      '[7.5]',
      '[7.0]',
      '[-0]',
      '[07]',
      '{"a":7}',
      '[18446744073709551615]',
    ]) {
      assert.equal(unsubscribedId(text), undefined, String(text))
    }
  })
})
