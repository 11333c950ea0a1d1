import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { findResponseId, replaceId, replaceIdInStream } from './response-id.ts'

describe('replaceId', () => {
  it('replaces the id of the response and no other byte', () => {
    const cases = [
      '{"jsonrpc":"2.0","result":{"id":5,"rentEpoch":18446744073709551615},"id":1}',
      '{"id":1,"jsonrpc":"2.0","result":"\\"id\\":1"}',
      ' { "result" : [1.0, {"id":null}] , "id" : 1 , "jsonrpc":"2.0"} \n',
      '{"result":"é€😀","id":1}',
    ]
    for (const text of cases) {
      const body = Buffer.from(text)
      const { idFrom = 0, idTo = 0 } = findResponseId(body) ?? {}
      assert.equal(body.toString('utf8', idFrom, idTo), '1')
      assert.equal(
        replaceId(body, '"ä"')?.toString(),
        text.replace(/"id"(\s*):(\s*)1(?=[\s,}])(?!.*"id"\s*:\s*1[\s,}])/, '"id"$1:$2"ä"'),
      )
    }
  })

  it('returns undefined for a response without an id and for what is no object', () => {
    for (const text of ['', '[]', '1', '{"result":1}', '{"id":1', '{"id":1}x', '"id"']) {
      assert.equal(findResponseId(Buffer.from(text)), undefined, text)
      assert.equal(replaceId(Buffer.from(text), '2'), undefined, text)
    }
  })
})

/** The output for a response that arrives in pieces of this size. */
function replacedText(text: string, id: string, pieceBytes: number): string {
  const bytes = Buffer.from(text)
  let out = ''
  const rest = {
    start(listener: { onData(chunk: Buffer): void; onEnd(): void }) {
      for (let from = pieceBytes; from < bytes.length; from += pieceBytes)
        listener.onData(bytes.subarray(from, from + pieceBytes))
      listener.onEnd()
    },
    pause() {},
    resume() {},
    abort() {},
  }
  const replaced = replaceIdInStream({ body: bytes.subarray(0, pieceBytes), rest }, id)
  replaced.start({ onData: (chunk) => void (out += chunk.toString('latin1')), onEnd() {}, onFail() {} })
  return Buffer.from(out, 'latin1').toString()
}

describe('replaceIdInStream', () => {
  it('replaces the id and no other byte, wherever the pieces end', () => {
    fc.assert(
      fc.property(
        fc.json(),
        fc.constantFrom('1.0', '-7', 'null', '12345678901234567890123', '"\\u0041"'),
        fc.integer({ min: 1, max: 60 }),
        fc.boolean(),
        (result, id, pieceBytes, isIdFirst) => {
          const write = (own: string) =>
            isIdFirst ? `{ "id" : ${own} , "result":${result}}\n` : `{"result":${result},"not":{"id":1},"id":${own}}`
          assert.equal(replacedText(write('0'), id, pieceBytes), write(id))
        },
      ),
      { seed: Number(process.env['SLUICE_SEED'] ?? 1) },
    )
  })

  it('passes bytes that are no response unchanged', () => {
    for (const text of ['[{"id":0}]', '{"result":[}', '{"result":1}', '{"id":[1],"result":2}', 'x'.repeat(50)])
      for (const pieceBytes of [1, 5, 100]) assert.equal(replacedText(text, '"own"', pieceBytes), text)
  })
})
