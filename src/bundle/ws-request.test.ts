import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { PUBSUB_KINDS, type PubSubKind, pubSubMethod, subscriptionKey, unsubscribedId } from './ws-request.ts'

describe('requests of subscriptions', () => {
  it('knows the nine pairs and nothing else', () => {
    for (const kind of PUBSUB_KINDS) {
      assert.deepEqual(pubSubMethod(`${kind}Subscribe`), { kind, verb: 'Subscribe' })
      assert.deepEqual(pubSubMethod(`${kind}Unsubscribe`), { kind, verb: 'Unsubscribe' })
    }
    for (const name of ['getSlot', 'accountsubscribe', 'constructor', 'transactionSubscribe', '']) {
      assert.equal(pubSubMethod(name), undefined)
    }
  })

  const EQUAL: [PubSubKind, (string | undefined)[]][] = [
    [
      'account',
      [
        '["k"]',
        '["k",null]',
        '["k",{}]',
        '[ "k" , {"encoding":"binary", "commitment":"finalized"}]',
        '["k",{"commitment":"finalized","encoding":null,"dataSlice":null}]',
      ],
    ],
    ['program', ['["p"]', '["p",{"filters":[],"withContext":false}]', '["p",{"filters":null}]']],
    [
      'program',
      [
        '["p",{"filters":[{"memcmp":{"offset":0,"bytes":"a"}}]}]',
        '["p",{"filters":[{"memcmp":{"bytes":"a","offset":0}}]}]',
      ],
    ],
    ['logs', ['["all"]', '["all",{"commitment":"finalized"}]', '["\\u0061ll"]']],
    ['signature', ['["s"]', '["s",{"enableReceivedNotification":false}]']],
    ['block', ['["all"]', '["all",{"encoding":"base64","transactionDetails":"full","showRewards":false}]']],
    ['slot', [undefined, '[]', '[ ]']],
  ]
  it('gives equal requests one key', () => {
    for (const [kind, texts] of EQUAL) {
      assert.equal(new Set(texts.map((text) => subscriptionKey(kind, text))).size, 1, `${kind} ${texts.join(' ')}`)
    }
  })

  it('gives different requests different keys', () => {
    const texts = [
      '["k"]',
      '["l"]',
      '["k",{"commitment":"confirmed"}]',
      '["k",{"encoding":"base64"}]',
      '["k",{"dataSlice":{"offset":0,"length":1}}]',
      '["k",{"dataSlice":{"offset":18446744073709551615,"length":1}}]',
      '["k",{"dataSlice":{"offset":18446744073709551614,"length":1}}]',
      '["k",{"filters":[{"dataSize":1},{"dataSize":2}]}]',
      '["k",{"filters":[{"dataSize":2},{"dataSize":1}]}]',
      '["k",7]',
      '["k",{},1]',
      '{"k":1}',
    ]
    assert.equal(new Set(texts.map((text) => subscriptionKey('account', text))).size, texts.length)
    assert.notEqual(subscriptionKey('account', '["k"]'), subscriptionKey('program', '["k"]'))
  })

  it('reads the id of an unsubscribe', () => {
    assert.equal(unsubscribedId('[7]'), 7)
    for (const text of [undefined, 'null', '[]', '[7,8]', '["7"]', '[7.5]', '{"a":7}', '[18446744073709551615]']) {
      assert.equal(unsubscribedId(text), undefined, String(text))
    }
  })
})
