import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { spliceId } from './id-splice.ts'

/** The whole outcome for a response that arrives in pieces of this size. */
function splicedText(text: string, id: string, pieceBytes: number): string {
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
  const spliced = spliceId({ body: bytes.subarray(0, pieceBytes), rest }, id)
  spliced.start({ onData: (chunk) => void (out += chunk.toString('latin1')), onEnd() {}, onFail() {} })
  return Buffer.from(out, 'latin1').toString()
}

test('the id alone is replaced, wherever the pieces end and whatever stands around it', () => {
  fc.assert(
    fc.property(
      fc.json(),
      fc.constantFrom('1.0', '-7', 'null', '12345678901234567890123', '"\\u0041"'),
      fc.integer({ min: 1, max: 60 }),
      fc.boolean(),
      (result, id, pieceBytes, isIdFirst) => {
        const write = (own: string) =>
          isIdFirst ? `{ "id" : ${own} , "result":${result}}\n` : `{"result":${result},"not":{"id":1},"id":${own}}`
        assert.equal(splicedText(write('0'), id, pieceBytes), write(id))
      },
    ),
    { seed: Number(process.env['SLUICE_SEED'] ?? 1) },
  )
})

test('what is no response passes unchanged', () => {
  for (const text of ['[{"id":0}]', '{"result":[}', '{"result":1}', '{"id":[1],"result":2}', 'x'.repeat(50)])
    for (const pieceBytes of [1, 5, 100]) assert.equal(splicedText(text, '"own"', pieceBytes), text)
})
